"""Lengths that are there as numbers become a file, which a study can name."""

from __future__ import annotations

import atexit
import hashlib
import operator
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def as_path(lengths: Any, out: str | os.PathLike | None) -> str | os.PathLike:
    """A path stays; numbers are written into a file. TypeError for what is neither, with its place."""
    if isinstance(lengths, (str, os.PathLike)):
        return lengths
    text = "".join(f"{length}\n" for length in _counts(lengths))
    path = _place(text, out)
    if not path.exists() or path.read_text() != text:
        part = path.with_suffix(".part")
        part.write_text(text)
        part.replace(path)
    return path


def in_study(study: Mapping[str, Any], out: str | os.PathLike | None) -> Mapping[str, Any]:
    """The study with a file in place of the numbers of ``data.lengths``."""
    data = study.get("data")
    if not isinstance(data, Mapping) or not _are_numbers(data.get("lengths")):
        return study
    return {**study, "data": {**data, "lengths": _named(data["lengths"], out)}}


def in_overrides(overrides: Mapping[str, Any], out: str | os.PathLike | None) -> Mapping[str, Any]:
    """The same for values by their paths."""
    if not _are_numbers(overrides.get("data.lengths")):
        return overrides
    return {**overrides, "data.lengths": _named(overrides["data.lengths"], out)}


def _are_numbers(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping, os.PathLike))


def _named(lengths: Any, out: str | os.PathLike | None) -> dict[str, str]:
    return {"file": str(Path(as_path(lengths, out)).resolve())}


def _counts(lengths: Any) -> Iterable[int]:
    if not _are_numbers(lengths):
        raise TypeError(f"lengths are a path or whole numbers, not {type(lengths).__name__}")
    for place, length in enumerate(lengths):
        try:
            yield operator.index(length)
        except TypeError:
            raise TypeError(f"lengths[{place}] is {length!r}, which is no whole number") from None


def _place(text: str, out: str | os.PathLike | None) -> Path:
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "lengths.txt"
    return own_folder() / f"lengths-{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"


_folders: list[Path] = []


def own_folder() -> Path:
    """A folder of this process, gone after it."""
    if not _folders:
        _folders.append(Path(tempfile.mkdtemp(prefix="hdpsim-")))
        atexit.register(shutil.rmtree, _folders[0], ignore_errors=True)
    return _folders[0]
