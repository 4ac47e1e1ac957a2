from __future__ import annotations

import dataclasses

import pytest

from vcgmm.progress import Iteration, check_callbacks


def test_an_iteration_cannot_be_changed() -> None:
    facts = Iteration(iteration=1, bound=-1234.5, change=1e-3, variance=0.25, seconds=1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        facts.bound = 0.0  # type: ignore[misc]


def test_callbacks_come_as_a_tuple() -> None:
    def stop(_: Iteration) -> bool:
        return True

    assert check_callbacks(None) == ()
    assert check_callbacks(stop) == (stop,)
    assert check_callbacks([stop, print]) == (stop, print)
    assert check_callbacks((stop,)) == (stop,)
    assert check_callbacks([]) == ()


@pytest.mark.parametrize("wrong", [3, "verbose", b"", {"a": print}])
def test_what_is_no_callback_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"callbacks=.* is not callable: give None, a function"):
        check_callbacks(wrong)  # type: ignore[arg-type]


def test_the_wrong_one_of_several_callbacks_is_named() -> None:
    with pytest.raises(TypeError, match=r"callbacks\[1\]=None is not callable"):
        check_callbacks([print, None])  # type: ignore[list-item]
