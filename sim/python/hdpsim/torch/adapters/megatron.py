"""Megatron-LM: PackedSeqParams of a micro-batch, and a core attention for its layer specifications.

    spec.submodules.self_attention.submodules.core_attention = CoreAttention.of(hdp)

NOT RUN here, where Megatron-LM is not. The runtime owns micro-batches and the sum of gradients: Megatron's schedules and
its DistributedDataParallel are not used. Losses must be sums over tokens (calculate_per_token_loss).
"""

from __future__ import annotations

from typing import Any

import torch

from ..batch import MicroBatch
from ..versions import Unsupported, accepts


class CoreAttention(torch.nn.Module):
    """Takes what Megatron's core attention takes: query, key and value of shape [T, heads, dim] or [T, 1, heads, dim]."""

    hdp: Any = None

    def __init__(self, *_: Any, softmax_scale: float | None = None, **__: Any) -> None:
        super().__init__()
        self._scale = softmax_scale

    @classmethod
    def of(cls, hdp: Any) -> type[CoreAttention]:
        """A class for a layer specification, which makes its modules itself."""
        return type("CoreAttention", (cls,), {"hdp": hdp})

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        """Returns [T, heads x dim_v], with the dimension of 1 where the query has it."""
        with_batch = query.dim() == 4
        q, k, v = (x.squeeze(1) if with_batch else x for x in (query, key, value))
        out = self.hdp.attend(q, k, v, scale=self._scale)
        out = out.reshape(out.shape[0], -1)
        return out.unsqueeze(1) if with_batch else out


def packed_seq_params(part: MicroBatch) -> Any:
    """megatron.core.packed_seq_params.PackedSeqParams of this rank's pieces, for rotary positions and other layers."""
    try:
        from megatron.core.packed_seq_params import PackedSeqParams
    except ImportError as error:
        raise Unsupported(f"Megatron-LM is not here: {error}") from error
    known = {"qkv_format": "thd", "cu_seqlens_q": part.cu_seqlens, "cu_seqlens_kv": part.cu_seqlens,
             "max_seqlen_q": part.max_seqlen, "max_seqlen_kv": part.max_seqlen, "local_cp_size": part.cp_size}
    return PackedSeqParams(**{name: value for name, value in known.items() if accepts(PackedSeqParams, name)})
