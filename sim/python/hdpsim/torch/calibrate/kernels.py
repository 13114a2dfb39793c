"""The work of each subject: a function of no arguments that runs it once, on tensors of random numbers."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as functional

from .. import kernels as attention_kernels
from .. import versions
from ..pieces import Blocks, Problems
from .clock import Work

Subject = dict


@dataclass
class Sizes:
    """Of the model whose layers are measured; `vocabulary` 0: without the loss and the embedding."""

    hidden: int
    inner: int
    heads: int
    kv_heads: int
    dim: int
    vocabulary: int = 0


class Kernels:
    """Kernels of one device in one type. Random numbers: with zeros a chip runs faster than in any training."""

    def __init__(self, device: torch.device, dtype: torch.dtype, sizes: Sizes, attention: str = "auto") -> None:
        self.device, self.dtype, self.sizes = device, dtype, sizes
        self.attention = attention_kernels.kernel_named(attention, device)
        self.element = torch.empty(0, dtype=dtype).element_size()

    def names(self) -> dict[str, str]:
        """Whose kernels they are, by family."""
        torch_name = f"torch {torch.__version__}"
        products = "cuBLAS through " if self.device.type == "cuda" else ""
        norms = "F.rms_norm" if has_rms_norm() else "a composed norm"
        return {"gemm": products + torch_name, "attention": f"{self._attention_name()} of hdpsim.torch on {torch_name}",
                "memory_bound": f"eager {torch_name} with {norms}"}

    def _attention_name(self) -> str:
        if self.attention.name != "flash_attn":
            return self.attention.name
        return f"flash-attn {importlib.metadata.version('flash-attn')}"

    def work(self, subject: Subject) -> Work:
        return {"gemm": self._product, "attention": self._attention, "memory_bound": self._memory_bound}[
            subject["family"]](subject)

    def random(self, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float32, device=self.device).to(dtype or self.dtype)

    # (m x k) times (k x n), the second as a layer keeps its weight: [n, k].
    def _product(self, subject: Subject) -> Work:
        a, b = self.random(subject["m"], subject["k"]), self.random(subject["n"], subject["k"])
        out = torch.empty(subject["m"], subject["n"], dtype=self.dtype, device=self.device)
        return lambda: torch.mm(a, b.t(), out=out)

    def _attention(self, subject: Subject) -> Work:
        problems = Problems(causal=subject["blocks"][0][2])
        rows = columns = 0
        for queries, keys, _, count in subject["blocks"]:
            for _ in range(count):
                problems.queries.append([(rows, rows + queries)])
                problems.keys.append([(columns, columns + keys)])
                rows, columns = rows + queries, columns + keys
        blocks = Blocks(problems, self.device)
        q = self.random(rows, subject["heads"], subject["dim"])
        k, v = (self.random(columns, subject["kv_heads"], subject["dim"]) for _ in range(2))
        scale = subject["dim"] ** -0.5
        if not subject["backward"]:
            return lambda: self.attention.forward(q, k, v, blocks, scale)
        out, lse = self.attention.forward(q, k, v, blocks, scale)
        dout = torch.randn_like(out)
        return lambda: self.attention.backward(dout, q, k, v, out, lse, blocks, scale)

    def bytes_of_row(self, kernel: str) -> int:
        """Bytes that one row (a token, or an element of a parameter) of a memory-bound operation reads and writes, as
        one fused kernel would: time of unfused ones counts whole, on these bytes."""
        sizes, element = self.sizes, self.element
        rows = {"rms_norm_forward": 2 * sizes.hidden * element, "rms_norm_backward": 3 * sizes.hidden * element,
                "rope": 2 * sizes.heads * sizes.dim * element, "swiglu_forward": 3 * sizes.inner * element,
                "swiglu_backward": 5 * sizes.inner * element, "add": 3 * sizes.hidden * element,
                "embedding_forward": 2 * sizes.hidden * element, "cross_entropy": 2 * sizes.vocabulary * element,
                "adam": 28 + (element if element < 4 else 0)}  # parameter, moments and gradient in fp32, and its copy
        return rows[kernel]

    def memory_bound_kernels(self) -> list[str]:
        names = ["rms_norm_forward", "rms_norm_backward", "rope", "swiglu_forward", "swiglu_backward", "add", "adam"]
        return names + (["embedding_forward", "cross_entropy"] if self.sizes.vocabulary > 0 else [])

    def _memory_bound(self, subject: Subject) -> Work:
        rows = max(1, subject["bytes"] // self.bytes_of_row(subject["kernel"]))
        prepare: Callable[[int], Work] = getattr(self, "_" + subject["kernel"])
        return prepare(rows)

    def _rms_norm_forward(self, rows: int) -> Work:
        x, weight = self.random(rows, self.sizes.hidden), self.random(self.sizes.hidden)
        return lambda: rms_norm(x, weight)

    def _rms_norm_backward(self, rows: int) -> Work:
        shapes = (rows, self.sizes.hidden), (self.sizes.hidden,)
        x, weight = (self.random(*shape).requires_grad_() for shape in shapes)
        return _backward(rms_norm(x, weight), [x, weight])

    def _swiglu_forward(self, rows: int) -> Work:
        x = self.random(rows, 2 * self.sizes.inner)
        return lambda: swiglu(x)

    def _swiglu_backward(self, rows: int) -> Work:
        x = self.random(rows, 2 * self.sizes.inner).requires_grad_()
        return _backward(swiglu(x), [x])

    def _rope(self, rows: int) -> Work:
        x = self.random(rows, self.sizes.heads, self.sizes.dim)
        cos, sin = (self.random(rows, 1, self.sizes.dim) for _ in range(2))
        return lambda: rope(x, cos, sin)

    def _add(self, rows: int) -> Work:
        a, b = (self.random(rows, self.sizes.hidden) for _ in range(2))
        return lambda: a + b

    def _embedding_forward(self, rows: int) -> Work:
        table = self.random(self.sizes.vocabulary, self.sizes.hidden)
        ids = torch.randint(self.sizes.vocabulary, (rows,), device=self.device)
        return lambda: functional.embedding(ids, table)

    def _cross_entropy(self, rows: int) -> Work:
        logits = self.random(rows, self.sizes.vocabulary).requires_grad_()
        labels = torch.randint(self.sizes.vocabulary, (rows,), device=self.device)

        def loss_and_gradient() -> object:
            loss = functional.cross_entropy(logits.float(), labels, reduction="sum")
            return torch.autograd.grad(loss, logits)

        return loss_and_gradient

    def _adam(self, rows: int) -> Work:
        parameter = self.random(rows, dtype=torch.float32).requires_grad_()
        parameter.grad = self.random(rows, dtype=torch.float32)
        copy = torch.empty(rows, dtype=self.dtype, device=self.device)
        fused = self.device.type == "cuda" and versions.accepts(torch.optim.AdamW, "fused")
        optimizer = torch.optim.AdamW([parameter], lr=1e-6, **({"fused": True} if fused else {}))

        def step() -> None:
            optimizer.step()
            if self.element < 4:
                copy.copy_(parameter.detach())

        return step


def has_rms_norm() -> bool:
    return hasattr(functional, "rms_norm")  # PyTorch 2.4


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """As PyTorch has it, or composed as in Llama's own code."""
    if has_rms_norm():
        return functional.rms_norm(x, (x.shape[-1],), weight, 1e-6)
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight


def swiglu(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.chunk(2, dim=-1)
    return functional.silu(gate) * up


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def _backward(out: torch.Tensor, inputs: list[torch.Tensor]) -> Work:
    dout = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, inputs, dout, retain_graph=True)
