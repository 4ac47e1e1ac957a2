from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from vcgmm import VCGMM, load_coreset
from vcgmm.cli import app, fit

FIT = ["fit", "rows.npy", "-k", "9", "--seed", "0", "-o", "new.vcgmm"]


def same(a: VCGMM, b: VCGMM) -> bool:
    return np.array_equal(a.means_, b.means_) and a.variance_ == b.variance_


def test_a_model_is_fitted_and_written(runner: CliRunner, folder: Path, rows: np.ndarray) -> None:
    result = runner.invoke(app, FIT)
    assert result.exit_code == 0, result.output
    model = VCGMM.load("new.vcgmm")
    expected = VCGMM(9, random_state=0).fit(rows)
    assert same(model, expected)
    # As if it had been fitted without the command: nothing of the run stays in it, and no row of the data.
    assert {**model.get_params()} == {**expected.get_params()}
    assert not hasattr(model, "coreset_")
    assert sorted(file.name for file in folder.iterdir()) == ["core.vcgmm", "model.vcgmm", "new.vcgmm", "rows.npy"]


def test_progress_goes_to_stderr_and_a_summary_to_stdout(runner: CliRunner, folder: Path) -> None:
    result = runner.invoke(app, FIT)
    assert [line.split()[0] for line in result.stderr.splitlines()] == ["coreset", "seeding", "em"]
    summary = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    assert list(summary) == [
        "data",
        "coreset",
        "clusters",
        "iterations",
        "lower bound",
        "variance",
        "distances",
        "time",
        "model",
    ]
    model = VCGMM.load("new.vcgmm")
    assert summary["data"].endswith("2,000 rows of 2 features, float32")
    assert summary["iterations"].endswith(f"{model.n_iter_}, converged")
    assert f"{model.variance_:.6g}" in summary["variance"]
    assert "new.vcgmm" in summary["model"]


def test_json_is_one_object_alone_on_stdout(runner: CliRunner, folder: Path) -> None:
    result = runner.invoke(app, [*FIT, "--json", "--compute-labels"])
    facts = json.loads(result.stdout)
    model = VCGMM.load("new.vcgmm")
    assert facts["n_iter"] == model.n_iter_
    assert facts["lower_bound"] == model.lower_bound_
    assert facts["variance"] == model.variance_
    assert facts["inertia"] == model.inertia_
    assert (facts["converged"], facts["stopped"]) == (True, False)
    assert (facts["n_samples"], facts["n_features"], facts["n_components"]) == (2000, 2, 9)
    assert facts["active_components"] == 9
    assert facts["output"] == "new.vcgmm"
    assert facts["device"] == "cpu"
    assert set(facts["timings"]) == {"coreset", "seeding", "em"}
    assert "seeding" in result.stderr


def test_quiet_says_nothing(runner: CliRunner, folder: Path) -> None:
    result = runner.invoke(app, [*FIT, "-q", "--max-iter", "1", "--tol", "0"])  # with a warning to silence
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert VCGMM.load("new.vcgmm").n_iter_ == 1
    assert json.loads(runner.invoke(app, [*FIT, "-q", "--json", "--force"]).stdout)["n_components"] == 9


def test_verbose_tells_every_iteration_and_file(runner: CliRunner, folder: Path) -> None:
    result = runner.invoke(app, [*FIT, "-v"])
    lines = result.stderr.splitlines()
    assert lines[0] == "rows.npy: 2,000 rows of 2 features, float32"
    iterations = [line for line in lines if line.split()[0].isdigit()]
    assert len(iterations) == VCGMM.load("new.vcgmm").n_iter_


def test_a_warning_is_one_line(runner: CliRunner, folder: Path) -> None:
    result = runner.invoke(app, [*FIT, "--max-iter", "2", "--tol", "0"])
    assert result.exit_code == 0
    warnings = [line for line in result.stderr.splitlines() if line.startswith("Warning:")]
    assert len(warnings) == 1
    assert "max_iter=2" in warnings[0]
    assert "2, not converged" in result.stdout


# ------------------------------------------------------------------------------------------------------- options

