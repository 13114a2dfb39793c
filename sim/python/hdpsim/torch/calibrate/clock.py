"""Times of one piece of work that is run again and again, with empty caches before each run."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

Work = Callable[[], object]


@dataclass
class Timing:
    """Seconds; of interference ratios."""

    median: float
    p10: float
    p90: float
    cv: float
    runs: int
    emptying: float | None = None

    def as_line(self) -> dict[str, object]:
        """The members of a line of samples."""
        line: dict[str, object] = {"median_s": self.median, "p10_s": self.p10, "p90_s": self.p90, "cv": self.cv,
                                   "runs": self.runs}
        if self.emptying is not None:
            line["emptying_s"] = self.emptying
        return line


def percentile(ordered: list[float], share: float) -> float:
    """Linear between the values, which are in order."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def summary(seconds: list[float], emptying: float | None = None) -> Timing:
    ordered = sorted(seconds)
    mean = statistics.fmean(ordered)
    deviation = statistics.pstdev(ordered)
    return Timing(statistics.median(ordered), percentile(ordered, 0.1), percentile(ordered, 0.9),
                  deviation / mean if mean > 0 else 0.0, len(ordered), emptying)


@dataclass
class Stopping:
    """How long one subject is run in one round."""

    sampling_s: float = 0.1
    least_runs: int = 3
    most_runs: int = 100

    def enough(self, runs: int, seconds: float) -> bool:
        """`seconds` are those since the first run, with what is between runs."""
        return runs >= self.most_runs or (runs >= self.least_runs and seconds >= self.sampling_s)


def cache_bytes(device: torch.device) -> int:
    """Of the last cache of a GPU, and of a core's part of a CPU's, or more."""
    if device.type == "cuda":
        return int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0)) or 128 << 20
    try:
        return min(os.sysconf("SC_LEVEL3_CACHE_SIZE") or 16 << 20, 16 << 20)
    except (ValueError, OSError):
        return 16 << 20


class Clock:
    """Times work on a CPU: it has ended when the call returns."""

    def __init__(self, device: torch.device, stopping: Stopping) -> None:
        self.device, self.stopping = device, stopping
        # Twice the cache: whatever it replaces first, nothing of before is left.
        self._other = torch.zeros(2 * cache_bytes(device), dtype=torch.uint8, device=device)

    def empty_caches(self) -> None:
        self._other.fill_(1)

    def finish(self) -> None:
        """Waits until the device has done what was issued."""

    def time(self, work: Work) -> Timing:
        work()  # what is made once: memory, plans of libraries
        seconds: list[float] = []
        emptyings: list[float] = []
        first = time.perf_counter()
        while not self.stopping.enough(len(seconds), time.perf_counter() - first):
            begin = time.perf_counter()
            self.empty_caches()
            emptied = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - emptied)
            emptyings.append(emptied - begin)
        return summary(seconds, statistics.median(emptyings))


class CudaClock(Clock):
    """Times work on a GPU by its events. The caches are emptied by a kernel, during which the host runs ahead."""

    at_once = 10  # runs in the queue

    def finish(self) -> None:
        torch.cuda.synchronize(self.device)

    def time(self, work: Work) -> Timing:
        work()
        self.finish()
        seconds: list[float] = []
        first = time.perf_counter()
        while not self.stopping.enough(len(seconds), time.perf_counter() - first):
            pairs = []
            for _ in range(self.at_once):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                self.empty_caches()
                begin.record()
                work()
                end.record()
                pairs.append((begin, end))
            self.finish()
            seconds += [begin.elapsed_time(end) / 1e3 for begin, end in pairs]
        return summary(seconds)


def clock_of(device: torch.device, stopping: Stopping) -> Clock:
    return CudaClock(device, stopping) if device.type == "cuda" else Clock(device, stopping)


def launch_seconds(clock: Clock) -> float:
    """Time of the smallest kernel: the addition of one number, many in a row."""
    one = torch.zeros(1, device=clock.device)
    count = 200
    if clock.device.type != "cuda":
        return min(_host_seconds(lambda: one.add_(1), count) for _ in range(3))
    times = []
    for _ in range(3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(20):
            clock.empty_caches()  # long enough for the host to issue all that follows
        begin.record()
        for _ in range(count):
            one.add_(1)
        end.record()
        clock.finish()
        times.append(begin.elapsed_time(end) / 1e3 / count)
    return min(times)


def host_issue_seconds(clock: Clock) -> float:
    """Time of the host to issue a kernel in a training step: its operation, forward and backward, with autograd."""
    count = 500
    seconds = []
    for _ in range(5):
        x = first = torch.ones(1, device=clock.device, requires_grad=True)
        clock.finish()
        begin = time.perf_counter()
        for _ in range(count):
            x = x * 1.0001
        torch.autograd.grad(x, first)
        seconds.append((time.perf_counter() - begin) / (2 * count))
        clock.finish()
    return statistics.median(seconds)


def _host_seconds(work: Work, count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - begin) / count
