"""What would this training plan cost on that cluster for my data?

``run`` simulates a study, ``tune`` looks for the mesh and the plan that run it best, ``replay`` runs its plans over a
long trace; each returns its results as columns. ``check`` lists what is wrong with a study. A study is a dictionary
with the keys of a study file, the path of such a file, or YAML text (a string with a line break in it).

    import hdpsim

    result = hdpsim.run("configs/studies/tiny.yaml", overrides={"data.steps": 2})
    columns = result.columns()
    print(dict(zip(columns["plan"], columns["tokens_per_s"])))

    tuning = hdpsim.tune("configs/studies/tune.yaml", out="tuned")
    print(tuning.columns()["choices"][0], hdpsim.run(tuning.best).columns()["mfu"])

    replay = hdpsim.replay("configs/studies/replay.yaml", trace="lengths.csv")
    print(max(replay.columns()["step_time_s"]))
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

__all__ = [
    "Bug", "Column", "InputError", "MachineError", "Problem", "Replay", "Result", "Study", "Tuning", "check", "replay",
    "run", "tune",
]
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


class _Answer:
    """What all results have in common."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def json(self) -> str:
        """The text that the command prints with --format json."""
        return self._native.json()

    @property
    def study(self) -> str:
        """The resolved study, as YAML: it gives the same results again."""
        return self._native.study

    def __str__(self) -> str:
        return self._native.table()


class Result(_Answer):
    """The runs of a study: every plan at every point of its sweep. ``json`` is result.json, schema hdpsim.result/1."""

    _native: _native.Result

    def columns(self, table: str = "runs") -> dict[str, Column]:
        """A table by columns, which have the names and the order of the program's CSV files.

        ``runs`` has a row a run; ``steps`` one a run and step, ``ranks`` one a run and HDP rank, ``links`` one a run
        and busy link, ``memory`` the fullest ranks over time, ``timing`` the processor time of the simulation. Times
        are seconds, ``_gb`` are 1e9 bytes, shares are from 0 to 1. ValueError for another name.
        """
        return self._native.columns(table)

    def frame(self, table: str = "runs") -> pandas.DataFrame:
        """The same as a pandas DataFrame. ImportError without pandas."""
        return _frame(self.columns(table))

    def page(self, path: str | os.PathLike) -> None:
        """Writes the report page, one HTML file. A step of every run is simulated once more for it."""
        self._native.page(os.fspath(path))

    @property
    def notes(self) -> list[str]:
        """What the program would have said beside the results: steps beyond the profile's measurements, for example."""
        return self._native.notes

    def __repr__(self) -> str:
        return f"<hdpsim.Result of {len(self.columns()['plan'])} runs>"


class Tuning(_Answer):
    """What a search for the best mesh and plan came to. ``json`` is tune.json, schema hdpsim.tuning/1."""

    _native: _native.Tuning

    def columns(self) -> dict[str, Column]:
        """The candidates, best first, those that cannot run at the end: the columns of candidates.csv.

        ``choices`` is what the candidate sets, ``fate`` how far it came (finished, slower, bounded, infeasible, with
        the ``reason``), ``ratio`` its step time to that of the best. Times are seconds, ``_gb`` are 1e9 bytes; what is
        not known of a candidate is None.
        """
        return self._native.columns()

    def frame(self) -> pandas.DataFrame:
        """The same as a pandas DataFrame. ImportError without pandas."""
        return _frame(self.columns())

    @property
    def best(self) -> str:
        """A complete study with the best candidate as its only plan, as YAML: ``run(tuning.best)`` simulates it."""
        return self._native.best

    def __repr__(self) -> str:
        return f"<hdpsim.Tuning of {len(self.columns()['rank'])} candidates>"