#: Every parameter of the estimator: what to add to the command, and what the model must then have.
OPTIONS: dict[str, tuple[list[str], Any]] = {
    "n_components": (["-k", "7"], 7),
    "coreset_size": (["--coreset-size", "500"], 500),
    "covariance_type": (["--covariance-type", "isotropic"], "isotropic"),
    "metric": (["--metric", "cosine"], "cosine"),
    "mixing": (["--mixing", "equal"], "equal"),
    "n_shared": (["--n-shared", "2"], 2),
    "reassign": (["--reassign"], True),
    "truncation": (["--truncation", "3"], 3),
    "n_neighbors": (["--n-neighbors", "4"], 4),
    "n_explore": (["--n-explore", "2"], 2),
    "search": (["--search", "pointwise"], "pointwise"),
    "n_candidates": (["--n-candidates", "6"], 6),
    "init": (["--init", "k-means++"], "k-means++"),
    "chain_length": (["--chain-length", "5"], 5),
    "n_warmup": (["--n-warmup", "1"], 1),
    "tol": (["--tol", "0.01"], 0.01),
    "max_iter": (["--max-iter", "11"], 11),
    "relaxation": (["--relaxation", "1.5"], 1.5),
    "n_init": (["--n-init", "2"], 2),
    "refine": (["--refine", "2"], 2),
    "reg_covar": (["--reg-covar", "0.001"], 0.001),
    "compute_labels": (["--compute-labels"], True),
    "random_state": (["--seed", "3"], 3),
    "n_threads": (["--threads", "1"], 1),
    "dtype": (["--dtype", "float64"], "float64"),
    "device": (["--device", "cpu"], "cpu"),
    "precision": (["--precision", "bf16"], "bf16"),
}
#: Those that have a meaning of their own here: tested above and below, checkpoints in test_resume.py.
OTHERS = {"verbose", "warm_start", "callbacks", "checkpoint", "checkpoint_every"}


def test_every_option_of_the_estimator_is_offered() -> None:
    assert set(inspect.signature(VCGMM).parameters) == {*OPTIONS, *OTHERS}
    offered = set(inspect.signature(fit.run).parameters)
    renamed = {"random_state": "seed", "n_threads": "threads"}
    # Callbacks are code; one of them is what Ctrl-C works with.
    assert {renamed.get(name, name) for name in {*OPTIONS, *OTHERS} - {"callbacks"}} <= offered


def test_defaults_are_those_of_the_estimator() -> None:
    defaults = VCGMM().get_params()
    for name, parameter in inspect.signature(fit.run).parameters.items():
        if name in defaults and name not in ("n_components", "dtype", "warm_start", "verbose"):
            assert parameter.default == defaults[name], name


@pytest.mark.filterwarnings("ignore")
def test_every_option_reaches_the_model(runner: CliRunner, folder: Path, rows: np.ndarray) -> None:
    arguments = ["fit", "rows.npy", "-o", "new.vcgmm"]
    for added, _ in OPTIONS.values():
        arguments += added
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    expected = {name: value for name, (_, value) in OPTIONS.items()}
    model = VCGMM.load("new.vcgmm")
    parameters = model.get_params()
    assert {name: parameters[name] for name in expected} == expected
    assert same(model, VCGMM(**expected).fit(rows))


def test_variances_of_the_clusters_own(runner: CliRunner, folder: Path, rows: np.ndarray) -> None:
    own = [*FIT, "--covariance-type", "diag", "--mixing", "learned", "--n-shared", "1", "-q"]
    assert runner.invoke(app, own).exit_code == 0
    model = VCGMM.load("new.vcgmm")
    assert model.covariances_.shape == (9, 2)
    assert same(model, VCGMM(9, covariance_type="diag", n_shared=1, random_state=model.random_state).fit(rows))
    result = runner.invoke(app, [*FIT, "--mixing", "some", "--force"])
    assert result.exit_code == 2
    assert "choose from equal, learned" in result.output


@pytest.mark.parametrize(
    ("text", "size"), [("auto", "auto"), ("all", None), ("0.25", 0.25), ("1e3", 1000), ("300", 300)]
)
def test_sizes_of_coresets(runner: CliRunner, folder: Path, text: str, size: Any) -> None:
    assert runner.invoke(app, [*FIT, "--coreset-size", text, "-q"]).exit_code == 0
    assert VCGMM.load("new.vcgmm").coreset_size == size


def test_means_from_a_file(runner: CliRunner, folder: Path, rows: np.ndarray) -> None:
    np.save("means.npy", rows[:9])
    assert runner.invoke(app, [*FIT, "--init", "means.npy", "-q"]).exit_code == 0
    model = VCGMM.load("new.vcgmm")
    np.testing.assert_array_equal(model.init, rows[:9])
    assert same(model, VCGMM(9, init=rows[:9], random_state=0).fit(rows))


