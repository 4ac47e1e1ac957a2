"""What rows lose when they are stored in bf16: error and bound of fits to rounded rows, on the CPU.

    python benchmarks/storage.py --seeds 5

A GPU with precision="bf16" stores rows of the host in bf16, about their mean.  Here they are rounded so and all
else is float32, on any machine: what is left is what storage does.  Errors are exact, of the rows as they were.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sets import SETS, load

from vcgmm import VCGMM


def as_bf16(rows: np.ndarray) -> np.ndarray:
    """Rows (N, D) float32 rounded to the nearest numbers of 8 bits of mantissa, ties to even."""
    bits = rows.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)


def main() -> None:
    """Fit to both, seed by seed, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    table = Table("set", "C", "error", "± of a seed", "in bf16", "bound a row", "in bf16")
    console = Console()
    for name in arguments.sets:
        X = np.ascontiguousarray(load(name), dtype=np.float32)
        rows = X - X.mean(axis=0, dtype=np.float64).astype(np.float32)
        found = []
        for seed in track(range(arguments.seeds), name, console=console, transient=True):
            models = [VCGMM(SETS[name], random_state=seed).fit(given) for given in (rows, as_bf16(rows))]
            found.append([(one.quantization_error(rows), one.lower_bound_ / len(rows)) for one in models])
        plain, stored = np.array(found).transpose(1, 2, 0)
        error = plain[0].mean()
        table.add_row(
            name, f"{SETS[name]:,}", f"{error:.4g}", f"{plain[0].std() / error:.3%}",
            f"{stored[0].mean() / error - 1:+.3%}", f"{plain[1].mean():.4f}", f"{stored[1].mean():.4f}",
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
