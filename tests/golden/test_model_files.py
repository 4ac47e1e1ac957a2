"""Files of every format version load, and say what they said when they were written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from vcgmm import VCGMM, load_coreset
from vcgmm.persistence import FORMAT_VERSION, read_header

FOLDER = Path(__file__).with_name("files")
VERSIONS = range(1, FORMAT_VERSION + 1)
X = load_iris().data


def expected(version: int, name: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((FOLDER / f"v{version}-expected.json").read_text())[name]
    return facts


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["full.vcgmm", "plain.vcgmm"])
def test_models(version: int, name: str) -> None:
    path = FOLDER / f"v{version}-{name}"
    assert read_header(path)["format_version"] == version
    model, facts = VCGMM.load(path), expected(version, name)
    parameters = model.get_params()
    assert {key: parameters[key] for key in facts["parameters"]} == facts["parameters"]
    assert model.means_.tolist() == facts["means"]
    assert (model.n_iter_, model.lower_bound_) == (facts["n_iter"], facts["lower_bound"])
    assert model.variance_ == facts["variance"]
    rows = pd.DataFrame(X, columns=model.feature_names_in_) if hasattr(model, "feature_names_in_") else X
    assert model.predict(rows).tolist() == facts["labels"]
    assert np.isfinite(model.score_samples(rows)).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_all_that_a_model_can_have(version: int) -> None:
    model = VCGMM.load(FOLDER / f"v{version}-full.vcgmm")
    assert model.labels_.tolist() == expected(version, "full.vcgmm")["labels"]
    assert model.inertia_ == pytest.approx(
        model.quantization_error(pd.DataFrame(X, columns=model.feature_names_in_))
    )
    np.testing.assert_array_equal(model.init, X[::30])
    np.testing.assert_array_equal(model.coreset_.points, X[model.coreset_.indices])
    np.testing.assert_array_equal(model.history_["bound"], model.lower_bounds_)
    assert isinstance(model.random_state, np.random.RandomState)


@pytest.mark.parametrize("version", VERSIONS)
def test_coresets(version: int) -> None:
    coreset, facts = load_coreset(FOLDER / f"v{version}-coreset.vcgmm"), expected(version, "coreset.vcgmm")
    assert coreset.indices.tolist() == facts["indices"]
    assert coreset.weights.tolist() == facts["weights"]
    np.testing.assert_array_equal(coreset.points, X[coreset.indices])
