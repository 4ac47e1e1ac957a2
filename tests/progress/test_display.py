from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from vcgmm.progress import Iteration, Progress, RichProgress, make_progress
from vcgmm.progress.display import describe, duration, make_console, short_number
from vcgmm.progress.forecast import TimeLeft


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


def test_silent_progress_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    run_a_fit(make_progress(0))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("verbose", [1, True])
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
    # Counted in rows, with their number per second; no bar.
    assert coreset.split()[3:6] == ["3,000", "rows", "read"]
    assert coreset.split()[-1] == "rows/s"
    assert "━" not in written(console)
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


def test_a_verbosity_of_two_leaves_a_line_for_every_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    run_a_fit(make_progress(2))
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert [line[0] for line in lines] == ["coreset", "seeding", "1", "2", "em"]
    assert lines[2][1:] == ["1.00", "s", "F=-1234.5", "change=inf", "var=0.25"]


def test_a_terminal_shows_a_bar_and_the_rate_of_rows() -> None:
    console = terminal()
    with RichProgress(console) as progress:
        progress.start("predict", 4000)
        progress.advance(1000)
    assert "━" in written(console)
    assert "1,000/4,000 rows" in written(console)
    assert "about 1 s left" in written(console)
    assert "rows/s" in written(console)


@pytest.mark.parametrize("total", [None, 4000])
def test_no_time_is_left_where_it_is_not_known_or_over(total: int | None) -> None:
    console = terminal()
    with RichProgress(console) as progress:
        progress.start("coreset", total)
        progress.advance(4000)
        progress.finish()
    assert "rows/s" in written(console)
    assert "left" not in written(console)


@pytest.mark.parametrize("finished", [False, True])
def test_a_terminal_shows_how_long_em_will_go_on_until_it_is_over(finished: bool) -> None:
    console = terminal()
    with RichProgress(console, tol=1e-4) as progress:
        progress.start("em", 200)
        for number in range(1, 7):
            change = math.inf if number == 1 else 10.0 ** (-number / 2)
            progress.iteration(Iteration(number, -1234.5, change, 0.25, seconds=60.0 * number))
        if finished:
            progress.finish()
    last = written(console).splitlines()[-2].split("\x1b[2K")[-1]
    assert "F=-1234.5" in last
    # From 1e-3, falling by half an order of magnitude a minute.
    assert ("about 2 min left" in last) is not finished


def test_each_try_has_a_forecast_of_its_own() -> None:
    console = piped()
    with RichProgress(console, tol=1e-4) as progress:
        for _ in range(2):
            progress.start("em", 200)
            for number in range(1, 4):
                progress.iteration(facts(number))
        # Left open, as an interrupted fit leaves it, it shows all that was known: nothing of the time yet.
    assert "left" not in written(console)


def test_facts_that_matter_less_make_room() -> None:
    told = Iteration(12, -1.234567e12, 1e-3, 1.234e-12, 1.0, active=3998)
    left = TimeLeft(83.0, at_most=False)
    whole = "F=-1.23457e+12 change=1.0e-03 var=1.23e-12 active=3,998 about 83 s left"
    assert describe(told, left) == whole
    assert describe(told, left, len(whole)) == whole
    assert describe(told, left, len(whole) - 1) == "F=-1.23457e+12 change=1.0e-03 var=1.23e-12 about 83 s left"
    assert describe(told, left, 50) == "F=-1.23457e+12 change=1.0e-03 about 83 s left"
    assert describe(told, left, 10) == "F=-1.23457e+12 change=1.0e-03"
    assert describe(told, TimeLeft(7000.0, at_most=True), 50).endswith("up to 2 h left")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (83.4, "83 s"), (99.6, "2 min"), (3600.0, "60 min"), (7200.0, "2 h"), (4e6, "1,111 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(3.0, "3"), (999.4, "999"), (999.6, "1k"), (45_600_000, "45.6M"), (2.5e10, "25G")]
)
def test_short_numbers(value: float, text: str) -> None:
    assert short_number(value) == text


def test_no_color_means_plain_lines_on_a_terminal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert make_console(stderr=True).is_terminal
    monkeypatch.setenv("NO_COLOR", "1")
    assert not make_console(stderr=True).is_terminal
    # An empty value does not count as set.
    monkeypatch.setenv("NO_COLOR", "")
    assert make_console(stderr=True).is_terminal
