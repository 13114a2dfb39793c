"""No hang without a word: a time limit for waiting, and what every rank was doing when it passed.

A thread writes what this rank does into the store of the process group, once a second. Where a wait fails or passes
the limit, the error tells the last state of each rank, and which of them give no sign of life.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from . import versions

BEAT_S = 1.0  # between two signs of life
SILENT_S = 5.0  # without a sign: dead, or its processor is
LINGER_S = 2.0  # before rank 0 fails, whose process may hold the store from which others read


class Stuck(RuntimeError):
    """A rank waited in vain. The text has the state of each rank."""


class Watch:
    """What one rank does, for itself and for the others. `limit_s` bounds every single wait."""

    def __init__(self, group: Any, rank: int, size: int, limit_s: float) -> None:
        self.group, self.rank, self.size, self.limit_s = group, rank, size, limit_s
        self.doing = "ready"  # a few words: step, micro-batch, pass
        self._waits_for = ""
        self._since = time.monotonic()
        self._kills = not versions.waits_with_limit(group)
        self._store = versions.shared_store() if size > 1 else None
        self._closed = threading.Event()
        if self._store is not None:
            self._beat()
            threading.Thread(target=self._keep_beating, name="hdpsim watch", daemon=True).start()

    def close(self) -> None:
        self._closed.set()

    def now(self, doing: str) -> None:
        self.doing = doing

    @contextlib.contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """What a rank waits for, and whatever fails meanwhile told with the states of all."""
        self._since, self._waits_for = time.monotonic(), what
        try:
            yield
        except Stuck:
            raise
        except (RuntimeError, OSError) as error:  # a connection that breaks is either, by version
            raise Stuck(self.report(f"{self.doing}: {what}: {str(error).splitlines()[0]}")) from error
        finally:
            self._waits_for = ""

    def wait(self, work: Any) -> None:
        versions.wait(work, None if self._kills else self.limit_s)

    def failed(self, error: BaseException) -> None:
        """Says to the others why this rank goes."""
        self._put(f"FAILED in {self.doing}: {type(error).__name__}: {str(error)[:500]}")
        self._closed.set()
        if self._store is not None and versions.global_rank(self.group, self.rank) == 0:
            time.sleep(LINGER_S)

    def report(self, what: str) -> str:
        """The states of all ranks, a line each."""
        waited = time.monotonic() - self._since
        self._closed.wait(min(BEAT_S, 0.5))  # others may be about to say that they failed
        lines = [f"rank {self.rank} waited {waited:.1f} s (limit {self.limit_s:g} s): {what}"]
        lines += [f"  rank {rank}: {self._state_of(rank)}" for rank in range(self.size) if rank != self.rank]
        return "\n".join(lines)

    def _state_of(self, rank: int) -> str:
        if self._store is None:
            return "unknown: this version of PyTorch shows no store"
        try:
            when, text = self._store.get(self._key(rank)).decode().split(" ", 1)
        except Exception as error:  # the store's process may be the one that died
            return f"unknown: {type(error).__name__}, perhaps it held the store"
        age = time.time() - float(when)
        return f"{text}{f' (no sign of life for {age:.0f} s)' if age > SILENT_S and not text.startswith('FAILED') else ''}"

    def _key(self, rank: int) -> str:
        return f"hdpsim/watch/{versions.global_rank(self.group, rank)}"

    def _put(self, text: str) -> None:
        if self._store is not None:
            with contextlib.suppress(Exception):
                self._store.set(self._key(self.rank), f"{time.time()} {text}")

    def _beat(self) -> None:
        waits = f", waits for {self._waits_for}" if self._waits_for else ""
        self._put(f"{self.doing}{waits}")

    def _keep_beating(self) -> None:
        while not self._closed.wait(BEAT_S):
            self._beat()
            if self._kills and self._waits_for and time.monotonic() - self._since > self.limit_s:
                # The main thread waits inside a library that obeys no limit: NCCL's own watchdog ends processes, too.
                print(self.report(f"{self.doing}: {self._waits_for}"), file=sys.stderr, flush=True)
                os._exit(70)
