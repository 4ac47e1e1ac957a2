from __future__ import annotations

import numpy as np
import pytest

from vcgmm.kernels.coreset.drawing import add_up, meet

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_begin_anew_in_every_block(weighted: bool) -> None:
    rng = np.random.default_rng(5)
    values, weights = rng.random(11), rng.random(11) if weighted else np.empty(0)
    terms = (0.5 * values + 0.25) * (weights if weighted else 1.0)
    add_up(values, weights, 0.5, 0.25, 4)
    np.testing.assert_array_equal(values, np.concatenate([np.cumsum(part) for part in np.split(terms, [4, 8])]))


def test_numbers_meet_the_first_row_whose_running_sum_is_larger() -> None:
    running = np.array([0.1, 0.1, 0.3, 0.4, 0.2, 0.6])  # two blocks, of four rows and of two
    numbers = np.array([0.0, 0.05, 0.1, 0.35, 0.45, 0.75, 0.9])
    rows, counts = np.full((2, 7), -1)
    probabilities = np.full(7, np.nan)
    start = np.array([0, 4, 7])
    n = meet(running, 4, numbers, np.array([0.0, 0.4]), start, rows, counts, probabilities)
    assert rows[:n].tolist() == [0, 2, 3, 4, 5]
    assert counts[:n].tolist() == [2, 1, 1, 1, 2]
    np.testing.assert_allclose(probabilities[:n], [0.1, 0.2, 0.1, 0.2, 0.4], rtol=1e-15)


def test_a_number_at_the_very_end_meets_the_last_row_of_any_probability() -> None:
    rows, counts = np.full((2, 1), -1)
    n = meet(
        np.array([0.0, 0.5, 0.5]), 3, np.array([0.5]), np.zeros(1), np.array([0, 1]), rows, counts, np.empty(1)
    )
    assert (n, rows.tolist(), counts.tolist()) == (1, [1], [1])
