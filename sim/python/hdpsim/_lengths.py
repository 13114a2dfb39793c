"""Lengths that are there as numbers become a file, which a study can name."""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import operator
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


LONGEST = 2**40  # tokens of a document
MOST_WITHOUT_LENGTH = 10_000_000  # of an iterable that does not say how many it has: it may never end


def as_path(lengths: Any, out: str | os.PathLike | None) -> str | os.PathLike:
    """A path stays; numbers are written into a file. TypeError for what is neither, InputError for what is no length,
    each with its place."""
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
    not_numbers = (str, bytes, bytearray, memoryview, Mapping, os.PathLike)
    return isinstance(value, Iterable) and not isinstance(value, not_numbers)


def _named(lengths: Any, out: str | os.PathLike | None) -> dict[str, str]:
    return {"file": str(Path(as_path(lengths, out)).resolve())}


def _counts(lengths: Any) -> Iterable[int]:
    if not _are_numbers(lengths):
        raise TypeError(f"lengths are a path or whole numbers, not {type(lengths).__name__}")
    most = None if hasattr(lengths, "__len__") else MOST_WITHOUT_LENGTH
    for place, length in enumerate(lengths):
        if place == most:
            raise _input_error(f"lengths has more than {most:,} items and no length of its own: does it end?")
        yield _count(place, length)


def _count(place: int, length: Any) -> int:
    if is_truth_value(length):
        raise TypeError(f"lengths[{place}] is {length!r}, a truth value: a length is a whole number")
    try:
        tokens = operator.index(length)
    except TypeError:
        raise TypeError(f"lengths[{place}] is {length!r}, which is no whole number") from None
    if not 1 <= tokens <= LONGEST:
        raise _input_error(f"lengths[{place}] is {tokens}: a length is a whole number of tokens from 1 to 2^40")
    return tokens


def is_truth_value(value: Any) -> bool:
    """Also those of NumPy and PyTorch, as masks have them."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")


def _input_error(message: str) -> ValueError:
    from . import InputError

    return InputError(f"error: {message}", [("", 0, 0, message, "")])


def _place(text: str, out: str | os.PathLike | None) -> Path:
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "lengths.txt"
    return own_folder() / f"lengths-{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"


_folders: list[Path] = []
_PREFIX = "hdpsim-python-"
_LOCK = ".lock"


def own_folder() -> Path:
    """A folder of this process, gone after it; those of processes that were killed are removed on the way."""
    if not _folders:
        _remove_abandoned()
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Held as long as this process lives. It gets its name when it is held, so that nobody finds it free before.
        lock = os.open(folder / (_LOCK + ".new"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(folder / (_LOCK + ".new"), folder / _LOCK)
        _folders.append(folder)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return _folders[0]


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        try:
            if folder.lstat().st_uid != os.geteuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # its process lives
        finally:
            os.close(lock)
