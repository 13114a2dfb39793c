"""NVIDIA Transformer Engine: a module in the place of DotProductAttention, for qkv_format="thd".

    layer.self_attention.core_attention = DotProductAttention(hdp)

NOT RUN here, where there is neither Transformer Engine nor a GPU. Its own context parallelism is not used: it wants a
process group for every group of ranks, and documents padded to multiples of 2 N.
"""

from __future__ import annotations

from typing import Any

import torch

from ..batch import MicroBatch


class DotProductAttention(torch.nn.Module):
    """What TE's module of this name computes under a causal mask per document, over the ranks of the group."""

    def __init__(self, hdp: Any, softmax_scale: float | None = None) -> None:
        super().__init__()
        self._hdp, self._scale = hdp, softmax_scale

    def forward(self, query_layer: torch.Tensor, key_layer: torch.Tensor, value_layer: torch.Tensor,
                *_: Any, **__: Any) -> torch.Tensor:
        """[T, heads, dim] each; returns [T, heads x dim_v], as TE does. Masks and cu_seqlens are the plan's."""
        out = self._hdp.attend(query_layer, key_layer, value_layer, scale=self._scale)
        return out.reshape(out.shape[0], -1)


def thd_arguments(part: MicroBatch) -> dict[str, Any]:
    """Arguments of TE's own DotProductAttention for a micro-batch of one rank: there pieces are whole documents."""
    if part.cp_size > 1:
        raise ValueError(f"{part.cp_size} ranks share the micro-batch: use DotProductAttention(hdp), not TE's own")
    return {"qkv_format": "thd", "attn_mask_type": "padding_causal", "cu_seqlens_q": part.cu_seqlens,
            "cu_seqlens_kv": part.cu_seqlens, "max_seqlen_q": part.max_seqlen, "max_seqlen_kv": part.max_seqlen}
