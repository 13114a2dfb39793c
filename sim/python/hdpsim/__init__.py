"""What would this training plan cost on that cluster for my data?

``run`` simulates a study and returns its results as columns, ``check`` lists what is wrong with one. A study is a
dictionary with the keys of a study file, the path of such a file, or YAML text (a string with a line break in it).

    import hdpsim

    result = hdpsim.run("configs/studies/tiny.yaml", overrides={"data.steps": 2})
    columns = result.columns()
    print(dict(zip(columns["plan"], columns["tokens_per_s"])))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from . import _native

if TYPE_CHECKING:
    import pandas

__all__ = ["Bug", "Column", "InputError", "MachineError", "Problem", "Result", "Study", "check", "run"]
__version__ = _native.version

#: A dictionary, a path, or YAML text.
Study = Union[Mapping[str, Any], str, os.PathLike]
#: Cells of one column: None where there is nothing to tell.
Column = list[Union[str, int, float, bool, None]]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a study."""

    file: str  #: Path of the file; ``study`` for one from a dictionary or a text, ``--set`` for the overrides.
    line: int  #: From 1; 0 means the file as a whole. The line of a dictionary is that of its YAML.
    column: int  #: From 1.
    message: str
    help: str  #: What to do about it; may be empty.

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}: " if self.line else f"{self.file}: " if self.file else ""
        return f"{place}{self.message}" + (f" ({self.help})" if self.help else "")


class InputError(ValueError):
    """The study is wrong. The text is what the program prints: every problem with its line, a caret, a suggestion."""

    def __init__(self, text: str, problems: Sequence[tuple[str, int, int, str, str]] = ()) -> None:
        super().__init__(text.removesuffix("\n"))
        self.problems: list[Problem] = [Problem(*problem) for problem in problems]


class MachineError(OSError):
    """The machine refused: it has no memory or no space, or a file cannot be read or written."""


class Bug(RuntimeError):
    """A check of the simulator itself has failed."""


class Result:
    """The runs of a study: every plan at every point of its sweep."""

    def __init__(self, native: _native.Result) -> None:
        self._native = native

    def columns(self, table: str = "runs") -> dict[str, Column]:
        """A table by columns, which have the names and the order of the program's CSV files.

        ``runs`` has a row a run; ``steps`` one a run and step, ``ranks`` one a run and HDP rank, ``links`` one a run
        and busy link, ``memory`` the fullest ranks over time, ``timing`` the processor time of the simulation. Times
        are seconds, ``_gb`` are 1e9 bytes, shares are from 0 to 1. ValueError for another name.
        """
        return self._native.columns(table)

    def frame(self, table: str = "runs") -> pandas.DataFrame:
        """The same as a pandas DataFrame. ImportError without pandas."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("frame() needs pandas, which is not here: columns() has the same as lists") from error
        return pandas.DataFrame(self.columns(table))

    def page(self, path: str | os.PathLike) -> None:
        """Writes the report page, one HTML file. A step of every run is simulated once more for it."""
        self._native.page(os.fspath(path))

    def json(self) -> str:
        """The text of result.json, schema hdpsim.result/1."""
        return self._native.json()

    @property
    def study(self) -> str:
        """The resolved study, as YAML: it gives the same results again."""
        return self._native.study

    @property
    def notes(self) -> list[str]:
        """What the program would have said beside the results: steps beyond the profile's measurements, for example."""
        return self._native.notes

    def __str__(self) -> str:
        return self._native.table()

    def __repr__(self) -> str:
        return f"<hdpsim.Result of {len(self.columns()['plan'])} runs>"


def run(
    study: Study,
    *,
    overrides: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
    jobs: int | None = None,
    out: str | os.PathLike | None = None,
    resume: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Result:
    """Simulates all runs of a study.

    Paths in a dictionary and in a text are relative to the working folder, those in a file to its folder.
    ``overrides`` sets values by their dotted paths: ``{"data.context": "1Mi"}``. ``without`` leaves mechanisms out, as
    the program's option does. ``jobs`` is the number of threads, by default one a processor; results do not depend on
    it. ``out`` is a folder for all files that ``hdpsim study --out`` writes; ``resume`` then goes on with the runs that
    are finished there. ``progress`` is called with the numbers of steps done and of all steps, from any thread.

    InputError if the study is wrong, MachineError if the machine refuses. Other threads of Python go on; Ctrl-C ends it
    between two steps.
    """
    if resume and out is None:
        raise InputError("error: resume needs the folder of out, where runs are kept")
    threads = (os.cpu_count() or 1) if jobs is None else jobs
    if threads < 1:
        raise ValueError(f"jobs is {jobs}, it must be at least 1")
    source = _source(study, overrides, without)
    return Result(_native.run(source, threads, "" if out is None else os.fspath(out), resume, progress))


def check(
    study: Study, *, overrides: Mapping[str, Any] | None = None, without: Sequence[str] = ()
) -> list[Problem]:
    """Every problem of a study, of what it names and of every point of its sweep; nothing is simulated."""
    try:
        _native.check(_source(study, overrides, without))
    except InputError as error:
        return error.problems
    return []


def _source(study: Study, overrides: Mapping[str, Any] | None, without: Sequence[str]) -> _native.StudySource:
    changes = [f"{path}={_flow(value)}" for path, value in (overrides or {}).items()]
    name, text = "study", None
    if isinstance(study, Mapping):
        text = _native.study_text(study)
    elif isinstance(study, str) and "\n" in study:
        text = study
    else:
        name = os.fspath(study)
    return _native.StudySource(name, text, changes, list(without), _data_folder())


def _flow(value: Any) -> str:
    """A value on one line of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _data_folder() -> str:
    """The shipped presets: below the prefix where the package is installed, or the folder where it was built."""
    for folder in Path(__file__).resolve().parents:
        data = folder / "share" / "hdpsim"
        if (data / "configs").is_dir():
            return str(data)
    return ""
