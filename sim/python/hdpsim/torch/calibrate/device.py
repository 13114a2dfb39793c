"""The device as a profile names it, and what of its data sheet PyTorch tells."""

from __future__ import annotations

import datetime
import math
import os
import platform
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from .clock import Clock, Timing
from .kernels import Kernels
from .samples import SCHEMA


def device_word(name: str, memory_bytes: int) -> str:
    """The name that clusters use: "NVIDIA A100-SXM4-80GB" with 80 GiB is an A100-80GB, "NVIDIA GeForce RTX 4090" an
    RTX4090-24GB."""
    for maker in ("NVIDIA ", "GeForce ", "Tesla ", "AMD ", "Instinct "):
        name = name.removeprefix(maker)
    model = name.replace("RTX ", "RTX").replace("-", " ").split()[0]
    return f"{model}-{math.ceil(memory_bytes / (1 << 30))}GB"


def describe(device: torch.device) -> dict[str, Any]:
    """Members of the header that name the device."""
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return {"device": device_word(properties.name, properties.total_memory), "device_name": properties.name,
                "multiprocessors": properties.multi_processor_count, "memory_bytes": properties.total_memory}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"device": "CPU", "device_name": _processor(), "multiprocessors": torch.get_num_threads(),
            "memory_bytes": memory}


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def measured_peaks(clock: Clock, kernels: Kernels) -> dict[str, Any]:
    """Peaks of a CPU, which has no data sheet of a single figure: a large product, and a copy in memory."""
    product: Timing = clock.time(kernels.work({"family": "gemm", "m": 768, "n": 768, "k": 768}))
    one, other = (torch.ones(8 << 20) for _ in range(2))
    copy = clock.time(lambda: other.copy_(one))
    return {"peak_flops": 2 * 768 ** 3 / product.p10, "memory_bandwidth": 8 * one.numel() / copy.p10,
            "peak_source": f"measured: a product of 768 by 768 by 768 and a copy in memory, torch {torch.__version__}"}


def software(device: torch.device, backend: str | None) -> dict[str, str]:
    """Versions."""
    found = {"torch": torch.__version__}
    if device.type == "cuda":
        found["cuda"] = torch.version.cuda or f"ROCm {torch.version.hip}"
        if dist.is_nccl_available():
            found["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    elif backend:
        found["messages"] = backend
    return found


def header(kernels: Kernels, backend: str | None, world: int, per_node: int) -> dict[str, Any]:
    """The first line of the file, without what is measured."""
    device = kernels.device
    names = kernels.names()
    if backend:
        names["messages"] = f"{backend} through torch.distributed {torch.__version__}"
    if device.type == "cuda":
        names["copies"] = f"torch {torch.__version__} with page-locked memory"
    return {"schema": SCHEMA, **describe(device), "devices": world, "through": "PyTorch",
            "program": "hdpsim.torch.calibrate", "kernels": names, "software": software(device, backend),
            "date": datetime.date.today().isoformat(), "element_bytes": kernels.element, "world": world,
            "devices_per_node": per_node,
            # The runtime's rings send gradients of keys and values as sums: hdpsim.torch.kernels.sum_type.
            "ring_gradient_bytes": 8 if kernels.dtype == torch.float64 else 4}
