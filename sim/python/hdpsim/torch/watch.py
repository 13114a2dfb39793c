"""No hang without a word: a time limit for waiting, and what every rank was doing when it passed.

A thread writes what this rank does into the store of the process group, once a second. Where a wait fails or passes
the limit, the error tells the last state of each rank, and which of them give no sign of life. The first such report
is kept in the store, and ranks that wait read it: the process with the store may have gone when their own wait fails.
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
OFTEN_S = 0.1  # between two when what it does changes
SILENT_S = 2.5  # without a sign: dead, or its processor is busy
LINGER_S = 5.0  # before rank 0 fails, whose process may hold the store from which others read
FIRST_REPORT = "hdpsim/watch/first report"  # key of the store


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
        self._heard = ""  # the first report of any rank
        self._closed, self._changed = threading.Event(), threading.Event()
        if self._store is not None:
            self._beat()
            threading.Thread(target=self._keep_beating, name="hdpsim watch", daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self._changed.set()

    def now(self, doing: str) -> None:
        """What this rank does from now on."""
        self.doing = doing
        self._changed.set()

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
        self._say(f"FAILED in {self.doing}: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:300]}")
        self.close()
        if self._store is not None and versions.global_rank(self.group, self.rank) == 0:
            time.sleep(LINGER_S)

    def report(self, what: str) -> str:
        """The states of all ranks, a line each."""
        waited = time.monotonic() - self._since
        self._beat()
        self._closed.wait(SILENT_S)  # until others have said that they failed, or have become silent
        lines = [f"rank {self.rank} waited {waited:.1f} s (limit {self.limit_s:g} s): {what}"]
        lines += [f"  rank {rank}: {self._state_of(rank)}" for rank in range(self.size) if rank != self.rank]
        self._hear()
        if self._heard:
            return "\n".join([*lines, "  before that:", *(f"    {line}" for line in self._heard.splitlines())])
        self._put(FIRST_REPORT, "\n".join(lines))
        return "\n".join(lines)

    def _hear(self) -> None:
        """Keeps the first report of any rank, once there is one: one key, whatever the number of ranks."""
        if self._store is not None and not self._heard:
            with contextlib.suppress(Exception):
                if self._store.check([FIRST_REPORT]):
                    self._heard = self._store.get(FIRST_REPORT).decode()

    def _state_of(self, rank: int) -> str:
        if self._store is None:
            return "unknown: this version of PyTorch shows no store"
        try:
            when, text = self._store.get(self._key(rank)).decode().split(" ", 1)
        except Exception as error:  # of any kind, by version and by what broke
            return f"not known: the store does not answer ({type(error).__name__}), its process may be the one that died"
        age = time.time() - float(when)
        silent = age > SILENT_S and not text.startswith("FAILED")
        return f"{text} (no sign of life for {age:.1f} s)" if silent else text

    def _key(self, rank: int) -> str:
        return f"hdpsim/watch/{versions.global_rank(self.group, rank)}"

    def _put(self, key: str, text: str) -> None:
        if self._store is not None:
            with contextlib.suppress(Exception):
                self._store.set(key, text)

    def _say(self, text: str) -> None:
        self._put(self._key(self.rank), f"{time.time()} {text}")

    def _beat(self) -> None:
        waits = f", waits for {self._waits_for}" if self._waits_for else ""
        self._say(f"{self.doing}{waits}")

    def _keep_beating(self) -> None:
        while not self._closed.wait(OFTEN_S):
            self._changed.wait(BEAT_S)
            self._changed.clear()
            if self._closed.is_set():
                return
            self._beat()
            if self._waits_for:
                self._hear()
            if self._kills and self._waits_for and time.monotonic() - self._since > self.limit_s:
                # The main thread waits inside a library that obeys no limit: NCCL's own watchdog ends processes, too.
                print(self.report(f"{self.doing}: {self._waits_for}"), file=sys.stderr, flush=True)
                os._exit(70)
