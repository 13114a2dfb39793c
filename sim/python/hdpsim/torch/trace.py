"""Names in the user's traces: which step, micro-batch and pass an operator belongs to.

The ranges are `hdpsim:STEP/MICRO_BATCH/forward`, `.../backward`, `hdpsim:STEP/reduce`, and around all of a step
`hdpsim:STEP/rank/RANK`: steps, micro-batches and ranks as the plan counts them, so that `hdpsim compare` lays a trace
beside a simulation without any id of the simulator. While a profiler runs, `hdpsim:attention/forward`, `/backward` and
`hdpsim:exchange` say which operators are attention's, whatever its kernel consists of, and when a rank waits for keys.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from . import versions


def span(step: int, micro_batch: int, what: str) -> Any:
    return torch.profiler.record_function(f"hdpsim:{step}/{micro_batch}/{what}")


def reduction(step: int) -> Any:
    return torch.profiler.record_function(f"hdpsim:{step}/reduce")


def whole(step: int, rank: int) -> Any:
    """All of a step, as one rank runs it."""
    return torch.profiler.record_function(f"hdpsim:{step}/rank/{rank}")


def detail(what: str) -> Any:
    """A range within a micro-batch. There are many of these, so that they cost nothing where no profiler runs."""
    return torch.profiler.record_function(f"hdpsim:{what}") if versions.is_profiling() else _nothing


_nothing = contextlib.nullcontext()


class Profile:
    """Traces of chosen steps; step() is called behind each. `files` are those written so far."""

    def __init__(self, folder: Path, rank: int, steps: set[int]) -> None:
        self._folder, self._rank, self._steps = folder, rank, steps
        self._step = 0
        self._profiler: Any = None
        self.files: list[Path] = []

    def _begin(self) -> None:
        if self._step in self._steps:
            activities = [torch.profiler.ProfilerActivity.CPU]
            if torch.cuda.is_available():
                activities.append(torch.profiler.ProfilerActivity.CUDA)
            self._profiler = torch.profiler.profile(activities=activities)
            self._profiler.__enter__()

    def _end(self, plan: Any = None) -> None:
        if self._profiler is not None:
            self._profiler.__exit__(None, None, None)
            path = self._folder / f"rank{self._rank}-step{self._step}.json.gz"
            self._profiler.export_chrome_trace(str(path))
            self.files.append(path)
            self._profiler = None
            if plan is not None and self._rank == 0:
                (self._folder / f"plan-step{self._step}.json").write_text(plan.json())

    def step(self, plan: Any = None) -> None:
        """Says that a step is over. Rank 0 writes the plan of a traced one beside the traces, for `hdpsim compare`."""
        self._end(plan)
        self._step += 1
        self._begin()


@contextlib.contextmanager
def profile(folder: str | os.PathLike, *, rank: int = 0, steps: Iterable[int] = (1,)) -> Iterator[Profile]:
    """Writes a trace (Kineto's JSON) of each of these steps, counted from 0 within the `with`, into the folder.

        with profile("traces", rank=hdp.rank, steps=range(5, 8)) as running:
            for batch in loader:
                hdp.run(batch, forward); optimizer.step(); optimizer.zero_grad()
                running.step(batch.plan)

    Then `hdpsim compare traces/rank*-step5.json.gz study.yaml --plan traces/plan-step5.json`, with the planner's study.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    running = Profile(folder, rank, set(steps))
    running._begin()
    try:
        yield running
    finally:
        running._end()
