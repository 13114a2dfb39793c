"""Attention of packed problems, forward with log-sum-exp and backward with those of the whole: one interface.

    forward(q, k, v, blocks, scale)                    -> out [queries, heads, dim_v], lse [heads, queries]
    backward(dout, q, k, v, out, lse, blocks, scale)   -> dq, dk, dv

q [queries, heads, dim], k [keys, kv_heads, dim], v [keys, kv_heads, dim_v] are packed as `blocks` says. lse is the
natural logarithm of the sum of exp(scale q k) over the keys of the problem. In backward `out` and `lse` are those after
merging with all other keys: with P = exp(scale q k - lse) the parts of gradients just add up.

`plain` runs everywhere, with fp32 sums (fp64 for fp64). The others are for GPUs with half precision. They are written
after the signatures that the libraries document and HAVE NOT BEEN RUN on a GPU by this project's tests.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Protocol

import torch

from . import versions
from .pieces import Blocks
from .versions import Unsupported

Tensor = torch.Tensor


class Kernel(Protocol):
    name: str

    def forward(self, q: Tensor, k: Tensor, v: Tensor, blocks: Blocks, scale: float) -> tuple[Tensor, Tensor]: ...

    def backward(self, dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, blocks: Blocks,
                 scale: float) -> tuple[Tensor, Tensor, Tensor]: ...


def sum_type(dtype: torch.dtype) -> torch.dtype:
    """The type of sums over values of this type."""
    return torch.float64 if dtype == torch.float64 else torch.float32


class Plain:
    """Products and exponentials of PyTorch. At most `most_scores` scores a head exist at a time."""

    name = "plain"

    def __init__(self, most_scores: int = 1 << 20) -> None:
        self.most_scores = most_scores

    def forward(self, q, k, v, blocks, scale):
        wide = sum_type(q.dtype)
        out = torch.empty((q.shape[0], q.shape[1], v.shape[2]), dtype=wide, device=q.device)
        lse = torch.empty((q.shape[1], q.shape[0]), dtype=wide, device=q.device)
        for rows, keys, first in self._tiles(blocks):
            scores = _scores(_by_head(q[rows], k.shape[1]), k[keys], scale, first)
            tile_lse = torch.logsumexp(scores, dim=-1, keepdim=True)
            tile = torch.matmul(torch.exp(scores - tile_lse), v[keys].to(wide).transpose(0, 1))
            out[rows] = _by_row(tile, q.shape[1])
            lse[:, rows] = tile_lse.reshape(q.shape[1], -1)
        return out, lse

    def backward(self, dout, q, k, v, out, lse, blocks, scale):
        wide, heads, kv_heads = sum_type(q.dtype), q.shape[1], k.shape[1]
        dq = torch.empty(q.shape, dtype=wide, device=q.device)
        dk, dv = (torch.zeros(x.shape, dtype=wide, device=q.device) for x in (k, v))
        delta = (dout.to(wide) * out.to(wide)).sum(dim=-1).t()
        for rows, keys, first in self._tiles(blocks):
            queries, douts = _by_head(q[rows], kv_heads), _by_head(dout[rows], kv_heads)
            column = (kv_heads, -1, 1)
            weights = torch.exp(_scores(queries, k[keys], scale, first) - lse[:, rows].to(wide).reshape(column))
            dv[keys] += torch.matmul(weights.transpose(1, 2), douts).transpose(0, 1)
            dweights = torch.matmul(douts, v[keys].to(wide).permute(1, 2, 0))
            dscores = weights * (dweights - delta[:, rows].reshape(column)) * scale
            dq[rows] = _by_row(torch.matmul(dscores, k[keys].to(wide).transpose(0, 1)), heads)
            dk[keys] += torch.matmul(dscores.transpose(1, 2), queries).transpose(0, 1)
        return dq, dk, dv

    def _tiles(self, blocks):
        """(rows of queries, rows of keys, place of the first query among these keys, or None without a mask)."""
        for q0, q1, k0, k1 in zip(blocks.cu_q, blocks.cu_q[1:], blocks.cu_k, blocks.cu_k[1:]):
            step = max(16, self.most_scores // (k1 - k0))
            for begin in range(q0, q1, step):
                end = min(begin + step, q1)
                if blocks.causal:
                    yield slice(begin, end), slice(k0, k0 + end - q0), begin - q0
                else:
                    yield slice(begin, end), slice(k0, k1), None


def _by_head(rows: Tensor, kv_heads: int) -> Tensor:
    """[rows, heads, dim] as [kv_heads, heads of each x rows, dim]: those that share keys are one product."""
    n, heads, dim = rows.shape
    wide = rows.to(sum_type(rows.dtype)).transpose(0, 1)
    return wide.reshape(kv_heads, heads // kv_heads * n, dim)


def _by_row(by_head: Tensor, heads: int) -> Tensor:
    return by_head.reshape(heads, -1, by_head.shape[-1]).transpose(0, 1)


def _scores(queries: Tensor, keys: Tensor, scale: float, first: int | None) -> Tensor:
    scores = torch.matmul(queries, keys.to(queries.dtype).permute(1, 2, 0)).mul_(scale)
    if first is not None:
        n = keys.shape[0] - first
        hidden = torch.ones((n, keys.shape[0]), dtype=torch.bool, device=keys.device).triu_(first + 1)
        scores.view(scores.shape[0], -1, n, keys.shape[0]).masked_fill_(hidden, float("-inf"))
    return scores


class FlashAttn:
    """flash-attn 2 (Dao 2023), from 2.6 on, whose log-sum-exp is [heads, rows]. NOT RUN on a GPU here.

    The functions are those that flash-attn's own context-parallel users call: _flash_attn_varlen_forward and
    _flash_attn_varlen_backward of flash_attn.flash_attn_interface; what they take differs a little between versions.
    """

    name = "flash_attn"

    def __init__(self) -> None:
        interface = importlib.import_module("flash_attn.flash_attn_interface")
        self._forward = interface._flash_attn_varlen_forward
        self._backward = interface._flash_attn_varlen_backward

    def _options(self, function, scale, causal):
        options = {"dropout_p": 0.0, "softmax_scale": scale, "causal": causal, "alibi_slopes": None}
        if versions.accepts(function, "window_size_left"):  # from 2.7 on
            options.update(window_size_left=-1, window_size_right=-1)
        else:
            options.update(window_size=(-1, -1))
        if versions.accepts(function, "softcap"):
            options["softcap"] = 0.0
        return options

    def forward(self, q, k, v, blocks, scale):
        cu_q, cu_k = blocks.on_device()
        options = self._options(self._forward, scale, blocks.causal)
        answer = self._forward(q, k, v, cu_q, cu_k, blocks.max_q, blocks.max_k, return_softmax=False, **options)
        # 2.7: out, lse, ...; before: out, q, k, v, out_padded, lse, ...
        out, lse = (answer[0], answer[5]) if len(answer) > 4 else (answer[0], answer[1])
        return out, _lse_of_rows(lse, q)

    def backward(self, dout, q, k, v, out, lse, blocks, scale):
        cu_q, cu_k = blocks.on_device()
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        options = self._options(self._backward, scale, blocks.causal)
        self._backward(dout, q, k, v, out, lse.contiguous(), dq, dk, dv, cu_q, cu_k, blocks.max_q, blocks.max_k,
                       deterministic=torch.are_deterministic_algorithms_enabled(), **options)
        return dq, dk, dv


class AtenFlash:
    """The flash attention inside PyTorch, from 2.6 on. NOT RUN on a GPU here.

    aten::_flash_attention_forward and _flash_attention_backward are operators, not documented functions; PyTorch's own
    context parallelism is built on their like. Heads of queries and of keys may differ from 2.6 on as in flash-attn.
    """

    name = "aten"

    def __init__(self) -> None:
        if versions.version() < (2, 6):
            raise Unsupported(f"attention='aten' needs PyTorch 2.6, this is {torch.__version__}: choose 'plain'")
        self._forward = torch.ops.aten._flash_attention_forward
        self._backward = torch.ops.aten._flash_attention_backward

    def forward(self, q, k, v, blocks, scale):
        cu_q, cu_k = blocks.on_device()
        answer = self._forward(q, k, v, cu_q, cu_k, blocks.max_q, blocks.max_k, 0.0, blocks.causal, False, scale=scale)
        return answer[0], _lse_of_rows(answer[1], q)

    def backward(self, dout, q, k, v, out, lse, blocks, scale):
        cu_q, cu_k = blocks.on_device()
        seed = torch.zeros(2, dtype=torch.uint64, device=q.device)  # of dropout, which there is none of
        unused = torch.empty(0, dtype=torch.uint64, device=q.device)
        dq, dk, dv = self._backward(dout, q, k, v, out, lse.contiguous(), cu_q, cu_k, blocks.max_q, blocks.max_k, 0.0,
                                    blocks.causal, seed, unused, scale=scale)
        return dq, dk, dv


class VarlenAttn(AtenFlash):
    """torch.nn.attention.varlen.varlen_attn (PyTorch 2.10), which returns the log-sum-exp. NOT RUN on a GPU here.

    Its own gradient knows one call's output alone, so that backward is the operator of `aten`. Keys are repeated where
    a version takes equal numbers of heads only.
    """

    name = "varlen_attn"

    def __init__(self) -> None:
        super().__init__()
        if importlib.util.find_spec("torch.nn.attention.varlen") is None:
            raise Unsupported(f"attention='varlen_attn' needs PyTorch 2.10, this is {torch.__version__}")
        module = importlib.import_module("torch.nn.attention.varlen")
        self._varlen, self._aux = module.varlen_attn, module.AuxRequest

    def forward(self, q, k, v, blocks, scale):
        cu_q, cu_k = blocks.on_device()
        options = {"return_aux": self._aux(lse=True)}
        if versions.accepts(self._varlen, "is_causal"):
            options["is_causal"] = blocks.causal
        else:
            options["window_size"] = (-1, 0) if blocks.causal else (-1, -1)
        if versions.accepts(self._varlen, "scale"):
            options["scale"] = scale
        elif abs(scale * q.shape[-1]**0.5 - 1) > 1e-6:
            q = q * (scale * q.shape[-1]**0.5)  # its own scale is 1 / sqrt(dim)
        if q.shape[1] != k.shape[1]:
            if versions.accepts(self._varlen, "enable_gqa"):
                options["enable_gqa"] = True
            else:
                k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
        with torch.no_grad():
            out, lse = self._varlen(q, k, v, cu_q, cu_k, blocks.max_q, blocks.max_k, **options)
        return out, _lse_of_rows(lse, q)


def _lse_of_rows(lse: Tensor, q: Tensor) -> Tensor:
    """[heads, rows], or an error for the layout of old versions: [problems, heads, longest]."""
    if lse.dim() != 2 or lse.shape[0] != q.shape[1] or lse.shape[1] < q.shape[0]:
        raise Unsupported(f"this flash attention gives a log-sum-exp of shape {tuple(lse.shape)}, not [heads, rows]: "
                          "a later version does, or choose attention='plain'")
    return lse[:, : q.shape[0]]


_kernels = {kernel.name: kernel for kernel in (Plain, FlashAttn, AtenFlash, VarlenAttn)}


def kernel_named(name: str, device: torch.device) -> Kernel:
    """The kernel of a name, or for `auto` the fastest that the device and the libraries allow."""
    if name == "auto":
        return _fastest(device)
    if name not in _kernels:
        raise ValueError(f"attention={name!r}: choose one of auto, {', '.join(_kernels)}")
    if name != "plain" and device.type != "cuda":
        raise Unsupported(f"attention={name!r} needs a GPU, the model is on {device.type}: choose 'plain' or 'auto'")
    try:
        return _kernels[name]()
    except ImportError as error:
        raise Unsupported(f"attention={name!r}: {error}") from error


def _fastest(device: torch.device) -> Kernel:
    if device.type == "cuda":
        for kernel in (FlashAttn, VarlenAttn, AtenFlash):
            try:
                return kernel()
            except (ImportError, AttributeError, Unsupported):
                continue
    return Plain()
