"""Messages between the ranks of a group: all on one process group, none of no bytes.

Groups of a plan change with every micro-batch. A communicator for each would cost seconds and memory; point-to-point
messages on one process group need none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist

from . import trace, versions
from .watch import Watch

Tensor = torch.Tensor


class Messages:
    """Starts messages between ranks of a process group, and waits for them no longer than the watch allows.

    Ranks are those of the plan: places in the process group. Between two ranks messages arrive in the order in which
    both started them. Tensors without elements are left out on both sides. Where the backend sends no tensors of GPUs
    (gloo), they go through host memory.
    """

    def __init__(self, group: Any, watch: Watch) -> None:
        self.group = group
        self.watch = watch
        self.sent_bytes = 0  # by this rank, for people and tests
        self._by_host = dist.get_backend(group) == "gloo"

    def start(self, sends: Iterable[tuple[int, Tensor]], receives: Iterable[tuple[int, Tensor]]) -> Pending:
        """Starts to send tensors to ranks and to receive others (contiguous) from ranks."""
        operations, peers, held, arriving = [], [], [], []
        for peer, tensor in sends:
            if tensor.numel() > 0:
                tensor = self._sendable(tensor.contiguous())
                held.append(tensor)
                self.sent_bytes += tensor.numel() * tensor.element_size()
                operations.append(self._operation(dist.isend, tensor, peer))
                peers.append(f"to {peer}")
        for peer, tensor in receives:
            if tensor.numel() > 0:
                buffer = self._sendable(tensor)
                if buffer is not tensor:
                    arriving.append((tensor, buffer))
                held.append(buffer)
                operations.append(self._operation(dist.irecv, buffer, peer))
                peers.append(f"from {peer}")
        words = ", ".join(peers)
        works = []
        if operations:
            with self.watch.waiting(f"messages {words}"):  # a connection that has gone is seen here or in wait()
                works = dist.batch_isend_irecv(operations)
        return Pending(works, held, arriving, words, self.watch)

    def _sendable(self, tensor: Tensor) -> Tensor:
        return tensor.cpu() if self._by_host and tensor.is_cuda else tensor

    def _operation(self, kind: Any, tensor: Tensor, peer: int) -> Any:
        return dist.P2POp(kind, tensor, versions.global_rank(self.group, peer), group=self.group)


class Pending:
    """Messages under way. Their tensors stay alive until wait() has returned."""

    def __init__(self, works: list[Any], held: list[Tensor], arriving: list[tuple[Tensor, Tensor]], peers: str,
                 watch: Watch) -> None:
        self._works, self._held, self._arriving, self._peers, self._watch = works, held, arriving, peers, watch

    def wait(self) -> None:
        if self._works:
            with trace.detail("exchange"), self._watch.waiting(f"messages {self._peers}"):
                for work in self._works:
                    self._watch.wait(work)
        for tensor, buffer in self._arriving:
            tensor.copy_(buffer)
        self._works, self._held, self._arriving = [], [], []
