"""What would this training plan cost on that cluster for my data?

``run`` simulates a study, ``tune`` looks for the mesh and the plan that run it best, ``replay`` runs its plans over a
long trace, ``decide`` says what training so many tokens takes; each returns its results as columns. ``compare`` sets the
results of several studies beside each other, ``check`` lists what is wrong with a study. A study is a dictionary
with the keys of a study file, the path of such a file, or YAML text (a string with a line break in it).

    import hdpsim

    result = hdpsim.run("configs/studies/tiny.yaml", overrides={"data.steps": 2})
    columns = result.columns()
    print(dict(zip(columns["plan"], columns["tokens_per_s"])))

    tuning = hdpsim.tune("configs/studies/tune.yaml", out="tuned")
    print(tuning.columns()["choices"][0], hdpsim.run(tuning.best).columns()["mfu"])

    replay = hdpsim.replay("configs/studies/replay.yaml", trace=[1000, 70000, 300])
    print(max(replay.columns()["step_time_s"]))

``Planner`` plans the batches of a training run one by one, and ``Plan`` says what each rank holds of a step, also of a
plan file:

    plan = hdpsim.Planner("configs/studies/tiny.yaml").plan([1000, 70000, 300])
    print(plan.share(0))

In a notebook a result shows its table, and ``result.plot()`` the charts of its report page.
"""

from __future__ import annotations

import html
import importlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

try:
    from . import _native
except ImportError as missing:
    if any(Path(__file__).parent.glob("_native*.so")):
        raise
    raise ImportError("the module is not built in this folder: `pip install .` in the checkout installs hdpsim, and "
                      "`scripts/build hdpsim_python` builds it for PYTHONPATH=build/release/python") from missing
from . import _lengths, _policies
from ._plan import Plan, Share
from ._planner import Planner
from ._policies import Policy, PolicyError, Pool

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = [
    "Bug", "Column", "Comparison", "Decisions", "Explanation", "InputError", "Lengths", "MachineError", "Page", "Plan", "Planner", "Policy",
    "PolicyError", "Pool", "Problem", "Replay", "Result", "Share", "Study", "Tuning", "check", "compare", "decide", "names", "policy", "replay", "run", "tune",
]
__version__ = _native.version

#: A dictionary, a path, or YAML text.
Study = Union[Mapping[str, Any], str, os.PathLike]
#: Lengths of sequences, in tokens: a list, a NumPy array, a column of a frame.
Lengths = Iterable[int]
#: Cells of one column: None where there is no value.
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


class Page:
    """A page of charts and tables, one text of HTML that needs no network. A notebook shows it below its cell."""

    def __init__(self, text: str) -> None:
        self.html = text

    def save(self, path: str | os.PathLike) -> None:
        """Writes the page into a file. MachineError if that is refused."""
        part = Path(f"{os.fspath(path)}.part")
        try:
            part.write_text(self.html, encoding="utf-8")
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise MachineError(f"cannot write {os.fspath(path)}: {error.strerror}") from error

    def _repr_html_(self) -> str:
        # A frame of its own: styles and scripts of the page do not meet those of the notebook.
        text = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{text}" style="width: 100%; height: 900px; border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"<hdpsim.Page of {len(self.html)} characters: save() writes it>"


class Explanation:
    """Why plans take as long as they do, and what would help. ``str()`` is what ``hdpsim explain`` prints."""

    def __init__(self, text: str, as_json: str) -> None:
        self._text = text
        self._json = as_json

    def json(self) -> str:
        """The same as JSON, schema hdpsim.explanation/1."""
        return self._json

    @property
    def plans(self) -> list[dict[str, Any]]:
        """The explained plans of ``json``, as dictionaries."""
        return json.loads(self._json)["plans"]

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


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

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class _OneTable:
    """A result with one table."""

    def frame(self, library: str | None = None) -> pandas.DataFrame | polars.DataFrame:
        """The same as a DataFrame of ``pandas`` or ``polars``, by default the first that is there.

        ImportError without them.
        """
        return _frame(self.columns(), library)


class _PageAnswer(_Answer):
    """A result that has a page."""

    def page(self, path: str | os.PathLike) -> None:
        """Writes the page that the command writes, one HTML file. The same as ``plot(path)``."""
        self.plot(path)

    def plot(self, path: str | os.PathLike | None = None) -> Page:
        """The page with the charts of the report. A notebook shows it; with ``path`` it is also written there.

        For a result of ``run`` a step of every run is simulated once more. MachineError if it cannot be written.
        """
        page = Page(self._native.page())
        if path is not None:
            page.save(path)
        return page


