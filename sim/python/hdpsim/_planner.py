"""Plans of the batches that a training run meets."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native
from ._plan import Id, Plan


class Planner:
    """Plans steps as a study would, for the batches of a live run: ``hdpsim plan`` without a study to read each time.

        planner = hdpsim.Planner("study.yaml", "hdp-balance")
        plan = planner.plan([4096, 131072, 900], ids=["a", "b", "c"])
        for share in plan.share(rank=3):
            print(share.pieces, share.cu_seqlens, share.position_ids)

    The study is read once. Ranks, capacity, prices and the longest sequence (``data.context``) are its own; of its data
    no more is used than what options that are ``auto`` look at. ``policy`` is one of its plans, or else an entry of
    ``plans`` that it lacks: a name, or a dictionary of one name with its options. ``overrides`` are as of ``run``,
    ``point`` chooses one of a study that has a sweep.

    Equal calls give equal plans, also in other processes: every rank can plan for itself. ``plan`` may be called from
    several threads, and a planner may be sent to other processes (pickle), with its state.

    How long a plan takes, the policy decides: under ``hdp-balance`` other policies' plans compete in simulated steps
    unless an option of the algorithm or ``search: none`` is stated, {"hdp-balance": {"search": "none"}}.

    ``waves``: plans whose ranks all run the k-th micro-batches of their lists together (``Plan.waves``), for runtimes
    with collectives of all ranks inside micro-batches; a rank with nothing to run has a micro-batch of so many tokens
    of padding.

    InputError if the study is wrong, or the plan is one of files.
    """

    def __init__(
        self,
        study: Mapping[str, Any] | str | os.PathLike,
        policy: str | Mapping[str, Any] = "hdp-balance",
        *,
        overrides: Mapping[str, Any] | None = None,
        point: int = 0,
        waves: int | None = None,
    ) -> None:
        from . import _assignment, _source  # the package imports this module

        if point < 0:
            raise ValueError(f"point is {point}, it must be at least 0")
        if waves is not None and waves < 1:
            raise ValueError(f"waves is {waves}, it must be at least 1")
        name = policy if isinstance(policy, str) else ""
        stated = policy if isinstance(policy, str) else next(iter(policy), "")
        alone = [_assignment("plans", [policy]), _assignment("compare_to", stated)]
        is_path = isinstance(study, os.PathLike) or (isinstance(study, str) and "\n" not in study)
        self._made_of = (os.path.abspath(study) if is_path else study, policy, overrides, point, waves)
        self._native = _native.LivePlanner(_source(study, overrides, ()), name, alone, point, waves)

    def plan(self, lengths: Iterable[int], ids: Iterable[Id] | None = None, *, step: int | None = None) -> Plan:
        """The plan of a batch of sequences with these lengths, in tokens. Other threads of Python go on.

        Sequences are planned as they are: none is cut, and no batch is filled up. ``ids`` are whole numbers or texts,
        each once, which the plan keeps; without them sequences are known by their places. A policy that holds sequences
        back plans others than those that arrive: ``Plan.ids`` says which, by default as "step/place" of the call in
        which they came, and ``held`` what waits. A batch of no sequences then trains some of these. ``step`` is the
        number of the step, by default one more than before, from 0.

        InputError for a sequence that is longer than the study's, ids that are there twice, and where the policy has no
        plan for the batch; the planner is then as it was before.
        """
        native, estimate_s = self._native.plan(_whole(lengths), _names(ids), step)
        return Plan(native, estimate_s)

    @property
    def policy(self) -> str:
        """The name of the plan, as in the study."""
        return self._native.policy

    @property
    def ranks(self) -> int:
        """HDP ranks that it plans for."""
        return self._native.ranks

    @property
    def capacity(self) -> int:
        """Tokens that a rank holds per micro-batch without offload."""
        return self._native.capacity

    @property
    def context(self) -> int:
        """Tokens of the longest sequence that it plans."""
        return self._native.context

    @property
    def holds_back(self) -> bool:
        """Whether the policy may train sequences later than they come."""
        return self._native.holds_back

    @property
    def held(self) -> list[Id]:
        """The ids of the sequences that wait for a later step."""
        return self._native.held()

    def state_dict(self) -> dict[str, Any]:
        """What plans depend on besides the arguments: the number of the step, and what waits. JSON can hold it."""
        return json.loads(self._native.state())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where the planner was whose ``state_dict`` it is. InputError if that had another study or policy."""
        self._native.set_state(json.dumps(state))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (*self._made_of, self.state_dict())

    def __repr__(self) -> str:
        return f"<hdpsim.Planner of {self.policy} for {self.ranks} ranks>"


def _again(
    study: Any, policy: Any, overrides: Mapping[str, Any] | None, point: int, waves: int | None, state: dict[str, Any]
) -> Planner:
    planner = Planner(study, policy, overrides=overrides, point=point, waves=waves)
    planner.load_state_dict(state)
    return planner


def _items(values: Iterable[Any]) -> Iterable[Any]:
    return values.tolist() if hasattr(values, "tolist") else values  # of NumPy and PyTorch


def _whole(lengths: Iterable[int]) -> list[int]:
    return [operator.index(length) for length in _items(lengths)]


def _names(ids: Iterable[Id] | None) -> list[Id]:
    if ids is None:
        return []
    return [name if isinstance(name, str) else operator.index(name) for name in _items(ids)]
