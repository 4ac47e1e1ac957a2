"""Golden results: what is fitted, and a script that writes golden.json: python tests/golden/make_golden.py

Write it anew only when a change of the algorithm is meant to change results, and say so in the commit.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM
from vcgmm.datasets import make_grid

FILE = Path(__file__).with_name("golden.json")

DATA = {
    "iris": lambda: load_iris().data,
    "digits": lambda: load_digits().data.astype(np.uint8),
    "grid": lambda: make_grid(2500, n_side=5, spread=0.1, random_state=0)[0],
}
N_COMPONENTS = {"iris": 3, "digits": 10, "grid": 25}

SETTINGS: dict[str, dict[str, Any]] = {
    "blocked on a coreset": {"coreset_size": 0.5},
    "blocked on all points": {"coreset_size": None},
    "pointwise from AFK-MC2": {"coreset_size": None, "search": "pointwise", "init": "afkmc2", "relaxation": 1.0},
}

#: Plain EM from a given start, in float64, for a given number of iterations: nothing is left to rounding.
EXACT: dict[str, dict[str, Any]] = {
    f"{search} from given means": {
        "coreset_size": None, "search": search, "dtype": "float64", "tol": 0.0, "max_iter": 10,
        "relaxation": 1.0,
    }
    for search in ("blocked", "pointwise")
}  # fmt: skip


def fit(data: str, setting: str) -> dict[str, float]:
    """Fit one data set with one setting, and tell what is to be compared."""
    X = DATA[data]()
    parameters = {**SETTINGS, **EXACT}[setting]
    if setting in EXACT:
        # Rows spread evenly over the data, of which no two are equal.
        parameters = {**parameters, "init": X[:: len(X) // N_COMPONENTS[data]][: N_COMPONENTS[data]]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = VCGMM(N_COMPONENTS[data], random_state=0, **parameters).fit(X)
    facts = {
        "quantization_error": model.quantization_error(X),
        "lower_bound": model.lower_bound_,
        "variance": model.variance_,
        "n_iter": model.n_iter_,
    }
    return {name: float(f"{value:.10g}") for name, value in facts.items()}


def main() -> None:
    """Write golden.json."""
    results = {data: {setting: fit(data, setting) for setting in {**SETTINGS, **EXACT}} for data in DATA}
    FILE.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
