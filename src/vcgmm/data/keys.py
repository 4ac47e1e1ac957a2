"""Arrays by name, in files that hold several."""

from __future__ import annotations

from pathlib import Path


class ChoiceError(ValueError):
    """Which array is meant is not clear."""


def choose_key(name: str, keys: list[str], key: str | None) -> str:
    """The array that is meant: the one that is named, else the only one.

    Parameters
    ----------
    name : str
        The file.
    keys : list of str
        The arrays it holds.
    key : str or None

    Raises
    ------
    ChoiceError
    """
    if key is None and len(keys) == 1:
        return keys[0]
    if key is None or key not in keys:
        wanted = "say which one" if key is None else f"there is no {key!r}"
        raise ChoiceError(
            f"{name} holds the arrays {', '.join(keys) or 'none'}: {wanted}, as in "
            f"{Path(name).name}:{(keys or ['X'])[0]}."
        )
    return key
