"""Plans, and what each rank holds of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union, overload

from . import _native

if TYPE_CHECKING:
    import numpy

#: What the caller calls a sequence.
Id = Union[int, str]
Item = TypeVar("Item")


class Listed(Sequence[Item], Generic[Item]):
    """A list whose items are made when they are asked for, and kept."""

    def __init__(self, count: int, make: Callable[[int], Item]) -> None:
        self._items: list[Item | None] = [None] * count
        self._make = make

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        place = range(len(self))[index]
        item = self._items[place]
        if item is None:
            item = self._items[place] = self._make(place)
        return item

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self))})"


@dataclass(frozen=True)
class MicroBatch:
    """The work of the ranks of one group in one forward and one backward pass, as the plan file states it."""

    group: tuple[int, ...]  #: Ranks in ring order: ``group[i]`` sends to ``group[i + 1]``, the last to the first.
    spans: tuple[tuple[int, int, int], ...]  #: What the group shares: sequence, begin, tokens.
    local: tuple[tuple[int, tuple[tuple[int, int, int], ...]], ...]  #: Ranks with the spans that they hold alone.
    cut: str  #: ``per_document``, ``per_pack``, ``dispatch`` or ``served``.
    moved: tuple[tuple[int, int, int, int], ...]  #: Index of the span, begin in it, tokens, and the rank that serves.
    exchange: str | None  #: How the group shares keys; None for one rank, and where the plan does not say.
    offload: float  #: Share of the activations of all but two layers that goes to host memory.
    token_wise: bool
    continues: bool  #: Its span continues that of the micro-batch before it on its rank, and sees the keys of it.
    repeats_forward: bool
    padding: int
    padded: bool
    update: int  #: The optimizer step of the batch to which it belongs.


@dataclass(frozen=True, eq=False)
class Pieces:
    """Consecutive tokens of sequences, one entry a piece, in the order of their rows. NumPy arrays of 64-bit integers.

    A query of a piece sees the keys of its span up to itself: those of ``[span_begin, query]``; and where the
    micro-batch continues another, those before its span, too. Tokens count from the begin of the sequence.
    """

    sequence: numpy.ndarray  #: Index into ``Plan.lengths`` and ``Plan.ids``.
    begin: numpy.ndarray
    end: numpy.ndarray
    span: numpy.ndarray  #: Index of the span: those that the group shares, then local ones by rising holder.
    span_begin: numpy.ndarray
    span_end: numpy.ndarray

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def tokens(self) -> int:
        """Rows of all pieces."""
        return int((self.end - self.begin).sum())

    def __repr__(self) -> str:
        spans = zip(self.sequence.tolist(), self.begin.tolist(), self.end.tolist())
        return f"Pieces({', '.join(f'{sequence}[{begin}:{end}]' for sequence, begin, end in spans)})"


class Share:
    """What one rank does in one micro-batch, cut as ``hdpsim execute`` cuts it. Needs NumPy."""

    def __init__(self, plan: Plan, micro_batch: int, rank: int) -> None:
        self._plan = plan
        self._native = plan._native.micro_batch(micro_batch)
        place = self._native.place(rank)
        if place is None:
            raise ValueError(f"rank {rank} is not in the group of micro-batch {micro_batch}")
        self.micro_batch: int = micro_batch  #: Index in ``plan.micro_batches``.
        self.rank: int = rank
        self.cp_rank: int = place  #: Index of the rank in ``group``.
        self.facts: MicroBatch = plan.micro_batches[micro_batch]

    def __reduce__(self) -> tuple[Any, ...]:
        return Share, (self._plan, self.micro_batch, self.rank)

    # What the micro-batch states.

    @property
    def group(self) -> tuple[int, ...]:
        """The ranks of the group in ring order: ``group[i]`` sends to ``group[i + 1]``, the last to the first."""
        return self.facts.group

    @property
    def cp_size(self) -> int:
        """The ranks of the group."""
        return len(self.facts.group)

    @property
    def exchange(self) -> str | None:
        return self.facts.exchange

    @property
    def cut(self) -> str:
        return self.facts.cut

    @property
    def offload(self) -> float:
        return self.facts.offload

    @property
    def token_wise(self) -> bool:
        return self.facts.token_wise

    @property
    def continues(self) -> bool:
        return self.facts.continues

    @property
    def repeats_forward(self) -> bool:
        return self.facts.repeats_forward

    @property
    def padding(self) -> int:
        return self.facts.padding

    @property
    def padded(self) -> bool:
        return self.facts.padded

    @property
    def update(self) -> int:
        return self.facts.update

    @property
    def earlier_keys(self) -> int:
        """Keys of the chunks before, which a micro-batch that continues them sees: the tokens before its span."""
        return self._native.earlier_keys

    # What the rank holds.

    @cached_property
    def members(self) -> Sequence[Pieces]:
        """What every member of the group holds of the spans that the group shares; ``members[cp_rank]`` is one's own.

        A member's pieces are made when they are asked for.
        """
        return Listed(self.cp_size, lambda member: self._pieces(self._native.pieces(member)))

    @cached_property
    def local(self) -> Pieces:
        """What the rank holds alone beside that; keys and values of these pieces do not travel."""
        return self._pieces(self._native.local(self.cp_rank))

    @cached_property
    def pieces(self) -> Pieces:
        """The rank's own rows in their order: those of ``members[cp_rank]``, then those of ``local``."""
        return self._pieces(self._native.pieces(self.cp_rank) + self._native.local(self.cp_rank))

    @property
    def tokens(self) -> int:
        """Own rows."""
        return self.pieces.tokens

    @cached_property
    def cu_seqlens(self) -> numpy.ndarray:
        """Where pieces begin among the own rows, and behind the last one; 32-bit integers."""
        numpy = _numpy()
        ends = numpy.cumsum(self.pieces.end - self.pieces.begin)
        return numpy.concatenate([[0], ends]).astype(numpy.int32)

    @property
    def max_seqlen(self) -> int:
        """Rows of the longest piece; 0 without one."""
        return int((self.pieces.end - self.pieces.begin).max(initial=0))

    @cached_property
    def position_ids(self) -> numpy.ndarray:
        """By row, its place in the sequence, from 0 at its first token: for rotary embeddings."""
        numpy = _numpy()
        rows = self.pieces.end - self.pieces.begin
        first = self.pieces.begin - (numpy.cumsum(rows) - rows)
        return numpy.repeat(first, rows) + numpy.arange(self.tokens)

    @cached_property
    def sequence_ids(self) -> numpy.ndarray:
        """By row, the index of its sequence in ``Plan.lengths``."""
        return _numpy().repeat(self.pieces.sequence, self.pieces.end - self.pieces.begin)

    @cached_property
    def moved(self) -> numpy.ndarray:
        """Queries whose attention another rank of the group computes, of the whole group: an array of five columns.

        Index of the span, begin in the sequence, tokens, holder and server, both by their places in ``group``.
        """
        return _array(self._native.moved(), 5)

    @cached_property
    def _spans(self) -> numpy.ndarray:
        return _array(self._native.spans(), 3)

    def _pieces(self, numbers: bytearray) -> Pieces:
        span, begin, end = _array(numbers, 3).T
        sequence, span_begin, span_end = self._spans[span].T
        return Pieces(sequence, begin, end, span, span_begin, span_end)

    def __repr__(self) -> str:
        return f"<hdpsim.Share of rank {self.rank} in micro-batch {self.micro_batch}: {self.pieces}>"


