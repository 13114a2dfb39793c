"""torchtitan: a module in the place of the inner attention of its models.

    for layer in model.layers.values():
        layer.attention.inner_attention = InnerAttention(hdp)

NOT RUN here, where torchtitan is not. Its own loop is replaced by HDP.run(): pass mb.batched().input_ids and, where the
model takes them, its positions.
"""

from __future__ import annotations

from typing import Any

import torch


class InnerAttention(torch.nn.Module):
    """q [1, heads, T, dim], k and v [1, kv_heads, T, dim] as in scaled_dot_product_attention; returns [1, heads, T, dim]."""

    def __init__(self, hdp: Any) -> None:
        super().__init__()
        self._hdp = hdp

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_: Any, scale: float | None = None,
                **__: Any) -> torch.Tensor:
        if q.shape[0] != 1:
            raise ValueError(f"a batch of {q.shape[0]} rows: one row of all tokens is expected (MicroBatch.batched())")
        return self._hdp.attend(*(x.transpose(1, 2) for x in (q, k, v)), scale=scale).transpose(1, 2)
