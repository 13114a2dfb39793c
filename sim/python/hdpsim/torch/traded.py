"""Attention that trades tokens for heads (Ulysses), and a ring that joins parties of such ranks (USP).

A party is as many consecutive ranks of the group as trade with each other. Before attention each of them gets the tokens
of the whole party, of its own part of the heads; behind attention the outputs go back. Where the group has several
parties, keys and values of these heads pass round a ring of the ranks of the same place in their parties. What was traded
is kept for backward, in which gradients go the same ways back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .attention import Attend, Ring, Work
from .exchange import Messages
from .kernels import Kernel
from .pieces import blocks, rows_of, total

Tensor = torch.Tensor


def ranks_that_trade(ranks: int, kv_heads: int, most: int = 0) -> int:
    """Ranks of a party: the most that divide both the group and the key-value heads. `most` of 0 is no limit."""
    return max(party for party in range(1, ranks + 1)
               if ranks % party == 0 and kv_heads % party == 0 and (party <= most or most == 0 or party == 1))


class Traded(Work):
    """Trades heads for what the group shares. Local spans stay where they are, with all heads."""

    def __init__(self, share: Any, kernel: Kernel, device: torch.device, messages: Messages, most: int = 0) -> None:
        super().__init__(share, kernel, device)
        self.share, self.messages, self.most = share, messages, most
        local = rows_of(share.local)
        self.own_blocks = blocks(local, local, device)
        self._of_party: dict[int, Work] = {}

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float, layer: Any) -> Tensor:
        party = ranks_that_trade(self.share.cp_size, k.shape[1], self.most)
        if party == 1:
            return self._work(1).attend(q, k, v, scale, layer)
        # Copies: what backward keeps of a view is all of what it views. In backward, which has messages in the
        # traded part alone, nodes run in the reverse order of these calls: on all ranks the same.
        local = Attend.apply(*(x[self.shared_rows :].clone() for x in (q, k, v)), self, scale, layer)
        trade = Trade(self.share, party, self.messages)
        heads = _Apply.apply(trade.to_heads, trade.to_tokens, *(x[: self.shared_rows] for x in (q, k, v)))
        out = self._work(party).attend(*heads, scale, layer)
        return torch.cat([_Apply.apply(trade.to_tokens, trade.to_heads, out)[0], local])

    def _work(self, party: int) -> Work:
        """Of a party, or of a ring of parties. Made at the first call, which tells how many heads there are."""
        if party not in self._of_party:
            where = self.share, self.kernel, self.device
            alone = party == self.share.cp_size
            self._of_party[party] = Work(*where, party=party) if alone else Ring(*where, self.messages, party=party)
        return self._of_party[party]


class Trade:
    """The messages of a party, one to each other rank for all tensors together."""

    def __init__(self, share: Any, party: int, messages: Messages) -> None:
        first = share.cp_rank // party * party
        self.party, self.place, self.messages = party, share.cp_rank - first, messages
        self.ranks = share.group[first : first + party]
        self.rows = [total(rows_of(pieces)) for pieces in share.members[first : first + party]]

    def to_heads(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """[own tokens, heads, dim] -> [tokens of the party, heads / party, dim], one rank's tokens behind another's."""
        own = self.rows[self.place]
        joined = torch.cat([x.reshape(own, self.party, _width(x) // self.party) for x in tensors], dim=-1)
        arrived = torch.cat(self._all_to_all(list(joined.unbind(1)), self.rows))
        return _split(arrived, [(x.shape[1] // self.party, x.shape[2]) for x in tensors])

    def to_tokens(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """[tokens of the party, heads / party, dim] -> [own tokens, heads, dim]."""
        joined = torch.cat([x.reshape(x.shape[0], _width(x)) for x in tensors], dim=-1)
        arrived = self._all_to_all(list(joined.split(self.rows)), [self.rows[self.place]] * self.party)
        parts = [_split(part, [x.shape[1:] for x in tensors]) for part in arrived]
        return tuple(torch.cat(heads, dim=1) for heads in zip(*parts))

    def _all_to_all(self, parts: list[Tensor], rows: list[int]) -> list[Tensor]:
        """The i-th part goes to the i-th rank of the party, of which so many rows come."""
        arriving = [part.new_empty((count, part.shape[1])) for part, count in zip(parts, rows)]
        arriving[self.place] = parts[self.place]
        others = [(i, rank) for i, rank in enumerate(self.ranks) if i != self.place]
        self.messages.start([(rank, parts[i]) for i, rank in others],
                            [(rank, arriving[i]) for i, rank in others]).wait()
        return arriving


class _Apply(torch.autograd.Function):
    """Tensors there, and gradients back."""

    @staticmethod
    def forward(ctx, there: Callable[..., tuple[Tensor, ...]], back: Callable[..., tuple[Tensor, ...]], *tensors: Tensor):
        ctx.back = back
        return there(*tensors)

    @staticmethod
    def backward(ctx, *gradients):
        return None, None, *ctx.back(*gradients)


def _width(x: Tensor) -> int:
    return x.shape[1] * x.shape[2]


def _split(joined: Tensor, shapes: list[Any]) -> tuple[Tensor, ...]:
    """The tensors [rows, heads, dim] that lie beside each other in rows, each for itself."""
    parts = joined.split([heads * dim for heads, dim in shapes], dim=-1)
    return tuple(part.reshape(len(part), *shape).contiguous() for part, shape in zip(parts, shapes))