class Plan:
    """Who computes what in one step: the contents of a plan file, schema hdpsim.plan/2. It never changes."""

    def __init__(self, native: _native.Plan, estimate_s: float | None = None) -> None:
        self._native = native
        #: Seconds of the step by the work model of whoever planned it; None for a plan that was read.
        self.estimate_s: float | None = estimate_s

    @staticmethod
    def read(path: str | os.PathLike) -> Plan:
        """The plan of a file, schema hdpsim.plan/1 or /2, checked as ``hdpsim check`` does it.

        InputError with every problem, MachineError if the file cannot be read.
        """
        return Plan(_native.Plan.read(os.fspath(path)))

    @staticmethod
    def parse(text: str, name: str = "plan") -> Plan:
        """The same of a text, which problems call ``name``."""
        return Plan(_native.Plan.parse(name, text))

    def json(self) -> str:
        """The plan as a file of schema hdpsim.plan/2."""
        return self._native.json()

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.json(), self.estimate_s)

    @property
    def policy(self) -> str:
        return self._native.policy

    @property
    def step(self) -> int:
        return self._native.step

    @property
    def ranks(self) -> int:
        """HDP ranks, each of which is ``tp`` x ``pp`` devices."""
        return self._native.ranks

    @property
    def capacity(self) -> int:
        """Tokens that a rank holds per micro-batch without offload."""
        return self._native.capacity

    @property
    def layers(self) -> int:
        """Layers of one pass of a rank, of which offload ratios count."""
        return self._native.layers

    @property
    def expert_ranks(self) -> int:
        """Consecutive ranks that run waves together."""
        return self._native.expert_ranks

    @cached_property
    def lengths(self) -> list[int]:
        """The tokens of every sequence."""
        return self._native.lengths

    @cached_property
    def ids(self) -> list[Id] | None:
        """What whoever planned calls the sequences; None: their places in the batch."""
        return self._native.ids or None

    @property
    def exchange(self) -> str | None:
        """How groups share keys, a word of ``mesh.cp_comm_type`` (``p2p`` is a ring); None: as the runtime likes."""
        return self._native.exchange

    @property
    def tp(self) -> int:
        return self._native.tp

    @property
    def pp(self) -> int:
        return self._native.pp

    @property
    def placement(self) -> str:
        """How world ranks are numbered: see ``world_rank``."""
        return self._native.placement

    @property
    def model_layers(self) -> int | None:
        """Layers of the model; None if the plan does not say it."""
        return self._native.model_layers or None

    @property
    def made_by(self) -> dict[str, str] | None:
        """``version`` of hdpsim, name of the ``study`` and a ``hash`` of what it states besides data and plans."""
        made_by = self._native.made_by
        return None if made_by is None else dict(zip(("version", "study", "hash"), made_by))

    @cached_property
    def waves(self) -> bool:
        """Whether all ranks can run the k-th micro-batches of their lists together.

        Collectives of all ranks within micro-batches need it, such as those of FSDP that gathers for every pass. A
        runtime gathers parameters once a step where it is False.
        """
        return self._native.waves

    @property
    def update_count(self) -> int:
        """Optimizer steps of the batch."""
        return self._native.update_count

    @cached_property
    def micro_batches(self) -> Sequence[MicroBatch]:
        """All micro-batches, in the order of their updates. Each is made when it is asked for."""
        return Listed(self._native.micro_batch_count, lambda index: MicroBatch(**self._native.micro_batch(index).facts))

    def schedule(self, rank: int) -> list[int]:
        """The indices of a rank's micro-batches in the order of execution: forward; chunks run backward in reverse."""
        if not 0 <= rank < self.ranks:
            raise ValueError(f"there is no rank {rank}: the plan has {self.ranks}")
        return self._native.schedule(rank)

    def share(self, rank: int) -> list[Share]:
        """What a rank does, micro-batch by micro-batch in the order of execution; empty for a rank without work."""
        return [Share(self, micro_batch, rank) for micro_batch in self.schedule(rank)]

    def world_rank(self, rank: int, stage: int = 0, shard: int = 0) -> int:
        """The process that computes a shard of a stage of a rank, where processes are numbered as ``placement`` says."""
        before = stage * self.ranks + rank if self.placement == "strided" else rank * self.pp + stage
        return before * self.tp + shard

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.json() == other.json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<hdpsim.Plan of {self.policy}, step {self.step}: {len(self.lengths)} sequences in "
            f"{len(self.micro_batches)} micro-batches on {self.ranks} ranks>"
        )


def _again(text: str, estimate_s: float | None) -> Plan:
    return Plan(_native.Plan.parse("plan", text), estimate_s)


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ImportError("a rank's share is NumPy arrays, and numpy is not here: pip install numpy") from None
    return numpy


def _array(numbers: bytearray, columns: int) -> Any:
    numpy = _numpy()
    if not numbers:
        return numpy.zeros((0, columns), dtype=numpy.int64)
    return numpy.frombuffer(numbers, dtype=numpy.int64).reshape(-1, columns)
