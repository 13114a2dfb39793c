"""Policies of Python: their plans become files, which a study can name."""

from __future__ import annotations

import hashlib
import itertools
import json
import operator
import os
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _lengths, _native


GROUPS_A_SEQUENCE = 100  # of a policy, in the mean; more of them may never end
MOST_ITEMS = 2**24  # of a list in a group
LONGEST_NAME = 200  # bytes of a folder's name, which may have 255


@dataclass(frozen=True)
class Pool:
    """Where a step is planned for."""

    ranks: int  #: HDP ranks, numbered from 0.
    ranks_per_node: int  #: Consecutive ranks that share a node.
    capacity: int  #: Tokens that one rank holds per micro-batch.
    context: int  #: The longest sequence, in tokens.
    layers: int  #: Layers of a pass of a rank, of which an offload ratio is a share.
    stages: int  #: Stages of every rank's pipeline.


class PolicyError(RuntimeError):
    """A policy of Python has raised an exception, which is the ``__cause__`` of this one."""

    def __init__(self, policy: str, step: int, error: BaseException) -> None:
        super().__init__(f"policy {policy!r}, step {step}: {type(error).__name__}: {error}")
        self.policy = policy
        self.step = step  #: Counted from 0.


class Policy:
    """A policy that is a function: see ``hdpsim.policy``."""

    def __init__(self, name: str, plan: Callable[[list[int], Pool], Any]) -> None:
        if not callable(plan):
            raise TypeError(f"policy {name!r} is not a function of lengths and pool, but {type(plan).__name__}")
        self.name = name
        self._plan = plan

    def write(self, steps: _native.Steps, out: str | os.PathLike | None) -> dict[str, Any]:
        """Plans all steps, writes a file for each, and returns the entry of ``plans`` that names them."""
        pool = Pool(steps.ranks, steps.ranks_per_node, steps.capacity, steps.context, steps.layers, steps.stages)
        texts = [self._text_of(step, steps, pool) for step in range(steps.count)]
        files = []
        for step, text in enumerate(texts):
            path = _place(self.name, step, text, out)
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part")
            part.write_text(text, encoding="utf-8")
            part.replace(path)
            files.append(str(path.resolve()))
        return {"file": files, "name": self.name}

    def _text_of(self, step: int, steps: _native.Steps, pool: Pool) -> str:
        lengths = steps.lengths(step)
        try:
            groups = self._plan(lengths, pool)
            most = GROUPS_A_SEQUENCE * (len(lengths) + pool.ranks)
            stated = groups if isinstance(groups, Mapping) else {"micro_batches": _at_most(most, groups)}
            text = json.dumps(stated, default=_plain)
        except Exception as error:
            raise PolicyError(self.name, step, error) from error
        return steps.plan(self.name, step, f"policy {self.name}, step {step}", text)

    def __repr__(self) -> str:
        return f"<hdpsim.Policy {self.name!r}>"


def in_study(
    study: Any,
    overrides: Mapping[str, Any],
    make_source: Callable[[Any, Mapping[str, Any]], _native.StudySource],
    out: str | os.PathLike | None,
) -> _native.StudySource:
    """The source of a study in which files take the places of policies of Python."""
    in_overrides = "plans" in overrides
    stated = overrides if in_overrides else study
    plans = stated.get("plans") if isinstance(stated, Mapping) else None
    if not isinstance(plans, (list, tuple)) or not any(isinstance(plan, Policy) for plan in plans):
        return make_source(study, overrides)
    # The batches and the pool do not depend on the plans: any policy that fits takes the place of those that are not there yet.
    others = [plan for plan in plans if not isinstance(plan, Policy)] or [{"hdp-naive": {"offload": "auto"}}]
    if not in_overrides:
        study = {**study, "plans": others}
    steps = _native.Steps(make_source(study, {**overrides, "plans": others, "compare_to": None}))
    entries = [plan.write(steps, out) if isinstance(plan, Policy) else plan for plan in plans]
    if in_overrides:
        return make_source(study, {**overrides, "plans": [_quoted(entry) for entry in entries]})
    return make_source({**study, "plans": entries}, overrides)


def _at_most(most: int, items: Iterable[Any]) -> list[Any]:
    """The items as a list. ValueError for more than so many, of which there may be no end."""
    if isinstance(items, list):
        return items
    listed = list(itertools.islice(items, most + 1))
    if len(listed) > most:
        raise ValueError(f"more than {most:,} items: does this end?")
    return listed


def _plain(value: Any) -> Any:
    """Numbers and arrays of other libraries as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Iterable):
        return _at_most(MOST_ITEMS, value)
    return operator.index(value)


def _quoted(entry: Any) -> Any:
    """An override is a line of YAML, in which a path or a name may be anything but bare."""
    if not (isinstance(entry, Mapping) and "file" in entry):
        return entry
    files = entry["file"]
    quoted = [json.dumps(os.fspath(file)) for file in ([files] if isinstance(files, (str, os.PathLike)) else files)]
    return {**entry, "file": quoted, **({"name": json.dumps(entry["name"])} if "name" in entry else {})}


def _place(name: str, step: int, text: str, out: str | os.PathLike | None) -> Path:
    if out is not None:
        return Path(out) / "plans" / _folder_of(name) / f"{step}.json"
    return _lengths.own_folder() / f"plan-{hashlib.sha256(text.encode()).hexdigest()[:16]}-{step}.json"


def _folder_of(name: str) -> str:
    """A name for a folder, of which no two policies have the same: what a name may not contain is written as %20."""
    quoted = urllib.parse.quote(name, safe="", errors="surrogatepass")
    if quoted.startswith(".") or not quoted:
        quoted = f"%{quoted}"
    if len(quoted) <= LONGEST_NAME:
        return quoted
    return f"{quoted[:LONGEST_NAME]}%-{hashlib.sha256(quoted.encode()).hexdigest()[:32]}"