class Result(_PageAnswer):
    """The runs of a study: every plan at every point of its sweep. ``json`` is result.json, schema hdpsim.result/1."""

    _native: _native.Result

    def columns(self, table: str = "runs") -> dict[str, Column]:
        """A table by columns, which have the names and the order of the program's CSV files.

        ``runs`` has a row a run; ``steps`` one a run and step, ``ranks`` one a run and HDP rank, ``links`` one a run
        and busy link, ``memory`` the fullest ranks over time, ``timing`` the processor time of the simulation. Times
        are seconds, ``_gb`` are 1e9 bytes, shares are from 0 to 1. A run whose policy refused a batch has None in place
        of figures; where there is one, ``runs`` has a column ``refusal`` with the policy's words. ValueError for another
        name.
        """
        return self._native.columns(table)

    def frame(self, table: str = "runs", library: str | None = None) -> pandas.DataFrame | polars.DataFrame:
        """The same as a DataFrame of ``pandas`` or ``polars``, by default the first that is there.

        ImportError without them.
        """
        return _frame(self.columns(table), library)

    def explain(self, plan: str | None = None, *, point: int = 0, step: int | None = None) -> Explanation:
        """Says why plans take as long as they do, and what would help, as ``hdpsim explain`` does.

        ``plan`` is one of the study's plans, by default all; ``point`` counts those of the sweep from 0; ``step`` is by
        default the one whose time is nearest to the median. A step of each plan is simulated again, also with one thing
        improved at a time. InputError for a plan, a point or a step that the study lacks.
        """
        return Explanation(*self._native.explain(point, plan or "", -1 if step is None else step))

    @property
    def notes(self) -> list[str]:
        """What the program would have printed in addition to the results: steps beyond the profile's measurements, for example."""
        return self._native.notes

    def __repr__(self) -> str:
        return f"<hdpsim.Result of {len(self.columns()['plan'])} runs>"


class Tuning(_OneTable, _Answer):
    """What a search for the best mesh and plan came to. ``json`` is tune.json, schema hdpsim.tuning/1."""

    _native: _native.Tuning

    def columns(self) -> dict[str, Column]:
        """The candidates, best first, those that cannot run at the end: the columns of candidates.csv.

        ``choices`` is what the candidate sets, ``fate`` how far it came (finished, slower, bounded, infeasible, with
        the ``reason``), ``ratio`` its step time to that of the best. Times are seconds, ``_gb`` are 1e9 bytes; what is
        not known of a candidate is None.
        """
        return self._native.columns()

    @property
    def best(self) -> str:
        """A complete study with the best candidate as its only plan, as YAML: ``run(tuning.best)`` simulates it."""
        return self._native.best

    def __repr__(self) -> str:
        return f"<hdpsim.Tuning of {len(self.columns()['rank'])} candidates>"


class Replay(_PageAnswer):
    """The plans of a study over a long trace. ``json`` is replay.json, schema hdpsim.replay/1."""

    _native: _native.Replay

    def columns(self, table: str = "steps") -> dict[str, Column]:
        """A table by columns, which have the names and the order of the program's CSV files.

        ``steps`` has a row a step and plan, ``windows`` one a window of steps and plan. Times are seconds, lengths
        tokens, ``_gb`` are 1e9 bytes. ValueError for another name.
        """
        return self._native.columns(table)

    def frame(self, table: str = "steps", library: str | None = None) -> pandas.DataFrame | polars.DataFrame:
        """The same as a DataFrame of ``pandas`` or ``polars``, by default the first that is there.

        ImportError without them.
        """
        return _frame(self.columns(table), library)

    def __repr__(self) -> str:
        return f"<hdpsim.Replay of {len(self.columns()['step'])} steps>"


class Decisions(_OneTable, _PageAnswer):
    """What training takes: days, GPU-hours, energy, money. ``json`` is decision.json, schema hdpsim.decision/1."""

    _native: _native.Decisions

    def columns(self) -> dict[str, Column]:
        """A row a run or, of a search, a size that was simulated: the columns of decision.csv."""
        return self._native.columns()

    @property
    def smallest(self) -> dict[str, int | None]:
        """By plan, the fewest GPUs that are in time; None if no size is. Empty without a search."""
        return self._native.smallest

    def __repr__(self) -> str:
        return f"<hdpsim.Decisions of {len(self.columns()['plan'])} runs>"


