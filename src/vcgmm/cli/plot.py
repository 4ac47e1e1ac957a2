"""`vcgmm plot`: pictures of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vcgmm import VCGMM, load_coreset
from vcgmm.cli.errors import guarded
from vcgmm.cli.inputs import file_kind, read_rows
from vcgmm.cli.options import (
    ROWS,
    WRITING,
    Debug,
    Device,
    Force,
    Json,
    Quiet,
    Threads,
    check_voice,
    completing,
    elsewhere,
    one_of,
)
from vcgmm.cli.outputs import check_picture
from vcgmm.cli.results import file_size, tell
from vcgmm.data.atomic import replacing
from vcgmm.plotting import PICTURES, plot_coreset, plot_sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLE = "Example: vcgmm plot model.vcgmm digits.npy --image 28x28 -o sheet.png"


def _check_pictures(names: list[str] | None) -> list[str]:
    return [one_of(PICTURES)(name) for name in names or []]


def _parse_image(text: str | None) -> tuple[int, ...] | None:
    """28x28, 32x32x3 or 3x32x32."""
    if text is None:
        return None
    sizes = text.lower().replace("×", "x").split("x")
    if not (2 <= len(sizes) <= 3 and all(size.isdecimal() and int(size) > 0 for size in sizes)):
        raise typer.BadParameter(
            f"{text!r} is not a shape: give height x width, as 28x28, or with colours 32x32x3 or 3x32x32.",
            param_hint="--image",
        )
    return tuple(map(int, sizes))


@guarded
def run(
    file: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model, or a coreset of two features.", show_default=False)
    ],
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help=f"Rows, for pictures that show them: {ROWS}.", show_default=False),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The picture to write: .png, .pdf, .svg …", rich_help_panel=WRITING),
    ] = Path("vcgmm.png"),
    picture: Annotated[
        list[str] | None,
        typer.Option(
            "--picture",
            "-p",
            metavar="NAME",
            callback=_check_pictures,
            autocompletion=completing(PICTURES),
            help=f"Only this one, of {', '.join(PICTURES)}; may be repeated. Default: all that can be drawn.",
            show_default=False,
        ),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(
            metavar="SHAPE",
            help="Draw centres as images of this shape: 28x28, 32x32x3, or plane by plane 3x32x32.",
            show_default=False,
        ),
    ] = None,
    dpi: Annotated[int, typer.Option(min=10, max=2400, help="Pixels per inch.", rich_help_panel=WRITING)] = 100,
    force: Force = False,
    threads: Threads = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001 (for `guarded`)
) -> None:
    """Draw a model: bound, sizes, time, errors, a map of the centres, the centres as images."""
    shape = _parse_image(image)
    check_picture(output, force, inputs=[str(file), *([data] if data else [])])
    figure: Figure
    if file_kind(str(file)) == "coreset":
        figure = _draw_coreset(file, data, picture)
        drawn = ["coreset"]
    else:
        voice = check_voice(quiet, verbose=False)
        model = VCGMM.load(file).set_params(n_threads=threads, verbose=voice, **elsewhere(device))
        rows = None if data is None else read_rows(data)
        figure = plot_sheet(model, rows, pictures=picture or None, image=shape)
        drawn = [ax.get_gid() or "" for ax in figure.axes]
    with replacing(output) as temporary:
        figure.savefig(temporary, dpi=dpi)
    result = {"output": str(output), "pictures": drawn}
    table = {
        "pictures": ", ".join(drawn),
        "written": f"{output} ({file_size(output.stat().st_size)})",
    }
    tell(result, table, as_json=as_json, quiet=quiet)


def _draw_coreset(file: Path, data: str | None, pictures: list[str] | None) -> Figure:
    from matplotlib.figure import Figure

    if data is None:
        raise typer.BadParameter("a coreset is drawn over the data it came from: give it too.", param_hint="DATA")
    if pictures not in (None, [], ["coreset"]):
        raise typer.BadParameter(f"of {file}, a coreset, only 'coreset' can be drawn.", param_hint="--picture")
    figure = Figure(figsize=(8, 8), layout="constrained")
    plot_coreset(load_coreset(file), read_rows(data), figure.add_subplot())
    return figure
