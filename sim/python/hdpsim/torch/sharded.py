"""Where parameters are: on every rank (bare models, DDP), or in shards (FSDP2).

Ranks run unequal numbers of micro-batches, some none. Whatever is a collective inside of a micro-batch would wait for
ever, so that parameters are gathered once a step and gradients reduced once a step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy
import torch
import torch.distributed as dist

from . import versions
from .attention import Work
from .batch import IGNORED, MicroBatch


class Replicated:
    """Every rank has all parameters; their gradients are summed by the runtime. DDP's own reduction stays off."""

    loss_factor = 1.0
    gathers_inside = False

    def __init__(self, model: torch.nn.Module, hdp: Any) -> None:
        if versions.is_fsdp1(model):
            raise versions.Unsupported(
                "FullyShardedDataParallel gathers parameters in every micro-batch, and ranks have unequal numbers of "
                "these: use fully_shard() (FSDP2), which this runtime asks to gather once a step")
        self.model, self.hdp = model, hdp
        self._ddp = isinstance(model, torch.nn.parallel.DistributedDataParallel)
        if self._ddp and model.broadcast_buffers and any(True for _ in model.buffers()):
            raise versions.Unsupported("DistributedDataParallel sends buffers around in every forward pass, and ranks "
                                       "have unequal numbers of these: use broadcast_buffers=False, or the bare model")
        self.to_sum = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def broadcast(self) -> None:
        """Parameters and buffers of rank 0 to all."""
        with torch.no_grad(), self.hdp.watch.waiting("parameters of rank 0"):
            for tensor in (*self.model.parameters(), *self.model.buffers()):
                whole = tensor.detach().contiguous()
                source = versions.global_rank(self.hdp.group, 0)
                self.hdp.watch.wait(dist.broadcast(whole, source, group=self.hdp.group, async_op=True))
                tensor.copy_(whole)

    def step(self, train: bool) -> Any:
        return self.model.no_sync() if self._ddp else contextlib.nullcontext()

    def open(self, forward: Callable[..., Any]) -> None:
        pass

    def close(self, forward: Callable[..., Any], train: bool) -> None:
        pass


class Sharded:
    """FSDP2: a pass of one token that pads opens each step, in which all ranks gather, and another one closes it.

    In between nothing is gathered, freed or reduced. The closing pass adds nothing to the gradients, and in its
    backward all ranks reduce what they have. With `gather` micro_batch the model gathers and frees as it likes, in plans
    whose ranks all run micro-batches together, and only the reduction waits for the closing pass.
    NOT RUN here, where no PyTorch has FSDP2; the order of calls is tested.
    """

    def __init__(self, model: torch.nn.Module, hdp: Any, gather: str) -> None:
        self.gathers_inside = gather == "micro_batch"
        if not self.gathers_inside and not hasattr(model, "set_reshard_after_forward"):
            raise versions.Unsupported(f"PyTorch {torch.__version__} cannot keep gathered parameters through a step "
                                       "(FSDPModule.set_reshard_after_forward): use a later one")
        self.model, self.hdp = model, hdp
        self.to_sum: list[torch.nn.Parameter] = []  # FSDP2 does
        self.loss_factor = float(hdp.size)  # FSDP2 averages over ranks, and the sum is wanted

    def broadcast(self) -> None:
        pass

    @contextlib.contextmanager
    def step(self, train: bool) -> Iterator[None]:
        self._keep(True)
        yield

    def open(self, forward: Callable[..., Any]) -> None:
        if not self.gathers_inside:
            with torch.no_grad():
                self._pass(forward)

    def close(self, forward: Callable[..., Any], train: bool) -> None:
        self._keep(False)
        loss = self._pass(forward)
        if train:
            (loss * 0).backward()

    def _keep(self, keep: bool) -> None:
        self.model.set_requires_gradient_sync(not keep)
        if self.gathers_inside:
            return
        self.model.set_reshard_after_forward(not keep)
        self.model.set_reshard_after_backward(not keep)

    def _pass(self, forward: Callable[..., Any]) -> torch.Tensor:
        part = padding(self.hdp.device)
        return self.hdp.outside(part, Work(part.share, self.hdp.kernel, self.hdp.device), forward)


def padding(device: torch.device) -> MicroBatch:
    """A micro-batch of one token that belongs to no document."""
    none = numpy.zeros(0, dtype=numpy.int64)
    pieces = SimpleNamespace(sequence=none, begin=none, end=none, span=none, span_begin=none, span_end=none)
    share = SimpleNamespace(micro_batch=-1, members=(pieces,), local=pieces, cp_rank=0, cp_size=1, tokens=0, padding=1)
    zero = torch.zeros(1, dtype=torch.int64)
    return MicroBatch(zero, zero, torch.full((1,), IGNORED), torch.tensor([0, 1], dtype=torch.int32), 1,
                      share).to(device)