class Comparison(_OneTable, _PageAnswer):
    """Results of studies beside the first of them. ``json`` has schema hdpsim.result_comparison/1."""

    _native: _native.ComparedResults

    def columns(self) -> dict[str, Column]:
        """A row a run of each result, the same plan and point one below the other: what ``hdpsim compare`` prints as CSV."""
        return self._native.columns()

    @property
    def changed(self) -> list[dict[str, tuple[str, str]]]:
        """For each result but the first, the keys of its study that differ: the value in the first, and here."""
        return [{path: (first, here) for path, first, here in keys} for keys in self._native.changed()]

    @property
    def study(self) -> str:
        raise AttributeError("a comparison has several studies: see changed")

    def __repr__(self) -> str:
        return f"<hdpsim.Comparison of {len(self.changed) + 1} results>"


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

    Paths in a dictionary and in a text are relative to the working folder, those in a file to its folder. In a
    dictionary and in ``overrides``, ``data.lengths`` may also be the lengths themselves, in tokens: a list or a NumPy
    array. They become a file, ``lengths.txt`` in ``out`` or else one that is gone with this process, and are read as one:
    in a random order that ``data.seed`` decides, unless ``data.lengths.order`` is ``file``.
    ``overrides`` sets values by their dotted paths: ``{"data.context": "1Mi"}``. ``without`` leaves mechanisms out, as
    the program's option does. ``jobs`` is the number of threads, by default one a processor; results do not depend on
    it. ``out`` is a folder for all files that ``hdpsim study --out`` writes; ``resume`` then goes on with the runs that
    are finished there. ``progress`` is called with the numbers of steps done and of all steps, from any thread.

    InputError if the study is wrong or every run of it is refused by its policy, MachineError if the machine refuses.
    Other threads of Python go on; Ctrl-C ends it between two steps.
    """
    return Result(_native.run(_source(study, overrides, without, out), _options("runs", jobs, out, resume, progress)))


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
    ``resume`` then goes on with what an earlier search has simulated there. ``progress`` is called with the work
    done and the work expected in all, in the time of a planned step. All else is as of ``run``.
    """
    return Tuning(_native.tune(_source(study, overrides, (), out), _options("candidates", jobs, out, resume, progress)))


