"""Models handed to other libraries."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from digits import digits
from vcgmm import VCGMM

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 3)) + 5.0 * rng.integers(0, 3, size=(500, 1))


@pytest.fixture(scope="module")
def model() -> VCGMM:
    return VCGMM(12, truncation=12, random_state=0).fit(X, sample_weight=np.full(500, 3.0))


def test_a_mixture_of_scikit_learn_agrees(model: VCGMM) -> None:
    mixture = model.to_sklearn()
    new = X + 0.1
    np.testing.assert_array_equal(mixture.predict(new), model.predict(new))
    np.testing.assert_allclose(mixture.score_samples(new), model.score_samples(new), rtol=digits(1e-9))
    np.testing.assert_allclose(mixture.predict_proba(new), model.predict_proba(new).toarray(), atol=digits(1e-9))
    assert mixture.score(new) == pytest.approx(model.score(new), rel=digits(1e-6))
    assert mixture.aic(X) > mixture.n_features_in_
    assert mixture.sample(5)[0].shape == (5, 3)
    assert mixture.covariance_type == "spherical"
    assert (mixture.n_iter_, mixture.converged_) == (model.n_iter_, model.converged_)


def test_its_bound_is_a_mean(model: VCGMM) -> None:
    # A bound of the mean log density of the data, whatever the weights.
    mixture = model.to_sklearn()
    assert mixture.lower_bound_ <= mixture.score(X) + 1e-9
    assert mixture.lower_bound_ == pytest.approx(mixture.score(X), rel=0.05)
    assert mixture.lower_bounds_[-1] == pytest.approx(mixture.lower_bound_)


def test_the_mixture_is_a_copy(model: VCGMM) -> None:
    mixture = model.to_sklearn()
    before = model.means_.copy()
    mixture.means_ += 1.0
    np.testing.assert_array_equal(model.means_, before)


def test_names_of_features_are_handed_on() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    mixture = VCGMM(3, random_state=0).fit(frame).to_sklearn()
    mixture.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        mixture.predict(frame[["b", "a", "c"]])


def test_a_flat_index_finds_the_nearest_cluster(model: VCGMM) -> None:
    faiss = pytest.importorskip("faiss")
    index = model.to_faiss()
    assert isinstance(index, faiss.IndexFlatL2)
    assert index.ntotal == 12
    _, ids = index.search(X.astype(np.float32), 1)
    np.testing.assert_array_equal(ids[:, 0], model.predict(X))


def test_an_inverted_file_has_our_clusters_as_lists(model: VCGMM) -> None:
    faiss = pytest.importorskip("faiss")
    index = model.to_faiss("ivf")
    assert index.is_trained
    assert (index.nlist, index.ntotal) == (12, 0)
    index.add(X.astype(np.float32))
    sizes = [index.invlists.list_size(i) for i in range(12)]
    np.testing.assert_array_equal(sizes, np.bincount(model.predict(X), minlength=12))
    # It outlives the names of its parts, and goes through a file.
    again = faiss.deserialize_index(faiss.serialize_index(index))
    distances, ids = again.search(X[:20].astype(np.float32), 1)
    np.testing.assert_array_equal(ids[:, 0], np.arange(20))
    np.testing.assert_allclose(distances, 0.0, atol=1e-4)


def test_mistakes(model: VCGMM, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="kind='tree' is not known: choose from 'flat', 'ivf'"):
        model.to_faiss("tree")
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match="pip install faiss-cpu"):
        model.to_faiss()
    for method in (VCGMM.to_sklearn, VCGMM.to_faiss):
        with pytest.raises(NotFittedError):
            method(VCGMM())