def test_a_warm_start_goes_on_from_a_model(
    runner: CliRunner, folder: Path, rows: np.ndarray, fitted: VCGMM
) -> None:
    arguments = ["fit", "rows.npy", "--warm-start", "model.vcgmm", "-o", "new.vcgmm", "--seed", "0", "-q"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    model = VCGMM.load("new.vcgmm")
    # Without -k it has as many clusters, and it is no warm start any more.
    assert (model.n_components, model.warm_start) == (9, False)
    again = VCGMM.load("model.vcgmm").set_params(warm_start=True, coreset_size="auto").fit(rows)
    assert same(model, again)
    result = runner.invoke(app, [*arguments, "-k", "5", "--force"])
    assert result.exit_code == 1
    assert "warm_start=True cannot go on" in result.stderr


def test_weights_from_a_file(runner: CliRunner, folder: Path, rows: np.ndarray) -> None:
    weights = np.random.default_rng(0).uniform(1, 3, size=len(rows))
    expected = VCGMM(9, random_state=0).fit(rows, sample_weight=weights)
    np.save("w.npy", weights)
    np.savetxt("w.csv", weights)
    for file in ("w.npy", "w.csv"):
        assert runner.invoke(app, [*FIT, "--weights", file, "-q", "--force"]).exit_code == 0
        assert same(VCGMM.load("new.vcgmm"), expected)
    np.save("w.npy", weights[:7])
    result = runner.invoke(app, [*FIT, "--weights", "w.npy", "--force"])
    assert result.exit_code == 1
    assert "sample_weight has shape (7,), but X has 2000 rows" in result.stderr


def test_a_coreset_takes_the_place_of_the_data(runner: CliRunner, folder: Path) -> None:
    result = runner.invoke(app, ["fit", "core.vcgmm", "-k", "9", "--seed", "0", "-o", "new.vcgmm", "-v"])
    assert result.exit_code == 0, result.output
    assert "core.vcgmm: a coreset" in result.stderr
    core = load_coreset("core.vcgmm")
    expected = VCGMM(9, coreset_size=None, random_state=0).fit(core.points, sample_weight=core.weights)
    assert same(VCGMM.load("new.vcgmm"), expected)
    np.save("w.npy", np.ones(5))
    result = runner.invoke(app, [*FIT[:1], "core.vcgmm", *FIT[2:], "--weights", "w.npy", "--force"])
    assert result.exit_code == 1
    assert "has weights of its own" in result.stderr


def test_the_coreset_is_kept_when_asked_for(runner: CliRunner, folder: Path) -> None:
    assert runner.invoke(app, [*FIT, "--coreset-size", "500", "--save-coreset", "-q"]).exit_code == 0
    assert 400 < len(VCGMM.load("new.vcgmm").coreset_) <= 500


def as_npy(rows: np.ndarray) -> bytes:
    np.save("piped.npy", rows)
    return Path("piped.npy").read_bytes()


@pytest.mark.parametrize("form", ["npy", "csv"])
def test_rows_from_standard_input(runner: CliRunner, folder: Path, rows: np.ndarray, form: str) -> None:
    text = "x,y\n" + "\n".join(",".join(map(repr, row)) for row in rows.tolist())
    piped = as_npy(rows) if form == "npy" else text.encode()
    result = runner.invoke(app, ["fit", "-", *FIT[2:]], input=piped)
    assert result.exit_code == 0, result.output
    expected = VCGMM(9, random_state=0).fit(rows if form == "npy" else rows.astype(float))
    assert same(VCGMM.load("new.vcgmm"), expected)


# -------------------------------------------------------------------------------------------------------- mistakes

FAILURES: dict[str, tuple[list[str], str]] = {
    "no such file": (["nothing.npy"], "nothing.npy does not exist"),
    "a model as rows": (["model.vcgmm"], "model.vcgmm is of an unknown kind"),
    "too few rows": (["rows.npy", "-k", "5000"], "n_samples=2000 is fewer than n_components=5000"),
    "rows that are not finite": (["nan.npy"], "Input nan.npy contains NaN: the first in row 3, feature 1"),
    "one dimension": (["flat.npy"], "flat.npy holds an array of shape (5,)"),
    "a bad table": (["bad.csv"], "bad.csv has 'b', not a number, in line 1, column 2"),
    "means of another width": (["rows.npy", "--init", "nan.npy"], "init"),
    "means that are not there": (["rows.npy", "--init", "means.npy"], "means.npy does not exist"),
    "a warm start from rows": (["rows.npy", "--warm-start", "rows.npy"], "rows.npy is not a file of vcgmm"),
    "a warm start from nothing": (["rows.npy", "--warm-start", "none.vcgmm"], "none.vcgmm: No such file"),
    "a relaxation beyond its range": (["rows.npy", "--relaxation", "2"], "relaxation=2.0 is not valid"),
    "two from one pipe": (["-", "--weights", "-"], "both the rows and the weights"),
    "an empty pipe": (["-"], "standard input is empty"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_are_one_line(runner: CliRunner, folder: Path, rows: np.ndarray, name: str) -> None:
    arguments, message = FAILURES[name]
    bad = rows.copy()
    bad[3, 1] = np.nan
    np.save("nan.npy", bad)
    np.save("flat.npy", np.ones(5))
    Path("bad.csv").write_text("1,b\n2,3\n")
    result = runner.invoke(app, ["fit", "-k", "9", "-o", "new.vcgmm", "-q", *arguments])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert not Path("new.vcgmm").exists()


USAGE: dict[str, tuple[list[str], str]] = {
    "no number of clusters": (["rows.npy"], "--n-components"),
    "no clusters": (["rows.npy", "-k", "0"], "--n-components"),
    "no output": (["rows.npy", "-k", "9"], "--output"),
    "a size that is none": (["rows.npy", "-k", "9", "--coreset-size", "much"], "--coreset-size"),
    "a size of a half": (["rows.npy", "-k", "9", "--coreset-size", "2.5"], "--coreset-size"),
    "an unknown search": (["rows.npy", "-k", "9", "--search", "wild"], "choose from blocked, pointwise"),
    "an unknown start": (["rows.npy", "-k", "9", "--init", "wild"], "or give a file of means"),
    "an unknown type": (["rows.npy", "-k", "9", "--dtype", "int8"], "choose from auto, float32, float64"),
    "an unknown covariance": (["rows.npy", "-k", "9", "--covariance-type", "full"], "choose from isotropic"),
    "an unknown metric": (["rows.npy", "-k", "9", "--metric", "manhattan"], "choose from euclidean, cosine"),
    "both voices": (["rows.npy", "-k", "9", "-q", "-v"], "exclude each other"),
    "a folder": (["rows.npy", "-k", "9", "-o", "."], "is a directory"),
    "a folder that is not there": (["rows.npy", "-k", "9", "-o", "no/model.vcgmm"], "does not exist"),
    "an unknown option": (["rows.npy", "-k", "9", "--wild"], "--wild"),
}


@pytest.mark.parametrize("name", USAGE)
def test_mistakes_in_the_arguments_exit_with_two(runner: CliRunner, folder: Path, name: str) -> None:
    arguments, message = USAGE[name]
    output = [] if name == "no output" else ["-o", "new.vcgmm"]
    result = runner.invoke(app, ["fit", *output, *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert not Path("new.vcgmm").exists()


def test_an_existing_model_is_kept_and_no_work_is_done(runner: CliRunner, folder: Path) -> None:
    Path("new.vcgmm").write_text("mine")
    result = runner.invoke(app, [*FIT[:1], "nothing.npy", *FIT[2:]])
    # Told before the rows were even looked for.
    assert result.exit_code == 2
    assert "new.vcgmm exists; overwrite it with --force" in result.stderr
    assert Path("new.vcgmm").read_text() == "mine"
    # And a fit that fails leaves it, also with --force.
    assert runner.invoke(app, [*FIT[:1], "nothing.npy", *FIT[2:], "--force"]).exit_code == 1
    assert Path("new.vcgmm").read_text() == "mine"
    assert runner.invoke(app, [*FIT, "--force", "-q"]).exit_code == 0
    assert VCGMM.load("new.vcgmm").n_components == 9


def test_the_data_are_never_overwritten(runner: CliRunner, folder: Path) -> None:
    before = Path("rows.npy").read_bytes()
    result = runner.invoke(app, ["fit", "rows.npy", "-k", "9", "-o", "./rows.npy", "--force"])
    assert result.exit_code == 2
    assert "is also what is read" in result.stderr
    assert Path("rows.npy").read_bytes() == before


def test_debug_shows_where(runner: CliRunner, folder: Path) -> None:
    result = runner.invoke(app, ["fit", "nothing.npy", "-k", "9", "-o", "new.vcgmm", "--debug"])
    assert result.exit_code == 1
    assert isinstance(result.exception, FileNotFoundError)
