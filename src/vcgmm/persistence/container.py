"""The file itself: named arrays, a JSON header and a checksum over every byte, as a safetensors file.

A safetensors file is the length of its header (8 bytes), the header (JSON: type, shape and place of every tensor),
and the tensors. Ours has one entry in the header's `__metadata__`, named "vcgmm": a JSON text with

    sha256          checksum of the whole file, taken with these 64 digits as zeros
    format_version  what this module writes is FORMAT_VERSION; it reads that and everything before it
    kind            what the file holds: one of KINDS
    written_by      versions of vcgmm, Python and NumPy

and whatever the kind adds. Any other reader of safetensors can read the arrays.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from .._version import __version__
from ..data.atomic import replacing

#: Raised only when a file of before could not be read any more by the same code; tests/golden keeps one of each.
FORMAT_VERSION = 1

KINDS = ("model", "coreset", "checkpoint")

#: Types that a safetensors file has a name for.
TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
         "float64")  # fmt: skip

#: The limit of the safetensors library; a longer header is no header.
LONGEST_HEADER = 100_000_000

_ENTRY = "vcgmm"
_BLANK = "0" * 64
# The JSON text is itself a JSON string in the header, hence the backslashes; in a user's string, say the name of
# a feature, there would be three of them.
_CHECKSUM = re.compile(rb'\{\\"sha256\\":\\"([0-9a-f]{64})\\"')
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Content:
    """What a file holds.

    Attributes
    ----------
    header : dict
        The JSON header.
    tensors : dict of arrays
    """

    header: dict[str, Any]
    tensors: dict[str, np.ndarray]


def write(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    token: str | None = None,
) -> None:
    """Write a file, as a whole or not at all.

    Parameters
    ----------
    path : path-like
        Replaced if it exists.
    kind : str
    header : mapping
        Added to what stands in the header of every file; must be JSON.
    tensors : mapping of arrays
    token : str, optional
        Part of the temporary name, as in `replacing`.

    Raises
    ------
    ValueError
        If an array has a type that a file cannot hold.
    """
    check_types(tensors)
    entry = {
        "sha256": _BLANK,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "written_by": {
            "vcgmm": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        **header,
    }
    text = json.dumps(entry, separators=(",", ":"), allow_nan=False)
    with replacing(path, token) as temporary:
        # In the order and byte order of this machine, or the library would write other bytes than we mean.
        plain = {name: np.require(tensor, tensor.dtype.newbyteorder("="), "C") for name, tensor in tensors.items()}
        try:
            save_file(plain, temporary, {_ENTRY: text})
        except SafetensorError as error:  # no room, most likely
            raise OSError(f"{path} could not be written: {error}") from None
        with temporary.open("rb+") as file:
            front = _front(file)
            place = _CHECKSUM.search(front)
            if place is None:
                raise RuntimeError("the safetensors library wrote a header in which the checksum has no place.")
            digest = _digest(file, front)
            file.seek(place.start(1))
            file.write(digest.encode())


def check_types(tensors: Mapping[str, np.ndarray]) -> None:
    """Refuse an array of a type that a file cannot hold."""
    for name, tensor in tensors.items():
        if tensor.dtype.name not in TYPES:
            raise ValueError(
                f"{name} has the dtype {tensor.dtype}, which a file cannot hold: convert it to float64 first."
            )


def read(path: str | os.PathLike[str], kind: str) -> Content:
    """Read a file and check that not a byte of it has changed.

    Parameters
    ----------
    path : path-like
    kind : str
        What is expected in it.

    Raises
    ------
    ValueError
        If it is of another program, kind or newer format, or if it is damaged.
    """
    header = read_header(path)
    if header["kind"] != kind:
        raise ValueError(f"{path} holds a {header['kind']}, but a {kind} is needed here.")
    try:
        with safe_open(path, framework="np") as file:
            tensors = {name: _own(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, KeyError, TypeError) as error:
        # Not by accident: the checksum fits.
        raise ValueError(f"{path} is not a valid safetensors file: {error}. Get a new copy of it.") from None
    return Content(header, tensors)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Check a whole file against its checksum, and return its JSON header.

    Raises
    ------
    ValueError
        If it is of another program or newer format, or if it is damaged.
    """
    with Path(path).open("rb") as file:
        front = _checked_front(file, path)
        header = _entry(front, path)
        version = header.get("format_version")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise ValueError(f"{path} is damaged: its format version is {version!r}. Get a new copy of it.")
        if version > FORMAT_VERSION:
            raise ValueError(
                f"{path} has format version {version}, but this vcgmm ({__version__}) knows versions up to "
                f"{FORMAT_VERSION}: upgrade vcgmm to read it."
            )
        _check_length(file, front, path)
        place = _CHECKSUM.search(front)
        if place is None or place[1].decode() != _digest(file, front):
            raise ValueError(f"{path} is damaged: its checksum does not fit. Get a new copy of it.")
    if header.get("kind") not in KINDS:
        raise ValueError(f"{path} holds a {header.get('kind')!r}, of which this vcgmm knows nothing.")
    return header


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """What a file of ours says it holds, one of KINDS as a rule; None for any other file."""
    with Path(path).open("rb") as file:
        try:
            kind = _entry(_checked_front(file, path), path).get("kind")
        except ValueError:
            return None
    return kind if isinstance(kind, str) else None


