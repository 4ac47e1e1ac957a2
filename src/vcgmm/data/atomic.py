"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str], token: str | None = None) -> Iterator[Path]:
    """A temporary path beside `path`, which takes its place when the block ends without an exception.

    Whoever reads `path` meanwhile, or after a crash, finds the old file or none, never a part of the new one.

    Parameters
    ----------
    path : path-like
        An existing file is replaced, also behind a symbolic link.
    token : str, optional
        Part of the temporary name; by default random, so that several may write at once.  A file that is written
        again and again has one of its own: what a process that was killed has left is then replaced too.

    Yields
    ------
    pathlib.Path
        Where to write: an empty file in the same folder, with the same suffix.

    Raises
    ------
    OSError
        If `path` is there and is not a regular file, or cannot be written.
    """
    final = Path(os.path.realpath(path))
    if final.exists() and not final.is_file():
        raise OSError(f"{path} is not a regular file: give the name of a file.")
    if not final.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: the folder {final.parent} does not exist.")
    temporary = final.with_name(f".{final.stem}.{token or secrets.token_hex(4)}{final.suffix}")
    if token is not None:
        temporary.unlink(missing_ok=True)
    try:
        # Made at once, so that a folder that may not be written to is told in Python's words, before the work.
        temporary.touch(exist_ok=False)
        mode = (final if final.exists() else temporary).stat().st_mode
        yield temporary
        temporary.chmod(mode)  # some writers make a new file that only its owner may read
        # Without this a crash of the machine could leave the new name with an empty file.
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(final)
    finally:
        temporary.unlink(missing_ok=True)
