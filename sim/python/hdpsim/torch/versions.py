"""What differs between versions of PyTorch, each difference behind one function. Oldest: 1.13."""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist


class Unsupported(RuntimeError):
    """This version of PyTorch, or of another library, lacks what was asked for. The text says what to do."""


def version() -> tuple[int, int]:
    """Major and minor version of PyTorch."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def is_profiling() -> bool:
    """Whether a profiler records this thread; True where this version does not say it."""
    return getattr(torch.autograd, "_profiler_enabled", lambda: True)()


def process_group(group: Any) -> Any:
    """The process group of a DeviceMesh of one dimension (PyTorch 2.2), a group itself, or the default group."""
    if group is None:
        return dist.group.WORLD
    if hasattr(group, "get_group"):
        if getattr(group, "ndim", 1) != 1:
            raise ValueError(f"the mesh has {group.ndim} dimensions: hand over the one of HDP, as in mesh['hdp']")
        return group.get_group()
    return group


def global_rank(group: Any, rank: int) -> int:
    """The rank of the world that is the `rank`-th of the group: peers of messages are ranks of the world."""
    if group is None or group is dist.group.WORLD:
        return rank
    if hasattr(dist, "get_global_rank"):  # from 2.0 on documented
        return dist.get_global_rank(group, rank)
    return dist.distributed_c10d.get_global_rank(group, rank)


def shared_store() -> Any | None:
    """The key-value store of the default group, for the states of ranks; None where a version hides it."""
    try:
        return dist.distributed_c10d._get_default_store()
    except (AttributeError, RuntimeError, ValueError):
        return None


def wait(work: Any, seconds: float | None) -> None:
    """Waits for a message or a collective; with a limit where the backend obeys one (gloo does, NCCL aborts itself)."""
    if seconds is None:
        work.wait()
    else:
        work.wait(timedelta(seconds=seconds))


def waits_with_limit(group: Any) -> bool:
    return dist.get_backend(group) == "gloo"


def not_compiled(function: Any) -> Any:
    """The function as torch.compile (2.1) leaves it alone: a model calls it, and its work changes with every batch."""
    compiler = getattr(torch, "compiler", None)
    return compiler.disable(function) if hasattr(compiler, "disable") else function


def is_fsdp2(module: torch.nn.Module) -> bool:
    """Whether fully_shard() was applied to the module (FSDPModule, PyTorch 2.4)."""
    return hasattr(module, "set_requires_gradient_sync") and hasattr(module, "unshard")


def is_fsdp1(module: torch.nn.Module) -> bool:
    return any(type(part).__name__ == "FullyShardedDataParallel" for part in module.modules())


def storage_address(tensor: torch.Tensor) -> int:
    """The address of the memory that a tensor is a view of."""
    if hasattr(tensor, "untyped_storage"):  # 2.0
        return tensor.untyped_storage().data_ptr()
    return tensor.storage().data_ptr()


def generator_state(device: torch.device) -> list[Any]:
    """The states of the random number generators that a forward pass on `device` may use."""
    state = [torch.get_rng_state()]
    if device.type == "cuda":
        state.append(torch.cuda.get_rng_state(device))
    return state


def set_generator_state(device: torch.device, state: list[Any]) -> None:
    torch.set_rng_state(state[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state[1], device)


def accepts(function: Any, name: str) -> bool:
    """Whether a function has a parameter of this name."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