def _front(file: BinaryIO) -> bytes:
    """Length and JSON header of a safetensors file; fewer bytes where the file ends before."""
    file.seek(0)
    front = file.read(9)
    length = int.from_bytes(front[:8], "little")
    # Any other file begins with some number too: do not read that much of it.
    return front + file.read(length - 1) if front[8:] == b"{" and 0 < length <= LONGEST_HEADER else front


def _checked_front(file: BinaryIO, path: object) -> bytes:
    front = _front(file)
    length = int.from_bytes(front[:8], "little")
    if not front[8:].startswith(b"{") or length > LONGEST_HEADER:
        raise ValueError(f"{path} is not a file of vcgmm: its beginning is unknown. Check the name.")
    if len(front) < 8 + length:
        raise ValueError(
            f"{path} is not a file of vcgmm, or is cut off: it ends before its header does. Check the name, or "
            f"get a new copy of it."
        )
    return front


def _entry(front: bytes, path: object) -> dict[str, Any]:
    """Our entry in the header."""
    try:
        header = json.loads(front[8:])
        tensors = {name: facts["data_offsets"] for name, facts in header.items() if name != "__metadata__"}
        text = header.get("__metadata__", {}).get(_ENTRY)
        entry = json.loads(text) if text is not None else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError(
            f"{path} is not a file of vcgmm, or is damaged: its header is no valid JSON. Check the name, or get a "
            f"new copy of it."
        ) from None
    if entry is None:
        raise ValueError(
            f"{path} is a safetensors file with {len(tensors)} tensors, but not one that vcgmm wrote. Check the "
            f"name."
        )
    if not isinstance(entry, dict) or not isinstance(entry.get("written_by"), dict):
        raise ValueError(f"{path} is damaged: its header is not what vcgmm writes. Get a new copy of it.")
    return entry


def _check_length(file: BinaryIO, front: bytes, path: object) -> None:
    """Refuse a file that is shorter or longer than its header says."""
    header = json.loads(front[8:])
    try:
        ends = [int(facts["data_offsets"][1]) for name, facts in header.items() if name != "__metadata__"]
    except (ValueError, TypeError, LookupError, OverflowError):
        raise ValueError(
            f"{path} is damaged: its header has no places of tensors. Get a new copy of it."
        ) from None
    expected = len(front) + max(ends, default=0)
    size = file.seek(0, os.SEEK_END)
    if size != expected:
        wrong = "is cut off" if size < expected else "goes on after its end"
        raise ValueError(f"{path} {wrong}: it has {size:,} bytes instead of {expected:,}. Get a new copy of it.")


def _digest(file: BinaryIO, front: bytes) -> str:
    """SHA-256 of the whole file with the checksum's own digits as zeros."""
    place = _CHECKSUM.search(front)
    blank = front if place is None else front[: place.start(1)] + _BLANK.encode() + front[place.end(1) :]
    digest = hashlib.sha256(blank)
    file.seek(len(front))
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _own(tensor: np.ndarray) -> np.ndarray:
    """An array that may be written to: some versions of the library give views of their own memory."""
    return tensor if tensor.flags.writeable else tensor.copy()
