"""Messages between the ranks of this launch, copies to and from page-locked memory, and kernels beside both."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.distributed as dist

from .clock import Clock, Timing, Work, summary

Subject = dict
Share = Callable[[list[float]], list[list[float]]]  # gives every rank's numbers to all
KINDS = ("send_recv", "all_reduce", "all_gather", "reduce_scatter", "all_to_all")
AT_LEAST_S = 2e-3  # of messages in a row, which are timed together as nccl-tests times them
MOST_IN_A_ROW = 50


@dataclass
class Team:
    """Ranks that exchange messages, over links of one kind."""

    ranks: list[int]
    link: str  # "node" or "network"
    kinds: tuple[str, ...]
    group: object = None
    refused: set[str] = field(default_factory=set)  # kinds that the backend does not have


def teams(world: int, per_node: int) -> list[Team]:
    """Within the first node two ranks, twice as many, and so on; between nodes rank 0 with the first rank of another
    node, and all ranks. None for a single rank."""
    found = []
    node = min(world, per_node)
    sizes = sorted({size for size in (2, 4, 8, 16, 32, 64) if size < node} | {node})
    for size in sizes:
        if size > 1:
            found.append(Team(list(range(size)), "node", KINDS))
    if world > per_node:
        found.append(Team([0, per_node], "network", KINDS[:1]))
        found.append(Team(list(range(world)), "network", KINDS[1:]))
    return found


class Messages:
    """Times messages. Every method is called by all ranks of the launch, those of no team as well."""

    def __init__(self, rank: int, world: int, per_node: int, clock: Clock, limit: object) -> None:
        self.rank, self.clock = rank, clock
        self.teams = teams(world, per_node)
        for team in self.teams:
            team.group = dist.new_group(team.ranks, timeout=limit)

    def probe(self) -> None:
        """Leaves out what the backend does not have, and makes connections."""
        for team in self.teams:
            for kind in team.kinds:
                try:
                    if self.rank in team.ranks:
                        self.operation(team, kind, 4 * len(team.ranks))()
                        self.clock.finish()
                except (RuntimeError, NotImplementedError, ValueError):  # of any kind, by version and backend
                    team.refused.add(kind)

    def subjects(self, sizes: list[int]) -> list[Subject]:
        found = []
        for size in sizes:
            for team in self.teams:
                unit = 4 * len(team.ranks)  # whole fp32 numbers on every rank
                found += [{"family": "messages", "kind": kind, "ranks": len(team.ranks),
                           "bytes": max(unit, size // unit * unit), "link": team.link}
                          for kind in team.kinds if kind not in team.refused]
        return found

    def time(self, subject: Subject, share: Share) -> Timing:
        """The slowest rank's time counts."""
        team = next(team for team in self.teams
                    if (len(team.ranks), team.link) == (subject["ranks"], subject["link"])
                    and subject["kind"] in team.kinds)
        work = self.operation(team, subject["kind"], subject["bytes"]) if self.rank in team.ranks else None
        first = max(max(numbers) for numbers in share([self._seconds(work, 1)]))
        in_a_row = max(1, min(MOST_IN_A_ROW, round(AT_LEAST_S / max(first, 1e-7))))
        stopping = self.clock.stopping
        wanted = int(stopping.sampling_s / max(first * in_a_row, 1e-7))
        batches = max(stopping.least_runs, min(stopping.most_runs, wanted))
        own = [self._seconds(work, in_a_row) / in_a_row for _ in range(batches)]
        return summary([max(run) for run in zip(*share(own))])

    def _seconds(self, work: Work | None, count: int) -> float:
        if work is None:
            return 0.0
        self.clock.finish()
        if self.clock.device.type != "cuda":
            begin = time.perf_counter()
            for _ in range(count):
                work()
            return time.perf_counter() - begin
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(count):
            work()
        end.record()
        self.clock.finish()
        return begin.elapsed_time(end) / 1e3

    def operation(self, team: Team, kind: str, size: int) -> Work:
        """One message of `size` bytes in the conventions of nccl-tests: the buffer of all-reduce, what all ranks hold
        together for all-gather and reduce-scatter, what each sends for all-to-all, the message for send/recv."""
        device, group, ranks = self.clock.device, team.group, len(team.ranks)
        whole, other = (torch.ones(size // 4, device=device) for _ in range(2))
        part = torch.ones(size // 4 // ranks, device=device)
        place = team.ranks.index(self.rank)
        on_gpu = device.type == "cuda"
        if kind == "send_recv":
            to, by = team.ranks[(place + 1) % ranks], team.ranks[place - 1]

            def exchange() -> None:
                works = dist.batch_isend_irecv([dist.P2POp(dist.isend, whole, to, group),
                                                dist.P2POp(dist.irecv, other, by, group)])
                for work in works:
                    work.wait()

            return exchange
        if kind == "all_reduce":
            return lambda: dist.all_reduce(whole, group=group)
        if kind == "all_to_all":
            return lambda: dist.all_to_all_single(other, whole, group=group)
        if kind == "all_gather":
            if on_gpu:
                return lambda: dist.all_gather_into_tensor(whole, part, group=group)
            parts = list(whole.chunk(ranks))
            return lambda: dist.all_gather(parts, part, group=group)
        if on_gpu:
            return lambda: dist.reduce_scatter_tensor(part, whole, group=group)
        parts = list(whole.chunk(ranks))
        return lambda: dist.reduce_scatter(part, parts, group=group)


class Copies:
    """Copies between a GPU and page-locked memory, alone and while the other direction runs."""

    KINDS = ("d2h", "h2d", "d2h_of_both", "h2d_of_both")

    def __init__(self, clock: Clock, largest: int) -> None:
        self.clock = clock
        self._there, self._there_too = (torch.empty(largest, dtype=torch.uint8, device=clock.device) for _ in range(2))
        self._here, self._here_too = (torch.empty(largest, dtype=torch.uint8, pin_memory=True) for _ in range(2))
        self._stream = torch.cuda.Stream(clock.device)

    def subjects(self, sizes: list[int]) -> list[Subject]:
        return [{"family": "copies", "kind": kind, "bytes": size} for kind in self.KINDS for size in sizes
                if size <= self._there.numel()]

    def time(self, subject: Subject) -> Timing:
        to_host = subject["kind"].startswith("d2h")
        size = subject["bytes"]
        work = self.copy(to_host, size)
        if not subject["kind"].endswith("both"):
            return self.clock.time(work)
        beside = self.copy(not to_host, size, second=True)
        return summary(self.beside(work, lambda: [beside() for _ in range(3)]))

    def copy(self, to_host: bool, size: int, second: bool = False) -> Work:
        here = (self._here_too if second else self._here)[:size]
        there = (self._there_too if second else self._there)[:size]
        to, source = (here, there) if to_host else (there, here)
        return lambda: to.copy_(source, non_blocking=True)

    def beside(self, work: Work, traffic: Work) -> list[float]:
        """Seconds of runs of `work` while `traffic`, which takes longer, is under way on a stream of its own."""
        seconds = []
        for _ in range(max(self.clock.stopping.least_runs, 10)):
            ready, begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
            self.clock.empty_caches()
            ready.record()
            with torch.cuda.stream(self._stream):
                self._stream.wait_event(ready)
                traffic()
            begin.record()
            work()
            end.record()
            self.clock.finish()
            seconds.append(begin.elapsed_time(end) / 1e3)
        return seconds


class Interference:
    """How many times longer a kernel takes beside copies, or beside messages to the next rank of the node."""

    LONG_ENOUGH = 4  # times the kernel alone: so long traffic is under way

    def __init__(self, clock: Clock, copies: Copies, messages: Messages | None) -> None:
        self.clock, self.copies, self.messages = clock, copies, messages

    def subjects(self) -> list[Subject]:
        near = self.messages is not None and any(team.link == "node" for team in self.messages.teams)
        return [{"family": "interference", "compute": compute, "traffic": traffic, "ctas": most_ctas(traffic)}
                for traffic in ("d2h", "h2d", "both") + (("p2p",) if near else ())
                for compute in ("attention", "gemm", "elementwise")]

    def time(self, subject: Subject, kernel: Work, share: Share) -> Timing:
        alone = self.clock.time(kernel)
        slowest = max(max(numbers) for numbers in share([alone.median]))  # all send equally often
        traffic = self._traffic(subject["traffic"], self.LONG_ENOUGH * slowest)
        return summary([seconds / alone.median for seconds in self.copies.beside(kernel, traffic)])

    def _traffic(self, kind: str, long_s: float) -> Work:
        if kind == "p2p":
            team = [team for team in self.messages.teams if team.link == "node"][-1]
            size = 64 << 20
            if self.messages.rank not in team.ranks:
                return lambda: None
            message = self.messages.operation(team, "send_recv", size)
            count = max(2, min(100, round(long_s / (size / 100e9))))  # no link is much slower than 100 GB/s
            return lambda: [message() for _ in range(count)]
        size = 64 << 20
        count = max(2, min(200, round(long_s / (size / 50e9))))
        ways = {"d2h": [True], "h2d": [False], "both": [True, False]}[kind]
        copies = [self.copies.copy(to_host, size, second=not to_host) for to_host in ways]
        return lambda: [copy() for _ in range(count) for copy in copies]


def most_ctas(traffic: str) -> int:
    """Thread blocks of messages where the launch limits them, otherwise 0: copy engines, or not known."""
    return int(os.environ.get("NCCL_MAX_CTAS", "0")) if traffic == "p2p" else 0
