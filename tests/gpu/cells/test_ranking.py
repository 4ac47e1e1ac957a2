"""Rows in order: what `torch.sort` gives."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.gpu.cells import ranking  # noqa: E402
from vcgmm.gpu.cells.ranking import first_in_order, in_order  # noqa: E402


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    ("shape", "kind"), [((1,), "float64"), ((600,), "float64"), ((3, 130), "int32"), ((2, 5, 16), "int64")]
)
def test_rows_are_sorted_and_equals_keep_their_order(
    device: Any, shape: tuple[int, ...], kind: str, descending: bool
) -> None:
    draws = torch.Generator().manual_seed(0)
    values = torch.randint(-5, 20, shape, generator=draws).to(getattr(torch, kind)).to(device)
    if kind == "float64":
        values[::7], values[3::11], values[4::9], values[5::9] = -torch.inf, torch.inf, -0.0, 0.0
    ordered, order = in_order(values, descending=descending)
    expected = torch.sort(values, stable=True, descending=descending)
    assert (ordered == expected.values).all()
    assert (order == expected.indices).all()


def test_long_rows_are_left_to_torch(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "COMPARISONS", 24)
    values = torch.tensor([3, 1, 2, 1, 0], device=device)
    assert in_order(values)[1].tolist() == [4, 1, 3, 2, 0]
    assert in_order(values, descending=True)[0].tolist() == [3, 2, 1, 1, 0]


@pytest.mark.parametrize("most", [0, 1 << 20])  # comparisons, beyond which torch sorts
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("count", [1, 17, 300])
def test_the_first_are_put_where_they_are_wanted(
    device: Any, monkeypatch: pytest.MonkeyPatch, count: int, descending: bool, most: int
) -> None:
    monkeypatch.setattr(ranking, "COMPARISONS", most)
    draws = torch.Generator().manual_seed(1)
    values = torch.randint(0, 90, (300,), generator=draws).to(torch.float64).to(device)
    room = torch.full((2 * count + 1,), -7, dtype=torch.int64, device=device)
    ordered, order = room[:count].view(torch.float64), room[count : 2 * count]
    first_in_order(values, count, ordered, order, descending=descending)
    expected = torch.sort(values, stable=True, descending=descending)
    assert (ordered == expected.values[:count]).all()
    assert (order == expected.indices[:count]).all()
    assert room[-1] == -7


def test_every_place_is_given_once_even_to_nan(device: Any) -> None:
    nan = float("nan")
    values = torch.tensor([1.0, nan, 2.0, nan, -1.0], dtype=torch.float64, device=device)
    assert sorted(in_order(values)[1].tolist()) == list(range(5))
