"""Selective offload: a share of what forward saves for backward waits in host memory.

Whole tensors go, until their bytes are the share of all bytes that layers have saved so far; the last two layers keep
theirs, since backward wants these first. On a GPU copies run on a stream of their own, into page-locked memory, and
come back a layer ahead of backward. On a CPU they are plain copies, so that the same path can be tested.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from . import versions

RESIDENT_LAYERS = 2  # whose activations stay on the device, as in plans
SMALLEST_BYTES = 4096  # below, a copy costs more than it frees


class _Away:
    """A tensor in host memory."""

    def __init__(self, tensor: torch.Tensor, stream: Any) -> None:
        self.device, self._stream = tensor.device, stream
        self._back: torch.Tensor | None = None
        if stream is None:
            self._host = tensor.detach().clone()
            return
        self._host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        stream.wait_stream(torch.cuda.current_stream(tensor.device))
        with torch.cuda.stream(stream):
            self._host.copy_(tensor.detach(), non_blocking=True)
        tensor.record_stream(stream)

    def fetch(self) -> None:
        """Starts the way back."""
        if self._back is None and self._stream is not None:
            with torch.cuda.stream(self._stream):  # behind the copy to the host
                self._back = self._host.to(self.device, non_blocking=True)

    def get(self) -> torch.Tensor:
        if self._stream is None:
            return self._host
        self.fetch()
        current = torch.cuda.current_stream(self.device)
        current.wait_stream(self._stream)
        self._back.record_stream(current)
        return self._back


class _Layer:
    """What one layer of one micro-batch has sent away."""

    def __init__(self, before: _Layer | None) -> None:
        self.before = before
        self.away: list[_Away] = []
        self.fetched = False

    def fetch(self) -> None:
        if not self.fetched:
            self.fetched = True
            for tensor in self.away:
                tensor.fetch()


class Offload:
    """Knows the layers of a model by hooks, and offloads what they save while `saving` is entered."""

    def __init__(self, layers: list[torch.nn.Module], parameters: list[torch.nn.Parameter]) -> None:
        self.layers = layers
        self._parameters = parameters
        self._share = 0.0
        self._layer: _Layer | None = None
        self._stream: Any = None
        self._kept_alive: dict[Any, tuple[torch.Tensor, _Away | None]] = {}
        self._of_parameters: set[int] = set()
        self._inside = False  # of a layer that may offload
        self._last: _Layer | None = None
        self.seen_bytes = self.away_bytes = 0  # of the last micro-batch, in layers that may offload
        for index, layer in enumerate(layers):
            layer.register_forward_pre_hook(lambda *_, index=index: self._enter(index))
            layer.register_forward_hook(lambda *_: self._leave())

    @contextlib.contextmanager
    def saving(self, share: float, device: torch.device) -> Iterator[None]:
        """A forward pass whose layers but two offload this share of the bytes that they save."""
        if device.type == "cuda" and self._stream is None:
            self._stream = torch.cuda.Stream(device)
        self._share = share
        self.seen_bytes = self.away_bytes = 0
        self._of_parameters = {versions.storage_address(parameter) for parameter in self._parameters}
        try:
            with torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack):
                yield
        finally:
            self._share, self._layer, self._last = 0.0, None, None
            self._kept_alive.clear()

    def _enter(self, index: int) -> None:
        if self._share > 0 and index < len(self.layers) - RESIDENT_LAYERS:
            self._layer = _Layer(self._last if index > 0 else None)
            self._last = self._layer
            self._inside = True
        else:
            self._inside = False

    def _leave(self) -> None:
        self._inside = False
        self._kept_alive.clear()

    def _pack(self, tensor: torch.Tensor) -> Any:
        size = tensor.numel() * tensor.element_size()
        if not self._inside or size < SMALLEST_BYTES or versions.storage_address(tensor) in self._of_parameters:
            return tensor
        # One tensor is often saved by several operators. Its memory cannot be another's before the layer ends, since
        # it is kept alive until then.
        key = (versions.storage_address(tensor), tensor.storage_offset(), tensor.shape, tensor.stride(),
               tensor.dtype, tensor._version)
        if key in self._kept_alive:
            known = self._kept_alive[key][1]
            return tensor if known is None else (known, self._layer)
        self.seen_bytes += size
        if self.away_bytes + size > self._share * self.seen_bytes * (1 + 1e-9):
            self._kept_alive[key] = (tensor, None)
            return tensor
        self.away_bytes += size
        away = _Away(tensor, self._stream)
        self._kept_alive[key] = (tensor, away)
        self._layer.away.append(away)
        return away, self._layer

    def _unpack(self, packed: Any) -> torch.Tensor:
        if isinstance(packed, torch.Tensor):
            return packed
        away, layer = packed
        if layer.before is not None:
            layer.before.fetch()
        return away.get()


def layers_of(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The layers of a model: the longest ModuleList in it whose entries have one class."""
    lists = [list(part) for part in model.modules() if isinstance(part, torch.nn.ModuleList)]
    uniform = [part for part in lists if part and len({type(layer) for layer in part}) == 1]
    return max(uniform, key=len, default=[])
