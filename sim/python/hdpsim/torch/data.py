"""Batches of plans: every rank draws the same sequences, plans the same plan, and reads only its own tokens.

A data set has
    lengths                  tokens of every sequence, by its index
    tokens(i, begin, end)    those of a sequence (a list, an array or a tensor); without it data_set[i] gives all of them
    labels(i, begin, end)    optional: labels in the places of their tokens, not shifted, -100 where not counted
"""

from __future__ import annotations

import contextlib
import glob
import os
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from .batch import Batch, make_batch

_end = object()


class PlannedLoader:
    """Plans and reads ahead of the step, in a thread: planning runs without the lock of Python.

    `planner` is a hdpsim.Planner, or whatever has plan(lengths, ids). Each sequence is in one batch of an epoch, also
    where the policy holds sequences back: these come at its end. A batch takes sequences in the order of the epoch as
    long as they have no more than `tokens_per_step` tokens together, at least one. Lengths stay as they are.
    """

    def __init__(self, dataset: Any, planner: Any, hdp: Any = None, *, tokens_per_step: int, rank: int | None = None,
                 seed: int = 0, shuffle: bool = True, ahead: int = 2, pad_to_multiple_of: int = 1) -> None:
        if tokens_per_step < 1:
            raise ValueError(f"tokens_per_step={tokens_per_step}: at least 1")
        self._source: Any = _Live(dataset, planner, tokens_per_step, seed, shuffle)
        self._start(dataset, hdp, rank, ahead, pad_to_multiple_of)

    @classmethod
    def from_files(cls, dataset: Any, files: str | os.PathLike | Iterable[str | os.PathLike], hdp: Any = None, *,
                   rank: int | None = None, index_of: Callable[[Any, int], int] | None = None, ahead: int = 2,
                   pad_to_multiple_of: int = 1) -> PlannedLoader:
        """Batches of plan files, a path each or a pattern such as plans/*.json, in the order of their numbers.

        `index_of(plan, place)` gives the index in the data set of the sequence in a place of a plan; by default the
        plan's ids are these.
        """
        loader = cls.__new__(cls)
        loader._source = _Files(dataset, _paths(files), index_of or _index_by_id)
        loader._start(dataset, hdp, rank, ahead, pad_to_multiple_of)
        return loader

    def _start(self, dataset: Any, hdp: Any, rank: int | None, ahead: int, multiple: int) -> None:
        if hdp is None and rank is None:
            raise ValueError("whose tokens? Hand over the HDP, or rank=")
        self._dataset, self._rank = dataset, hdp.rank if rank is None else rank
        self._ahead, self._multiple = max(1, ahead), multiple
        self._read = _reader(dataset, "tokens") or (lambda i, begin, end: dataset[i][begin:end])
        self._labels = _reader(dataset, "labels")
        self._state = self._source.begin()

    def state_dict(self) -> dict[str, Any]:
        """Where to go on behind the last batch that was taken: the same for all ranks. What was read ahead is not in."""
        return dict(self._state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where another loader of the same arguments was."""
        self._state = dict(state)

    def __iter__(self) -> Iterator[Batch]:
        """The batches of the epoch, or what is left of it. The next call begins the next epoch."""
        ready: queue.Queue = queue.Queue(maxsize=self._ahead)
        closed = threading.Event()
        work = threading.Thread(target=self._fill, args=(ready, closed, dict(self._state)), daemon=True,
                                name="hdpsim loader")
        work.start()
        try:
            while True:
                batch, state = ready.get()
                if isinstance(batch, BaseException):
                    raise batch
                self._state = state
                if batch is _end:
                    return
                yield batch
        finally:
            closed.set()
            with contextlib.suppress(queue.Empty):
                while True:
                    ready.get_nowait()
            work.join()

    def _fill(self, ready: queue.Queue, closed: threading.Event, state: dict[str, Any]) -> None:
        def put(item: Any) -> None:
            while not closed.is_set():
                with contextlib.suppress(queue.Full):
                    return ready.put(item, timeout=0.1)

        try:
            for plan, indices, after in self._source.plans(state):
                if closed.is_set():
                    return
                put((self._batch(plan, indices), after))
                state = after
            put((_end, self._source.next_epoch(state)))
        except BaseException as error:  # the loop of the user gets it
            put((error, None))

    def _batch(self, plan: Any, indices: list[int]) -> Batch:
        labels = self._labels
        batch = make_batch(
            plan, self._rank, lambda sequence, begin, end: self._read(indices[sequence], begin, end),
            None if labels is None else lambda sequence, begin, end: labels(indices[sequence], begin, end),
            pad_to_multiple_of=self._multiple)
        if torch.cuda.is_available():
            batch.micro_batches = [part.pinned() for part in batch.micro_batches]
        return batch


class _Live:
    """Plans of a planner. The state: epoch, place in its order, and what the planner holds back."""

    def __init__(self, dataset: Any, planner: Any, tokens_per_step: int, seed: int, shuffle: bool) -> None:
        self._lengths, self._planner = dataset.lengths, planner
        self._tokens, self._seed, self._shuffle = tokens_per_step, seed, shuffle

    def begin(self) -> dict[str, Any]:
        return self._after(0, 0)

    def next_epoch(self, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "epoch": state["epoch"] + 1, "next": 0}

    def plans(self, state: dict[str, Any]) -> Iterator[tuple[Any, list[int], dict[str, Any]]]:
        epoch, place = state["epoch"], state["next"]
        if state.get("planner") is not None:
            self._planner.load_state_dict(state["planner"])
        order = self._order(epoch)
        while place < len(order):
            indices, place = self._draw(order, place)
            yield self._planned(indices, epoch, place)
        while getattr(self._planner, "held", None):
            yield self._planned([], epoch, place)

    def _planned(self, indices: list[int], epoch: int, place: int) -> tuple[Any, list[int], dict[str, Any]]:
        plan = self._planner.plan([int(self._lengths[i]) for i in indices], ids=indices)
        return plan, [int(i) for i in plan.ids] if plan.ids is not None else indices, self._after(epoch, place)

    def _order(self, epoch: int) -> list[int]:
        if not self._shuffle:
            return list(range(len(self._lengths)))
        generator = torch.Generator().manual_seed((self._seed << 20) + epoch)
        return torch.randperm(len(self._lengths), generator=generator).tolist()

    def _draw(self, order: list[int], place: int) -> tuple[list[int], int]:
        indices = [order[place]]
        tokens = int(self._lengths[order[place]])
        place += 1
        while place < len(order) and tokens + int(self._lengths[order[place]]) <= self._tokens:
            indices.append(order[place])
            tokens += int(self._lengths[order[place]])
            place += 1
        return indices, place

    def _after(self, epoch: int, place: int) -> dict[str, Any]:
        planner = self._planner
        state = planner.state_dict() if hasattr(planner, "state_dict") else None
        return {"epoch": epoch, "next": place, "planner": state}


class _Files:
    """Plans of files. The state: the number of the next one."""

    def __init__(self, dataset: Any, paths: list[str], index_of: Callable[[Any, int], int]) -> None:
        self._lengths, self._paths, self._index_of = dataset.lengths, paths, index_of

    def begin(self) -> dict[str, Any]:
        return {"epoch": 0, "next": 0}

    def next_epoch(self, state: dict[str, Any]) -> dict[str, Any]:
        return {"epoch": state["epoch"] + 1, "next": 0}

    def plans(self, state: dict[str, Any]) -> Iterator[tuple[Any, list[int], dict[str, Any]]]:
        import hdpsim

        for number in range(state["next"], len(self._paths)):
            plan = hdpsim.Plan.read(self._paths[number])
            indices = [self._index_of(plan, place) for place in range(len(plan.lengths))]
            for index, length in zip(indices, plan.lengths):
                if int(self._lengths[index]) != length:
                    raise ValueError(f"{self._paths[number]}: {length} tokens of sequence {index}, which has "
                                     f"{self._lengths[index]} in the data set: was the plan made for other data, or "
                                     "did the study cut sequences to its context?")
            yield plan, indices, {"epoch": state["epoch"], "next": number + 1}


def _index_by_id(plan: Any, place: int) -> int:
    if plan.ids is None:
        raise ValueError("the plan does not say which sequences these are (no ids): from_files(..., index_of=...)")
    index = plan.ids[place]
    if not isinstance(index, int):
        raise ValueError(f"the plan calls a sequence {index!r}, which is no index: from_files(..., index_of=...)")
    return index


def _paths(files: str | os.PathLike | Iterable[str | os.PathLike]) -> list[str]:
    if isinstance(files, (str, os.PathLike)):
        pattern = os.fspath(files)
        found = sorted(glob.glob(pattern), key=lambda path: [int(part) if part.isdigit() else part
                                                             for part in re.split(r"(\d+)", path)])
        if not found:
            raise ValueError(f"no plan files: {pattern}")
        return found
    return [os.fspath(file) for file in files]


def _reader(dataset: Any, name: str) -> Any:
    method = getattr(dataset, name, None)
    return method if callable(method) else None