class Replay(_Answer):
    """The plans of a study over a long trace. ``json`` is replay.json, schema hdpsim.replay/1."""

    _native: _native.Replay

    def columns(self, table: str = "steps") -> dict[str, Column]:
        """A table by columns, which have the names and the order of the program's CSV files.

        ``steps`` has a row a step and plan, ``windows`` one a window of steps and plan. Times are seconds, lengths
        tokens, ``_gb`` are 1e9 bytes. ValueError for another name.
        """
        return self._native.columns(table)

    def frame(self, table: str = "steps") -> pandas.DataFrame:
        """The same as a pandas DataFrame. ImportError without pandas."""
        return _frame(self.columns(table))

    def page(self, path: str | os.PathLike) -> None:
        """Writes replay.html: step times and lengths over the steps as charts."""
        self._native.page(os.fspath(path))

    def __repr__(self) -> str:
        return f"<hdpsim.Replay of {len(self.columns()['step'])} steps>"


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
    return Result(_native.run(_source(study, overrides, without), _options("runs", jobs, out, resume, progress)))


def tune(
    study: Study,
    *,
    overrides: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    out: str | os.PathLike | None = None,
    resume: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Tuning:
    """Looks for the mesh and the plan that run the work of a study best, as ``hdpsim tune`` does.

    ``tune`` in the study names the space, the objective and a price. ``out`` is a folder for the files of the program;
    ``resume`` then goes on with what an earlier search has simulated there. ``progress`` is called with the number of
    simulations done and the most that there can be. All else is as of ``run``.
    """
    return Tuning(_native.tune(_source(study, overrides, ()), _options("candidates", jobs, out, resume, progress)))


def replay(
    study: Study,
    *,
    trace: str | os.PathLike | None = None,
    column: str | None = None,
    plans: Sequence[str] = (),
    steps: int | None = None,
    point: int | None = None,
    overrides: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    out: str | os.PathLike | None = None,
    resume: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Replay:
    """Runs the plans of a study over a long trace of lengths, step by step, as ``hdpsim replay`` does.

    ``trace`` is a file of lengths instead of the study's, in any format that the program reads, and ``column`` the
    column or columns in it. ``plans`` names those of the study's plans that run, by default all. ``steps`` is by
    default one pass through ``trace``, otherwise the study's ``data.steps``. ``point`` chooses one of a study that has
    a sweep, counted from 0. ``out`` is a folder for the files of the program; ``resume`` then goes on after the last
    step there, and with more ``steps`` makes the replay longer. The result holds every step. All else is as of ``run``.
    """
    for name, count, least in (("steps", steps, 1), ("point", point, 0)):
        if count is not None and count < least:
            raise ValueError(f"{name} is {count}, it must be at least {least}")
    choice = _native.ReplayChoice(
        "" if trace is None else os.fspath(trace), column or "", list(plans), steps or 0, -1 if point is None else point
    )
    options = _options("steps", jobs, out, resume, progress)
    return Replay(_native.replay(_source(study, overrides, ()), choice, options))


def check(
    study: Study, *, overrides: Mapping[str, Any] | None = None, without: Sequence[str] = ()
) -> list[Problem]:
    """Every problem of a study, of what it names and of every point of its sweep; nothing is simulated."""
    try:
        _native.check(_source(study, overrides, without))
    except InputError as error:
        return error.problems
    return []


def _options(
    kept: str,
    jobs: int | None,
    out: str | os.PathLike | None,
    resume: bool,
    progress: Callable[[int, int], object] | None,
) -> _native.RunOptions:
    if resume and out is None:
        raise InputError(f"error: resume needs the folder of out, where {kept} are kept")
    threads = (os.cpu_count() or 1) if jobs is None else jobs
    if threads < 1:
        raise ValueError(f"jobs is {jobs}, it must be at least 1")
    return _native.RunOptions(threads, "" if out is None else os.fspath(out), resume, progress)


def _frame(columns: dict[str, Column]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("frame() needs pandas, which is not here: columns() has the same as lists") from error
    return pandas.DataFrame(columns)


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
