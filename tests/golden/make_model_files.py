"""Writes the golden files of this format version: python tests/golden/make_model_files.py

Each version of the format keeps its files for ever, in tests/golden/files. Run it once, when FORMAT_VERSION has
been raised; it refuses to replace files that are there.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

from vcgmm import VCGMM, lightweight_coreset, save_coreset
from vcgmm.persistence import FORMAT_VERSION

FOLDER = Path(__file__).with_name("files")


def main() -> None:
    """Write a model with all that a model can have, a plain one, a coreset, and what is expected of them."""
    FOLDER.mkdir(exist_ok=True)
    files = {name: FOLDER / f"v{FORMAT_VERSION}-{name}" for name in ("full.vcgmm", "plain.vcgmm", "coreset.vcgmm")}
    expected = FOLDER / f"v{FORMAT_VERSION}-expected.json"
    there = [path for path in (*files.values(), expected) if path.exists()]
    if there:
        raise SystemExit(f"{there[0]} exists: files of a format are written once and kept.")

    X = load_iris().data
    frame = pd.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"])
    full = VCGMM(
        5,
        coreset_size=100,
        compute_labels=True,
        init=X[::30],
        random_state=np.random.RandomState(7),
        tol=1e-6,
    ).fit(frame)
    plain = VCGMM(3, random_state=0, dtype="float32").fit(X)
    coreset = lightweight_coreset(X, 40, random_state=0)
    full.save(files["full.vcgmm"], coreset=True)
    plain.save(files["plain.vcgmm"])
    save_coreset(coreset, files["coreset.vcgmm"])

    facts = {
        name: {
            "parameters": {
                key: value
                for key, value in model.get_params().items()
                if key not in ("init", "random_state", "callbacks")
            },
            "n_iter": model.n_iter_,
            "lower_bound": model.lower_bound_,
            "variance": model.variance_,
            "means": model.means_.tolist(),
            "labels": model.predict(frame if name == "full.vcgmm" else X).tolist(),
        }
        for name, model in (("full.vcgmm", full), ("plain.vcgmm", plain))
    }
    weights = {"indices": coreset.indices.tolist(), "weights": coreset.weights.tolist()}
    expected.write_text(json.dumps({**facts, "coreset.vcgmm": weights}, indent=1) + "\n")


if __name__ == "__main__":
    main()
