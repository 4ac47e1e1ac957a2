"""What a user waits for before the first result: import, compile, and a small fit with warm caches.

    python benchmarks/startup.py

Every line is a process of its own; two share a kernel cache that starts empty.  Modules of the package are made
byte code before, as pip does it, since Python may be told not to keep any.
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec

#: Clusters and features: so few that all are candidates of all, so many that they have to be linked, which more
#: kernels do, and rows so wide that short integers are compared.
FITS = ((50, 10), (500, 10), (500, 64))

CODE = """
import sys
import time
begun = time.perf_counter()
import numba, scipy.sparse, sklearn.base, sklearn.utils.validation, rich.progress, threadpoolctl
others = time.perf_counter()
import numpy as np
from vcgmm import VCGMM
imported = time.perf_counter()
X = np.random.default_rng(0).normal(size=(10_000, int(sys.argv[2]))).astype(np.float32)
VCGMM(int(sys.argv[1]), random_state=0).fit(X)
first = time.perf_counter()
VCGMM(int(sys.argv[1]), random_state=0).fit(X)
second = time.perf_counter()
print(f"import {imported - others:.2f} s beyond its dependencies' {others - begun:.2f} s;"
      f" first fit {first - imported:.2f} s; second fit {second - first:.3f} s")
"""


def main() -> None:
    """Run the same code with an empty cache and with a warm one."""
    package = find_spec("vcgmm")
    for folder in (package and package.submodule_search_locations) or ():
        compileall.compile_dir(folder, quiet=1)
    for n_clusters, n_features in FITS:
        with tempfile.TemporaryDirectory() as cache:
            for name in ("empty cache", "warm cache"):
                environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
                result = subprocess.run(
                    [sys.executable, "-c", CODE, str(n_clusters), str(n_features)],
                    env=environment,
                    capture_output=True,
                    check=True,
                    text=True,
                )
                print(f"{n_clusters} clusters, {n_features} features, {name}: {result.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
