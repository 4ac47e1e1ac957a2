from __future__ import annotations

import dataclasses
import io
import math

import pytest
from rich.console import Console

from vcgmm.progress import Iteration, Progress, RichProgress, check_callbacks, make_progress


def facts(iteration: int, change: float = 1e-3) -> Iteration:
    return Iteration(iteration=iteration, bound=-1234.5, change=change, variance=0.25, seconds=1.0)


def piped() -> Console:
    return Console(file=io.StringIO(), width=80)


def terminal() -> Console:
    return Console(file=io.StringIO(), width=80, force_terminal=True)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def run_a_fit(progress: Progress) -> None:
    with progress:
        progress.start("coreset", 3000)
        for _ in range(3):
            progress.advance(1000)
        progress.finish()
        progress.start("seeding")
        progress.finish()
        progress.start("em", 200)
        progress.iteration(facts(1, change=math.inf))
        progress.iteration(facts(2))
        progress.finish()


def test_an_iteration_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        facts(1).bound = 0.0  # type: ignore[misc]


def test_silent_progress_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    run_a_fit(make_progress(0))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("verbose", [1, 2, True])
def test_verbose_progress_goes_to_stderr(verbose: int, capsys: pytest.CaptureFixture[str]) -> None:
    run_a_fit(make_progress(verbose))
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split()[0] for line in err.splitlines()] == ["coreset", "seeding", "em"]


def test_a_pipe_gets_one_plain_line_per_step() -> None:
    console = piped()
    run_a_fit(RichProgress(console))
    coreset, seeding, em = written(console).splitlines()
    assert "\x1b" not in written(console)
    assert coreset.split()[0] == "coreset"
    assert coreset.split()[-1] == "3,000"
    assert seeding.split()[0] == "seeding"
    # Nothing was counted, so no count stands behind the seconds.
    assert seeding.split()[-1] == "s"
    # Two iterations of at most 200 were needed: the step is done, the facts are those of the last.
    assert em.split()[-4:] == ["2", "F=-1234.5", "change=1.0e-03", "var=0.25"]


def test_a_line_fits_eighty_characters() -> None:
    console = piped()
    with RichProgress(console) as progress:
        progress.start("em", 200)
        progress.iteration(Iteration(100, -1.234567e-12, 1e-10, 1.234e-12, 1.0))
    (line,) = written(console).splitlines()
    assert line.rstrip().endswith("var=1.23e-12")


def test_a_terminal_shows_the_count_while_a_step_runs() -> None:
    console = terminal()
    with RichProgress(console) as progress:
        progress.start("em", 200)
        progress.iteration(facts(7))
        # Leaving without finish, as an interrupted fit does, keeps the step as far as it came.
    assert "7/200" in written(console)
    # The cursor, hidden while the line is live, is back.
    assert written(console).rstrip().endswith("\x1b[?25h")


def test_an_exception_closes_the_display_and_passes() -> None:
    console = terminal()

    def interrupted() -> None:
        with RichProgress(console) as progress:
            progress.start("coreset", 10)
            progress.advance(4)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "4/10" in written(console)
    assert written(console).rstrip().endswith("\x1b[?25h")


def test_starting_a_step_closes_the_one_before() -> None:
    console = piped()
    with RichProgress(console) as progress:
        progress.start("coreset", 10)
        progress.start("seeding", 10)
    assert [line.split()[0] for line in written(console).splitlines()] == ["coreset", "seeding"]


def test_counting_outside_of_a_step_is_harmless() -> None:
    console = piped()
    progress = RichProgress(console)
    progress.advance()
    progress.iteration(facts(1))
    progress.finish()
    assert written(console) == ""


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
