"""All ranks measure the same subject at the same time; rank 0 says which, writes, and ends it when the time is up."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from ..watch import Stuck, Watch
from .clock import Clock, Timing
from .grid import launch, operations, product
from .kernels import Kernels
from .samples import SampleFile
from .traffic import Copies, Interference, Messages

Subject = dict
LEAST = 32  # measurements, whatever the time limit: some of each family, which take turns


class Together:
    """What ranks tell each other, over a group of its own on CPUs. A single rank tells itself."""

    def __init__(self, rank: int, world: int, watch: Watch | None, group: Any) -> None:
        self.rank, self.world, self._watch, self._group = rank, world, watch, group

    def from_first(self, value: Any) -> Any:
        """Rank 0's value, on all ranks."""
        if self.world == 1:
            return value
        values = [value]
        with self.waiting("what rank 0 says"):
            dist.broadcast_object_list(values, src=0, group=self._group)
        return values[0]

    def share(self, value: Any) -> list[Any]:
        """Every rank's value, on all ranks."""
        if self.world == 1:
            return [value]
        values: list[Any] = [None] * self.world
        with self.waiting("what all ranks say"):
            dist.all_gather_object(values, value, group=self._group)
        return values

    def waiting(self, what: str) -> AbstractContextManager:
        """What breaks or passes the limit meanwhile is told with the states of all ranks (Stuck)."""
        return self._watch.waiting(what) if self._watch is not None else nullcontext()

    def now(self, doing: str) -> None:
        if self._watch is not None:
            self._watch.now(doing)


@dataclass
class Limits:
    end: float  # of time.monotonic(), but for the first measurements: a profile takes some
    rounds: int
    most_s: float  # of a single run: larger subjects are left out
    memory_bytes: float


@dataclass
class Result:
    measured: int = 0
    there: int = 0  # in the file before
    left_out: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # why, by subject


class Measurer:
    """Times any subject. All ranks call the same methods in the same order."""

    def __init__(self, clock: Clock, kernels: Kernels, together: Together, messages: Messages | None,
                 copies: Copies | None) -> None:
        self.clock, self.kernels, self.together, self.messages, self.copies = clock, kernels, together, messages, copies
        self.interference = Interference(clock, copies, messages) if copies else None

    def time(self, subject: Subject) -> Timing:
        family = subject["family"]
        if family == "messages":
            with self.together.waiting("messages"):
                return self.messages.time(subject, self.together.share)
        if family == "copies":
            return self.copies.time(subject)
        if family == "interference":
            return self.interference.time(subject, self.kernels.work(self._usual(subject["compute"])),
                                          self.together.share)
        return self.clock.time(self.kernels.work(subject))

    def _usual(self, compute: str) -> Subject:
        """A kernel of the family that takes about a millisecond of a GPU."""
        sizes = self.kernels.sizes
        return {"gemm": product(4096, sizes.inner, sizes.hidden),
                "attention": launch(sizes, False, [[8192, 8192, True, 1]]),
                "elementwise": {"family": "memory_bound", "kernel": "add", "bytes": 1 << 30}}[compute]


class Speed:
    """How long a run of a subject takes, from the peaks and from those that were measured before it."""

    def __init__(self, flops: float, bandwidth: float) -> None:
        self.flops, self.bandwidth = flops, bandwidth
        self._slower: dict[tuple, float] = {}  # measured over estimated, by kind

    def run_s(self, subject: Subject) -> float:
        return self._slower.get(self._kind(subject), 1.0) * self._at_best(subject)

    def learn(self, subject: Subject, seconds: float) -> None:
        """Sizes of a kind grow: the last that was measured is the nearest to the next."""
        if subject["family"] != "interference":
            self._slower[self._kind(subject)] = max(1.0, seconds / self._at_best(subject))

    def _at_best(self, subject: Subject) -> float:
        flops, moved = operations(subject)
        share = 0.2 if subject["family"] == "attention" else 0.5  # of the peaks, as seen from far
        return 1e-6 + flops / (share * self.flops) + moved / (share * self.bandwidth)

    @staticmethod
    def _kind(subject: Subject) -> tuple:
        return tuple(subject.get(key) for key in ("family", "kernel", "kind", "ranks", "link", "backward"))


def measure(subjects: list[Subject], measurer: Measurer, file: SampleFile | None, limits: Limits, speed: Speed,
            seed: int, tell: Callable[[str], None]) -> Result:
    """Rounds of all subjects, the first in their order, others shuffled. `subjects` and `file` are rank 0's."""
    together, result = measurer.together, Result()
    queue = _jobs(subjects, file, limits, speed, seed, result) if together.rank == 0 else iter(())
    while True:
        job = together.from_first(next(queue, None))
        if job is None:
            return result
        round_, subject = job
        together.now(f"round {round_}, {describe(subject)}")
        timing, error = _attempt(measurer, subject)
        errors = [(rank, text) for rank, text in enumerate(together.share(error)) if text]
        if together.rank != 0:
            continue
        if errors:
            result.failed.setdefault(describe(subject), f"rank {errors[0][0]}: {errors[0][1]}")
        else:
            file.add(subject, round_, timing)
            speed.learn(subject, timing.median)
            result.measured += 1
            tell(f"round {round_}: {describe(subject)}: {timing.median:.3g} s")


def _jobs(subjects: list[Subject], file: SampleFile, limits: Limits, speed: Speed, seed: int,
          result: Result) -> Iterator[tuple[int, Subject]]:
    """(round, subject) while there is time."""
    fitting = [subject for subject in subjects if operations(subject)[1] <= limits.memory_bytes]
    for round_ in range(limits.rounds):
        order = list(fitting)
        if round_ > 0:
            random.Random(seed + round_).shuffle(order)
        for subject in order:
            if file.has(subject, round_):
                result.there += 1
            elif describe(subject) in result.failed or speed.run_s(subject) > limits.most_s:
                continue
            elif time.monotonic() < limits.end or result.measured + result.there < LEAST:
                yield round_, subject
            else:
                result.left_out += 1


def _attempt(measurer: Measurer, subject: Subject) -> tuple[Timing | None, str]:
    """The timing, or why there is none. What other ranks wait for and did not get passes through."""
    try:
        timing = measurer.time(subject)
        if not timing.median > 0:
            return None, "it took no time"
        return timing, ""
    except Stuck:
        raise
    except (RuntimeError, NotImplementedError) as error:  # kernels that a version or a device lacks, memory
        if measurer.clock.device.type == "cuda":
            torch.cuda.empty_cache()
        return None, (str(error).splitlines() or [type(error).__name__])[0][:200]


def describe(subject: Subject) -> str:
    rest = {key: value for key, value in subject.items() if key != "family"}
    if "blocks" in rest and len(rest["blocks"]) > 2:
        rest["blocks"] = f"{len(rest['blocks'])} documents of {sum(block[0] for block in rest['blocks'])} tokens"
    return f"{subject['family']} " + " ".join(f"{key}={value}" for key, value in rest.items())


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
