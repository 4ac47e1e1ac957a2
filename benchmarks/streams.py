"""How close a stream ends to a fit on all rows, beside one coreset drawn from all of them.

    python benchmarks/streams.py kdd --per-component 64 --block 2000
    python benchmarks/streams.py covtype --per-component 32 --block 20000 --sorted

`partial_fit` on blocks of rows as they come, or sorted by their first feature, the worst order.  Errors are exact,
over all rows.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from sets import SETS, load

from vcgmm import VCGMM


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set", choices=list(SETS))
    parser.add_argument("--per-component", type=int, default=64, help="coreset_size for each cluster")
    parser.add_argument("--block", type=int, default=10_000, help="rows of a block")
    parser.add_argument("--sorted", action="store_true", help="rows sorted by their first feature")
    arguments = parser.parse_args()
    X, n_components = load(arguments.set).astype(np.float32), SETS[arguments.set]
    if arguments.sorted:
        X = X[np.argsort(X[:, 0], kind="stable")]
    size = arguments.per_component * n_components
    everything = VCGMM(n_components, coreset_size=None, random_state=0).fit(X).quantization_error(X)
    coreset = VCGMM(n_components, coreset_size=size, random_state=0).fit(X).quantization_error(X)
    model = VCGMM(n_components, coreset_size=size, random_state=0)
    begun, n_blocks = time.process_time(), 0
    for first in range(0, len(X), arguments.block):
        model.partial_fit(X[first : first + arguments.block])
        n_blocks += 1
    seconds = time.process_time() - begun
    excess = [f"{100 * (error / everything - 1):+.2f} %" for error in (model.quantization_error(X), coreset)]
    table = Table("set", "C", "coreset_size", "blocks", "kept", "CPU seconds", "stream", "one coreset")
    counts = (f"{n:,}" for n in (n_components, size, n_blocks, len(model.coreset_)))
    table.add_row(arguments.set, *counts, f"{seconds:.1f}", *excess)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
