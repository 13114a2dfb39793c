"""One sum of gradients a step, over all ranks, in buckets.

Gradients are sums over tokens already divided by the number of counted labels of the whole batch, so that they are
added and not averaged: ranks have unequal numbers of tokens, some none.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from .watch import Watch

BUCKET_BYTES = 32 << 20


def sum_over_ranks(parameters: list[torch.nn.Parameter], loss: torch.Tensor, group: Any, watch: Watch) -> torch.Tensor:
    """Sums the gradients in place, and returns the sum of the losses (fp64).

    A parameter without a gradient here counts as zeros if another rank has one for it; if none has, it stays None.
    """
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            raise RuntimeError("a gradient is sparse: use embeddings without sparse=True")
    facts = torch.tensor([0.0] + [float(parameter.grad is not None) for parameter in parameters], dtype=torch.float64)
    facts = facts.to(loss.device)
    facts[0] = loss
    with watch.waiting("the sum of losses"):
        watch.wait(dist.all_reduce(facts, group=group, async_op=True))
        on_host = facts.tolist()
    used = [parameter for parameter, count in zip(parameters, on_host[1:]) if count > 0]
    for parameter in used:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    buckets = _buckets([parameter.grad for parameter in used])
    flats = [torch.cat([gradient.reshape(-1) for gradient in bucket]) for bucket in buckets]
    with watch.waiting("the sum of gradients"):
        works = [dist.all_reduce(flat, group=group, async_op=True) for flat in flats]
        for bucket, flat, work in zip(buckets, flats, works):
            watch.wait(work)
            for gradient, part in zip(bucket, flat.split([gradient.numel() for gradient in bucket])):
                gradient.copy_(part.view_as(gradient))
    return facts[0]


def _buckets(gradients: list[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Gradients of one type each, in their order, of at most BUCKET_BYTES where one alone is not more."""
    buckets: list[list[torch.Tensor]] = []
    room = 0
    for gradient in sorted(gradients, key=lambda one: str(one.dtype)):  # stable
        size = gradient.numel() * gradient.element_size()
        if not buckets or size > room or buckets[-1][0].dtype != gradient.dtype:
            buckets.append([])
            room = BUCKET_BYTES
        buckets[-1].append(gradient)
        room -= size
    return buckets
