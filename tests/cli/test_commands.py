"""All commands but fit and demo."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread
from scipy import sparse
from typer.testing import CliRunner

import vcgmm
from vcgmm import VCGMM, Coreset, backends, lightweight_coreset, load_coreset
from vcgmm.cli import app
from vcgmm.validation import DeviceError

COMMANDS = ["fit", "predict", "score", "coreset", "merge", "info", "plot", "export", "demo"]


def run(runner: CliRunner, *arguments: str, code: int = 0, **options: Any) -> Any:
    result = runner.invoke(app, list(arguments), **options)
    assert result.exit_code == code, result.output
    return result


# -------------------------------------------------------------------------------------------------------- predict


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".tsv", ".parquet"])
def test_labels(runner: CliRunner, folder: Path, rows: np.ndarray, fitted: VCGMM, suffix: str) -> None:
    output = f"labels{suffix}"
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    result = run(runner, "predict", "model.vcgmm", "rows.npy", "-o", output)
    assert "2,000 rows in 9 of 9 clusters" in result.stdout
    assert result.stderr.startswith("predict")
    if suffix == ".parquet":
        from pyarrow import parquet

        labels = parquet.read_table(output)["label"].to_numpy()
    else:
        labels = np.load(output) if suffix == ".npy" else np.asarray(vcgmm.open(output))[:, 0]
    np.testing.assert_array_equal(labels, fitted.predict(rows))
    if suffix == ".npy":
        assert labels.dtype == np.int32


def test_labels_on_standard_output(runner: CliRunner, folder: Path, rows: np.ndarray, fitted: VCGMM) -> None:
    text = "\n".join(",".join(map(repr, row)) for row in rows[:5].tolist())
    result = run(runner, "predict", "model.vcgmm", "-", "-o", "-", "-q", input=text)
    assert list(map(int, result.stdout.split())) == fitted.predict(rows[:5]).tolist()
    assert result.stderr == ""
    run(runner, "predict", "model.vcgmm", "rows.npy", "-o", "-", "--json", code=2)


def test_approximate_labels(
    runner: CliRunner, folder: Path, fitted: VCGMM, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    exact = VCGMM.predict

    def predict(self: VCGMM, X: Any, method: str = "exact", **kwargs: Any) -> Any:
        asked.append(method)
        return exact(self, X, method, **kwargs)

    monkeypatch.setattr(VCGMM, "predict", predict)
    run(runner, "predict", "model.vcgmm", "rows.npy", "-o", "near.npy", "--approximate")
    run(runner, "predict", "model.vcgmm", "rows.npy", "-o", "exact.npy")
    assert asked == ["approximate", "exact"]
    np.testing.assert_array_equal(np.load("near.npy"), fitted.predict(rows))  # few clusters are all compared
    run(runner, "predict", "model.vcgmm", "rows.npy", "-o", "p.npz", "--proba", "--approximate", code=2)


def test_posteriors(runner: CliRunner, folder: Path, rows: np.ndarray, fitted: VCGMM) -> None:
    result = run(runner, "predict", "model.vcgmm", "rows.npy", "-o", "p.npz", "--proba", "--json")
    assert json.loads(result.stdout)["entries_per_row"] == 5
    written, expected = sparse.load_npz("p.npz"), fitted.predict_proba(rows)
    assert (written != expected).nnz == 0
    result = run(runner, "predict", "model.vcgmm", "rows.npy", "-o", "p.npy", "--proba", code=2)
    assert "does not end in a known format: .npz" in result.stderr


def test_threads_change_nothing(runner: CliRunner, folder: Path) -> None:
    for threads in ("1", "2"):
        run(runner, "predict", "model.vcgmm", "rows.npy", "-o", f"{threads}.npy", "--threads", threads, "-q")
    assert Path("1.npy").read_bytes() == Path("2.npy").read_bytes()


# ---------------------------------------------------------------------------------------------- coreset and score


def test_a_coreset(runner: CliRunner, folder: Path, rows: np.ndarray) -> None:
    arguments = ["coreset", "rows.npy", "-n", "500", "-o", "new.vcgmm", "--seed", "3"]
    result = run(runner, *arguments, "--json", "-v")
    expected = lightweight_coreset(rows, 500, random_state=3)
    core = load_coreset("new.vcgmm")
    np.testing.assert_array_equal(core.indices, expected.indices)
    np.testing.assert_array_equal(core.weights, expected.weights)
    facts = json.loads(result.stdout)
    assert facts["points"] == len(core)
    assert facts["total_weight"] == pytest.approx(core.weights.sum())
    told, progress = result.stderr.splitlines()
    assert told == "rows.npy: 2,000 rows of 2 features, float32"
    assert progress.split()[0] == "coreset"
    assert "4,000 rows read" in progress
    assert "exists; overwrite it with --force" in run(runner, *arguments, code=2).stderr
    assert f"{len(core)} points of weight" in run(runner, *arguments, "--force").stdout


def test_a_coreset_of_weighted_rows(runner: CliRunner, folder: Path, rows: np.ndarray) -> None:
    weights = np.random.default_rng(0).uniform(1, 9, size=len(rows))
    np.save("w.npy", weights)
    run(runner, "coreset", "rows.npy", "-n", "500", "-o", "new.vcgmm", "--seed", "3", "--weights", "w.npy", "-q")
    expected = lightweight_coreset(rows, 500, sample_weight=weights, random_state=3)
    np.testing.assert_array_equal(load_coreset("new.vcgmm").weights, expected.weights)


def test_a_smaller_coreset_of_a_coreset(runner: CliRunner, folder: Path) -> None:
    run(runner, "coreset", "core.vcgmm", "-n", "100", "-o", "new.vcgmm", "--seed", "3", "-q")
    core, new = Coreset.load("core.vcgmm"), Coreset.load("new.vcgmm")
    expected = core.reduce(100, random_state=3)
    np.testing.assert_array_equal(new.indices, expected.indices)  # rows of the data, not places in the coreset
    np.testing.assert_array_equal(new.weights, expected.weights)
    assert new.n_samples == core.n_samples == 2000


def test_shards_are_merged_and_fitted_to(runner: CliRunner, folder: Path, rows: np.ndarray) -> None:
    for shard in range(2):
        np.save("shard.npy", rows[shard::2])
        run(runner, "coreset", "shard.npy", "-n", "300", "-o", f"{shard}.vcgmm", "--seed", "0", "-q")
    result = run(runner, "merge", "0.vcgmm", "1.vcgmm", "-o", "both.vcgmm", "--json", "-v")
    parts = [Coreset.load(f"{shard}.vcgmm") for shard in range(2)]
    both, facts = Coreset.load("both.vcgmm"), json.loads(result.stdout)
    np.testing.assert_array_equal(both.points, np.vstack([part.points for part in parts]))
    assert both.indices is None
    assert (facts["coresets"], facts["n_samples"], facts["points"]) == (2, 2000, len(both))
    assert facts["total_weight"] == pytest.approx(sum(part.total_weight for part in parts))
    assert result.stderr.startswith("0.vcgmm: a coreset, ")
    run(runner, "merge", "0.vcgmm", "1.vcgmm", "-n", "200", "--seed", "1", "-o", "small.vcgmm", "-q")
    small = Coreset.load("small.vcgmm")
    np.testing.assert_array_equal(small.points, both.reduce(200, random_state=1).points)
    run(runner, "fit", "both.vcgmm", "-k", "9", "--seed", "0", "-o", "new.vcgmm", "--save-coreset", "-q")
    model = VCGMM.load("new.vcgmm")
    np.testing.assert_array_equal(model.means_, VCGMM(9, random_state=0).fit(both).means_)
    assert (model.coreset_.indices, model.coreset_.n_samples) == (None, 2000)


def test_what_cannot_be_merged_is_refused(runner: CliRunner, folder: Path) -> None:
    assert "is also what is read" in run(runner, "merge", "core.vcgmm", "-o", "core.vcgmm", "-f", code=2).stderr
    Coreset(np.ones((3, 5))).save("wide.vcgmm")
    result = run(runner, "merge", "core.vcgmm", "wide.vcgmm", "-o", "new.vcgmm", code=1)
    assert "coresets of 2 and of 5 features cannot be merged" in result.stderr
    assert (
        "holds a model, but a coreset is needed"
        in run(runner, "merge", "core.vcgmm", "model.vcgmm", "-o", "new.vcgmm", code=1).stderr
    )


def test_a_score(runner: CliRunner, folder: Path, rows: np.ndarray, fitted: VCGMM) -> None:
    result = run(runner, "score", "model.vcgmm", "rows.npy", "--json", "-q")
    facts = json.loads(result.stdout)
    assert facts["score"] == pytest.approx(fitted.score(rows))
    assert facts["quantization_error"] == pytest.approx(fitted.quantization_error(rows))
    assert facts["mean_squared_distance"] == pytest.approx(fitted.quantization_error(rows) / len(rows))
    text = run(runner, "score", "model.vcgmm", "rows.npy").stdout
    assert f"{fitted.score(rows):.8g}" in text
    assert f"{fitted.quantization_error(rows):.8g}" in text


def test_a_score_with_weights(runner: CliRunner, folder: Path, rows: np.ndarray, fitted: VCGMM) -> None:
    # The coreset's are unbiased estimates of those of all rows.
    facts = json.loads(run(runner, "score", "model.vcgmm", "core.vcgmm", "--json", "-q").stdout)
    core = load_coreset("core.vcgmm")
    assert facts["score"] == pytest.approx(fitted.score(core.points, sample_weight=core.weights))
    assert facts["score"] == pytest.approx(fitted.score(rows), rel=0.1)
    assert facts["quantization_error"] == pytest.approx(fitted.quantization_error(rows), rel=0.25)


# ----------------------------------------------------------------------------------------------------------- info


def test_info_of_a_model(runner: CliRunner, folder: Path, fitted: VCGMM) -> None:
    text = run(runner, "info", "model.vcgmm").stdout
    for expected in (
        "9 of 2 features, 9 active",
        f"{fitted.n_iter_}, converged",
        "coreset_",
        "n_samples        2,000",
        "dtype            float32",
        "coreset_size      800",
        f"vcgmm {vcgmm.__version__}",
        "format version 1",
        "change=inf",
    ):
        assert expected in text, expected
    lines = text.splitlines()
    title = "History" if fitted.n_iter_ <= 12 else f"History (12 of {fitted.n_iter_} iterations)"
    history = lines[lines.index(title) + 1 : lines.index("Versions") - 1]
    assert len(history) == min(12, fitted.n_iter_)
    assert history[-1].startswith(f"{fitted.n_iter_} ")
    assert f"F={fitted.lower_bound_:.8g}" in history[-1]


def test_info_of_a_model_as_json(runner: CliRunner, folder: Path, fitted: VCGMM) -> None:
    facts = json.loads(run(runner, "info", "model.vcgmm", "--json").stdout)
    assert facts["kind"] == "model"
    assert facts["parameters"]["coreset_size"] == 800
    assert facts["history"]["bound"] == fitted.lower_bounds_.tolist()
    assert facts["history"]["change"][0] is None  # JSON knows no infinity
    assert facts["has_coreset"]
    assert not facts["has_labels"]
    assert facts["training"]["n_samples"] == 2000
    assert set(facts["written_by"]) == {"vcgmm", "python", "numpy"}


def test_info_shows_arrays_by_their_shape(runner: CliRunner, folder: Path, rows: np.ndarray) -> None:
    VCGMM(9, init=rows[:9], random_state=0).fit(rows).save("given.vcgmm")
    assert "array of shape (9, 2)" in run(runner, "info", "given.vcgmm").stdout
    facts = json.loads(run(runner, "info", "given.vcgmm", "--json").stdout)
    assert facts["parameters"]["init"] == "array of shape (9, 2)"


def test_info_tells_active_clusters_where_they_were_counted(
    runner: CliRunner, folder: Path, rows: np.ndarray
) -> None:
    model = VCGMM(9, random_state=0).fit(rows)
    model.history_["active"] = np.arange(model.n_iter_) + 1000
    model.save("counted.vcgmm")
    assert f"active={999 + model.n_iter_:,}" in run(runner, "info", "counted.vcgmm").stdout


def test_info_of_a_coreset(runner: CliRunner, folder: Path) -> None:
    core = load_coreset("core.vcgmm")
    assert f"{len(core)} of 2 features, float32" in run(runner, "info", "core.vcgmm").stdout
    facts = json.loads(run(runner, "info", "core.vcgmm", "--json").stdout)
    assert (facts["kind"], facts["points"]) == ("coreset", len(core))


def test_info_of_rows(runner: CliRunner, folder: Path, rows: np.ndarray) -> None:
    assert "2,000 rows of 2 features" in run(runner, "info", "rows.npy").stdout
    facts = json.loads(run(runner, "info", "rows.npy", "--json").stdout)
    assert facts == {
        "kind": "rows",
        "n_samples": 2000,
        "n_features": 2,
        "dtype": "float32",
        "columns": None,
        "in_memory": False,
        "bytes": Path("rows.npy").stat().st_size,
    }
    np.savez("two.npz", a=rows, b=rows[:7])
    facts = json.loads(run(runner, "info", "two.npz:b", "--json").stdout)
    assert (facts["n_samples"], facts["bytes"]) == (7, Path("two.npz").stat().st_size)
    facts = json.loads(run(runner, "info", "-", "--json", input="1,2\n3,4\n").stdout)
    assert (facts["n_samples"], facts["dtype"], facts["in_memory"]) == (2, "float64", True)


def test_info_of_a_damaged_model(runner: CliRunner, folder: Path) -> None:
    whole = Path("model.vcgmm").read_bytes()
    for content in (whole[:-5], whole[:100], b"nonsense"):
        Path("model.vcgmm").write_bytes(content)
        result = run(runner, "info", "model.vcgmm", code=1)
        assert result.stderr.startswith("Error: model.vcgmm is ")
        assert result.stderr.count("\n") == 1


# ----------------------------------------------------------------------------------------------------------- plot


def test_a_sheet_of_pictures(runner: CliRunner, folder: Path) -> None:
    result = run(runner, "plot", "model.vcgmm", "rows.npy", "--image", "1x2", "-o", "sheet.png", "--dpi", "50")
    assert "bound, time, sizes, steps, errors, map, coreset, images" in result.stdout
    image = imread("sheet.png")
    assert min(image.shape[:2]) > 300
    assert image[..., :3].std() > 0.1


def test_pictures_by_name(runner: CliRunner, folder: Path) -> None:
    result = run(runner, "plot", "model.vcgmm", "-p", "sizes", "-p", "map", "-o", "two.svg", "--json")
    assert json.loads(result.stdout) == {"output": "two.svg", "pictures": ["sizes", "map"]}
    assert Path("two.svg").read_text().startswith("<?xml")


def test_a_coreset_over_its_data(runner: CliRunner, folder: Path) -> None:
    run(runner, "plot", "core.vcgmm", "rows.npy", "-o", "core.png")
    assert imread("core.png")[..., :3].std() > 0.05
    assert "give it too" in run(runner, "plot", "core.vcgmm", "-o", "c.png", code=2).stderr
    result = run(runner, "plot", "core.vcgmm", "rows.npy", "-p", "map", "-o", "c.png", code=2)
    assert "only 'coreset' can be drawn" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-p", "portrait"], 2, "'portrait' is not known: choose from bound"),
        (["--image", "big"], 2, "'big' is not a shape"),
        (["--image", "4x0"], 2, "'4x0' is not a shape"),
        (["-o", "picture.doc"], 2, "does not end in a known format"),
        (["-o", "model.vcgmm", "--force"], 2, "does not end in a known format"),
        (["--image", "5x5"], 1, "has 25 values, but the model has 2 features"),
        (["-p", "errors"], 1, "needs the data"),
        (["nothing.npy"], 1, "nothing.npy does not exist"),
    ],
)
def test_pictures_that_cannot_be_drawn(
    runner: CliRunner, folder: Path, arguments: list[str], code: int, message: str
) -> None:
    result = run(runner, "plot", "model.vcgmm", "-o", "picture.png", *arguments, code=code)
    assert message in result.stderr
    assert not Path("picture.png").exists()


def test_pictures_without_matplotlib(runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name)
    )
    result = run(runner, "plot", "model.vcgmm", "-o", "picture.png", code=1)
    assert "pip install vcgmm[plot]" in result.stderr


# --------------------------------------------------------------------------------------------------------- export


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".tsv"])
def test_centres_for_others(runner: CliRunner, folder: Path, fitted: VCGMM, suffix: str) -> None:
    run(runner, "export", "model.vcgmm", f"centers{suffix}")
    np.testing.assert_array_equal(vcgmm.open(f"centers{suffix}"), fitted.means_)
    assert "--force" in run(runner, "export", "model.vcgmm", f"centers{suffix}", code=2).stderr


def test_centres_as_vectors_and_columns(runner: CliRunner, folder: Path, fitted: VCGMM) -> None:
    result = run(runner, "export", "model.vcgmm", "centers.fvecs", "--json")
    assert json.loads(result.stdout) == {"output": "centers.fvecs", "n_components": 9, "n_features": 2}
    vectors = np.fromfile("centers.fvecs", "<f4").reshape(9, 3)[:, 1:]
    np.testing.assert_array_equal(vectors, fitted.means_.astype(np.float32))
    parquet = pytest.importorskip("pyarrow.parquet")
    run(runner, "export", "model.vcgmm", "centers.parquet", "-q")
    table = parquet.read_table("centers.parquet")
    assert table.column_names == ["f0", "f1"]
    np.testing.assert_array_equal(table["f1"].to_numpy(), fitted.means_[:, 1])


@pytest.mark.parametrize("kind", ["flat", "ivf"])
def test_centres_as_an_index(runner: CliRunner, folder: Path, rows: np.ndarray, fitted: VCGMM, kind: str) -> None:
    faiss = pytest.importorskip("faiss")
    run(runner, "export", "model.vcgmm", "centers.faiss", "--index", kind)
    index = faiss.read_index("centers.faiss")
    quantizer = index if kind == "flat" else faiss.downcast_index(index.quantizer)
    np.testing.assert_array_equal(quantizer.search(rows, 1)[1][:, 0], fitted.predict(rows))
    if kind == "ivf":
        assert (index.is_trained, index.nlist, index.ntotal) == (True, 9, 0)


@pytest.mark.parametrize(("suffix", "package"), [(".parquet", "pyarrow"), (".faiss", "faiss")])
def test_formats_that_need_a_package(
    runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, package: str
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find_spec(name))
    result = run(runner, "export", "model.vcgmm", f"centers{suffix}", code=1)
    assert f"{suffix} files need {package}, which is not installed: pip install" in result.stderr


def test_exports_that_cannot_be(runner: CliRunner, folder: Path) -> None:
    assert "known format" in run(runner, "export", "model.vcgmm", "centers.doc", code=2).stderr
    assert (
        "choose from flat, ivf"
        in run(runner, "export", "model.vcgmm", "c.faiss", "--index", "tree", code=2).stderr
    )
    result = run(runner, "export", "core.vcgmm", "centers.npy", code=1)
    assert "core.vcgmm holds a coreset, but a model is needed here" in result.stderr


# ----------------------------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example(runner: CliRunner, name: str) -> None:
    text = run(runner, name, "--help").output
    assert f"Example: vcgmm {name} " in text
    assert "--debug" in text


def test_help_lists_all_commands(runner: CliRunner) -> None:
    text = run(runner, "--help").output
    assert all(f" {name} " in text for name in COMMANDS)
    assert "--install-completion" in text


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("vcgmm p", ["predict", "plot"]),
        ("vcgmm fit --n-in", ["--n-init"]),
        ("vcgmm fit --search p", ["pointwise"]),
        ("vcgmm fit --init ", ["two_level", "afkmc2", "k-means++", "random"]),
        ("vcgmm plot --picture s", ["sizes", "steps"]),
        ("vcgmm export --index i", ["ivf"]),
    ],
)
def test_completion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str, offered: list[str]
) -> None:
    monkeypatch.setenv("_VCGMM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    monkeypatch.setattr(sys, "argv", ["vcgmm"])
    with pytest.raises(SystemExit):
        vcgmm.cli.main()
    assert sorted(capsys.readouterr().out.split()) == sorted(offered)


def test_unexpected_errors_ask_for_debug(runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("odd")

    monkeypatch.setattr(VCGMM, "predict", fail)
    result = run(runner, "predict", "model.vcgmm", "rows.npy", "-o", "labels.npy", "-q", code=1)
    assert result.stderr == "Error: KeyError: 'odd'. Run it again with --debug to see where.\n"
    monkeypatch.setattr(VCGMM, "predict", lambda *_, **__: [][1])
    run(runner, "predict", "model.vcgmm", "rows.npy", "-o", "labels.npy", "-q", code=1)


def test_too_little_memory_is_explained(runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(VCGMM, "predict", fail)
    result = run(runner, "predict", "model.vcgmm", "rows.npy", "-o", "labels.npy", "-q", code=1)
    assert "not enough memory" in result.stderr


@pytest.mark.parametrize(
    "error",
    [MemoryError("cuda:0 is full. Use device='cpu'."), DeviceError("cuda:0 is not there. Use device='cpu'.")],
)
def test_errors_that_say_what_to_do_are_told_as_they_are(
    runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(VCGMM, "predict", fail)
    result = run(runner, "predict", "model.vcgmm", "rows.npy", "-o", "labels.npy", "-q", code=1)
    assert result.stderr == f"Error: {error}\n"


@pytest.mark.parametrize(
    "command", [["predict", "-o", "labels.npy"], ["score"], ["plot", "-o", "sheet.png", "--picture", "errors"]]
)
def test_a_model_from_a_gpu_computes_where_it_is_told_to(
    runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    def there_is_none(name: str, _precision: str) -> None:
        raise DeviceError(f"device={name!r} is not there: use device='cpu'.")

    monkeypatch.setattr(backends, "make_gpu", there_is_none)
    VCGMM.load(folder / "model.vcgmm").set_params(device="cuda").save(folder / "there.vcgmm")
    arguments = [command[0], "there.vcgmm", "rows.npy", *command[1:], "-q"]
    result = run(runner, *arguments, code=1)
    assert result.stderr == "Error: device='cuda' is not there: use device='cpu'.\n"
    run(runner, *arguments, "--device", "cpu")


def test_an_interrupt_anywhere_writes_nothing(
    runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(VCGMM, "predict", interrupt)
    result = run(runner, "predict", "model.vcgmm", "rows.npy", "-o", "labels.npy", code=130)
    assert "Interrupted: nothing was written." in result.stderr
    assert not Path("labels.npy").exists()


def test_a_terminal_is_no_standard_input(runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vcgmm.cli import inputs

    class Terminal:
        @staticmethod
        def isatty() -> bool:
            return True

    monkeypatch.setattr(inputs.sys, "stdin", Terminal())
    with pytest.raises(ValueError, match="standard input is a terminal"):
        inputs.read_rows("-")


def test_tables_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from vcgmm.cli.results import file_size, show

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    show({"name": "[bold]text", "longer name": "other"}, "Title")
    shown = capsys.readouterr().out
    assert "\x1b[1m" in shown
    assert "[bold]text" in shown
    monkeypatch.setenv("NO_COLOR", "1")
    show({"name": "[bold]text", "longer name": "other"})
    assert capsys.readouterr().out == "name         [bold]text\nlonger name  other\n"
    assert [file_size(n) for n in (12, 1234, 5.6e7, 7.8e9, 3e12)] == [
        "12 bytes",
        "1.23 kB",
        "56 MB",
        "7.8 GB",
        "3 TB",
    ]