def replay(
    study: Study,
    *,
    trace: str | os.PathLike | Lengths | None = None,
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
    column or columns in it; or the lengths themselves, as for ``run``. They are read in their order. ``plans`` names those
    of the study's plans that run, by default all. ``steps`` is by
    default one pass through ``trace``, otherwise the study's ``data.steps``. ``point`` chooses one of a study that has
    a sweep, counted from 0. ``out`` is a folder for the files of the program; ``resume`` then goes on after the last
    step there, and with more ``steps`` makes the replay longer. The result holds every step. All else is as of ``run``.
    """
    for name, count, least in (("steps", steps, 1), ("point", point, 0)):
        if count is not None and count < least:
            raise ValueError(f"{name} is {count}, it must be at least {least}")
    options = _options("steps", jobs, out, resume, progress)
    # One file has the name of the lengths in `out`: the trace's, where there is one.
    source = _source(study, overrides, (), out if trace is None else None, keeps_order=True)
    choice = _native.ReplayChoice(
        "" if trace is None else os.fspath(_lengths.as_path(trace, out)),
        column or "",
        list(plans),
        steps or 0,
        -1 if point is None else point,
    )
    return Replay(_native.replay(source, choice, options))


def decide(
    study: Study,
    tokens: float,
    *,
    days: float | None = None,
    most_gpus: int | None = None,
    prices: str | os.PathLike | None = None,
    overrides: Mapping[str, Any] | None = None,
    without: Sequence[str] = (),
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Decisions:
    """What training so many tokens takes, as ``hdpsim decide`` says: days, GPU-hours, energy, money.

    With ``days`` the fewest GPUs are looked for with which each plan of the first point is done in time, up to
    ``most_gpus``. ``prices`` is a file of yours with prices of GPU-hours, powers and the price of electricity. All else
    is as of ``run``.
    """
    for name, value in (("tokens", tokens), ("days", days), ("most_gpus", most_gpus)):
        if value is not None and not value > 0:
            raise ValueError(f"{name} is {value}, it must be positive")
    if most_gpus is not None and days is None:
        raise ValueError("most_gpus goes with days")
    options = _options("runs", jobs, None, False, progress)
    price_file = "" if prices is None else os.fspath(prices)
    source = _source(study, overrides, without)
    return Decisions(_native.decide(source, tokens, days or 0, most_gpus or 0, price_file, options))


def compare(*results: str | os.PathLike) -> Comparison:
    """Sets results of studies beside the first of them, as ``hdpsim compare`` does.

    Each is a folder that ``run(..., out=...)`` or ``hdpsim study --out`` has written, or its result.json. InputError
    with every problem of them.
    """
    if len(results) < 2:
        raise ValueError("compare needs two results or more")
    return Comparison(_native.ComparedResults([os.fspath(each) for each in results]))


def check(
    study: Study, *, overrides: Mapping[str, Any] | None = None, without: Sequence[str] = ()
) -> list[Problem]:
    """Every problem of a study, of what it names and of every point of its sweep; of thousands the first 1,000.

    Nothing is simulated.
    """
    try:
        _native.check(_source(study, overrides, without))
    except InputError as error:
        return error.problems
    return []


def names(kind: str) -> list[str]:
    """What a study can name without a file of its own: ``clusters``, ``models``, ``profiles``, ``lengths``, ``plans``.

    ValueError for another kind.
    """
    return _native.names(kind, _data_folder())


def policy(name: str, plan: Callable[[list[int], Pool], Any]) -> Policy:
    """A policy of yours, for ``plans`` of a study that is a dictionary, or of ``overrides``.

    ``plan(lengths, pool)`` makes the plan of a step. ``lengths`` has the tokens of every sequence of its batch, ``pool``
    says for how many ranks it plans. It returns groups in the order of execution, each with its ranks and the sequences
    that it holds, by their places in ``lengths``:

        def one_by_one(lengths, pool):
            return [{"ranks": [i % pool.ranks], "sequences": [i]} for i in range(len(lengths))]

        hdpsim.run({**study, "plans": ["static", hdpsim.policy("mine", one_by_one)]})

    or what else ``hdpsim import-plan`` reads: ``(size, sequences)`` and ``(first, size, sequences)`` for a run of ranks,
    a list of groups that run side by side, or a dictionary such as ``{"by_rank": [...]}``. It is called once for every
    step of the study, before anything is simulated. The plans are files, in ``plans`` in ``out`` or else gone with this
    process. All points of a sweep have the same plans, so that their batches and ranks must be the same; a tuning
    refuses them.

    An exception of ``plan`` becomes a PolicyError that names the step. Groups that are no plan, with sequences that are
    missing or there twice, are an InputError; a plan that gives a rank more tokens than it holds is refused for its own
    run alone, as of any policy.
    """
    return Policy(name, plan)


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


def _frame(columns: dict[str, Column], library: str | None) -> Any:
    libraries = ("pandas", "polars")
    if library not in (None, *libraries):
        raise ValueError(f"library is {library!r}, it must be 'pandas' or 'polars'")
    for name in libraries if library is None else (library,):
        try:
            return importlib.import_module(name).DataFrame(columns)
        except ImportError:
            continue
    raise ImportError(f"frame() needs {library or 'pandas or polars'}, which is not here: columns() has the same as lists")


def _source(
    study: Study,
    overrides: Mapping[str, Any] | None,
    without: Sequence[str],
    out: str | os.PathLike | None = None,
    keeps_order: bool = False,
) -> _native.StudySource:
    overrides = _lengths.in_overrides(overrides or {}, out)
    if isinstance(study, Mapping):
        study = _lengths.in_study(study, None if "data.lengths" in overrides else out)
    return _policies.in_study(study, overrides, lambda *changed: _native_source(*changed, without, keeps_order), out)


def _native_source(
    study: Study, overrides: Mapping[str, Any], without: Sequence[str], keeps_order: bool
) -> _native.StudySource:
    changes = [_assignment(path, value) for path, value in overrides.items()]
    name, text = "study", None
    if isinstance(study, Mapping):
        text = _native.study_text(study)
    elif isinstance(study, str) and "\n" in study:
        text = study
    else:
        name = os.fspath(study)
    return _native.StudySource(name, text, changes, list(without), _data_folder(), keeps_order)


def _assignment(path: str, value: Any) -> str:
    try:
        return f"{path}={_flow(value)}"
    except RecursionError:
        problem = f"the value of {path} is nested too deeply"
        raise InputError(f"--set: error: {problem}", [("--set", 0, 0, problem, "")]) from None


def _flow(value: Any) -> str:
    """A value on one line of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"overrides: a study has no place for a {type(value).__name__}")
    return "null" if value is None else str(value)


def _data_folder() -> str:
    """The shipped presets: below the prefix where the package is installed, or the folder where it was built."""
    for folder in Path(__file__).resolve().parents:
        data = folder / "share" / "hdpsim"
        if (data / "configs").is_dir():
            return str(data)
    return ""
