"""scikit-learn's own suite of checks."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.utils.estimator_checks import parametrize_with_checks

from vcgmm import VCGMM

#: Checks whose data have no direction.
NO_DIRECTION = {
    "check_estimators_dtypes": "Its rows of integers hold one of zeros, which metric='cosine' refuses by name.",
}


def expected_failures(estimator: VCGMM) -> dict[str, str]:
    on_the_sphere = NO_DIRECTION if estimator.metric == "cosine" else {}
    return {
        **on_the_sphere,
        "check_sample_weight_equivalence_on_dense_data": (
            "Seeding draws rows by their order, as scikit-learn's KMeans does, so w copies of a row and a row of "
            "weight w draw different seeds. From a given start both fits are equal: see the property tests."
        ),
    }


@parametrize_with_checks(
    [
        VCGMM(n_components=3),
        VCGMM(n_components=3, search="pointwise", init="afkmc2"),
        VCGMM(n_components=3, metric="cosine"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator: VCGMM, check: Callable[[VCGMM], None]) -> None:
    check(estimator)
