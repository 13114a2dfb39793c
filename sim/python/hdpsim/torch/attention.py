"""Attention of one micro-batch, over the keys of all ranks of its group, as one function of autograd.

q [rows, heads, dim], k [rows, kv_heads, dim], v [rows, kv_heads, dim_v] are this rank's rows: its pieces in the order of
its share, then perhaps rows that pad. A `Work` knows how the keys of others get here:

    Ring      keys and values pass from rank to rank; in backward their gradients travel with them
    Gathered  every rank first gets the keys that it needs, all of them or those that its queries see; of a served cut
              also the queries of others, whose attention it computes
    Traded    ranks trade tokens for heads before all that, see `traded`
    Chunks    a rank alone, whose chunk continues earlier ones: their keys stay, and the gradients of these wait

Parts are merged by their log-sum-exp: with l = log(e^a + e^b) the output is e^(a-l) A + e^(b-l) B.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import trace
from .exchange import Messages
from .kernels import Kernel, sum_type
from .pieces import Blocks, Rows, add_rows, blocks, rows_of, take, total

Tensor = torch.Tensor


class Merged:
    """Attention's output over several sets of keys, and its log-sum-exp. Rows without any key have 0 and -inf."""

    def __init__(self, q: Tensor, dim_v: int) -> None:
        wide = sum_type(q.dtype)
        self.out = torch.zeros((q.shape[0], q.shape[1], dim_v), dtype=wide, device=q.device)
        self.lse = torch.full((q.shape[1], q.shape[0]), float("-inf"), dtype=wide, device=q.device)

    def add(self, rows: slice | Tensor, out: Tensor, lse: Tensor) -> None:
        known = self.lse[:, rows]
        merged = torch.logaddexp(known, lse)
        weight_known, weight = (torch.exp(part - merged).t().unsqueeze(-1) for part in (known, lse))
        self.out[rows] = self.out[rows] * weight_known + out.to(self.out.dtype) * weight
        self.lse[:, rows] = merged


class Gradients:
    """Sums of gradients of queries, keys and values, in the type of sums."""

    def __init__(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        self.q, self.k, self.v = (torch.zeros(x.shape, dtype=sum_type(x.dtype), device=x.device) for x in (q, k, v))


def _forward(kernel: Kernel, problems: Sequence[Blocks], q: Tensor, k: Tensor, v: Tensor, scale: float,
             merged: Merged) -> None:
    for block in problems:
        out, lse = kernel.forward(take(q, block.q_rows), take(k, block.k_rows), take(v, block.k_rows), block, scale)
        merged.add(block.q_rows, out, lse)


def _backward(kernel: Kernel, problems: Sequence[Blocks], dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor,
              lse: Tensor, scale: float, dq: Tensor, dk: Tensor, dv: Tensor) -> None:
    for block in problems:
        lse_rows = lse[:, block.q_rows]
        parts = kernel.backward(take(dout, block.q_rows), take(q, block.q_rows), take(k, block.k_rows),
                                take(v, block.k_rows), take(out, block.q_rows), lse_rows, block, scale)
        add_rows(dq, block.q_rows, parts[0])
        add_rows(dk, block.k_rows, parts[1])
        add_rows(dv, block.k_rows, parts[2])


class Work:
    """Attention of a rank alone: of its own pieces, shared or local. The others add to it.

    With a `party` above 1 what it has is some heads of all shared pieces of that many consecutive ranks of the group.
    """

    def __init__(self, share: Any, kernel: Kernel, device: torch.device, *, party: int = 1) -> None:
        self.kernel, self.device = kernel, device
        self.shared = _of_party(share, share.cp_rank // party, party)
        self.shared_rows = total(self.shared)
        self.own = self.shared + (rows_of(share.local, self.shared_rows) if party == 1 else [])
        self.own_blocks = blocks(self.own, self.own, device)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float, layer: Any) -> Tensor:
        """As a function of autograd, which calls forward() and backward()."""
        return Attend.apply(q, k, v, self, scale, layer)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, scale: float, layer: Any) -> tuple[Tensor, Tensor]:
        merged = Merged(q, v.shape[2])
        _forward(self.kernel, self.own_blocks, q, k, v, scale, merged)
        return merged.out, merged.lse

    def backward(self, dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, scale: float,
                 layer: Any) -> Gradients:
        gradients = Gradients(q, k, v)
        _backward(self.kernel, self.own_blocks, dout, q, k, v, out, lse, scale, gradients.q, gradients.k, gradients.v)
        return gradients


class Ring(Work):
    """In step s a rank has the keys of the member s places before it, while the next ones are under way.

    Members are parties; a ring joins the ranks that have the same place in theirs.
    """

    def __init__(self, share: Any, kernel: Kernel, device: torch.device, messages: Messages, *, party: int = 1) -> None:
        super().__init__(share, kernel, device, party=party)
        self.messages = messages
        self.size, self.place = share.cp_size // party, share.cp_rank // party
        self.next = share.group[(share.cp_rank + party) % share.cp_size]
        self.previous = share.group[(share.cp_rank - party) % share.cp_size]
        held = [_of_party(share, number, party) for number in range(self.size)]
        self.rows = [total(rows) for rows in held]
        self.blocks = [self.own_blocks]
        self.blocks += [blocks(self.shared, held[self._holder(step)], device) for step in range(1, self.size)]

    def _holder(self, step: int) -> int:
        return (self.place - step) % self.size

    def _pass_on(self, held: Tensor, step: int) -> tuple[Any, Tensor]:
        """Starts to send on what is held of the step's holder, and to receive the same of the next step's."""
        arriving = held.new_empty((self.rows[self._holder(step + 1)], *held.shape[1:]))
        return self.messages.start([(self.next, held)], [(self.previous, arriving)]), arriving

    def forward(self, q, k, v, scale, layer):
        merged = Merged(q, v.shape[2])
        held = _joined(k[: self.shared_rows], v[: self.shared_rows])
        for step in range(self.size):
            last = step + 1 == self.size
            if not last:
                pending, arriving = self._pass_on(held, step)
            keys, values = (k, v) if step == 0 else _parted(held, k.shape[2])
            _forward(self.kernel, self.blocks[step], q, keys, values, scale, merged)
            if not last:
                pending.wait()
                held = arriving
        return merged.out, merged.lse

    def backward(self, dout, q, k, v, out, lse, scale, layer):
        gradients = Gradients(q, k, v)
        held = _joined(k[: self.shared_rows], v[: self.shared_rows])
        returning = None  # (messages under way, gradients of the keys of this step's holder so far)
        for step in range(self.size):
            last = step + 1 == self.size
            if not last:
                pending, arriving = self._pass_on(held, step)
            if step == 0:
                dk, dv = gradients.k, gradients.v
                keys, values = k, v
            else:
                keys, values = _parted(held, k.shape[2])
                dk, dv = (torch.zeros(x.shape, dtype=sum_type(x.dtype), device=x.device) for x in (keys, values))
            _backward(self.kernel, self.blocks[step], dout, q, keys, values, out, lse, scale, gradients.q, dk, dv)
            part = _joined(dk, dv)[: self.rows[self._holder(step)]]
            if returning is not None:
                returning[0].wait()
                part = part + returning[1]
            returning = self._pass_on(part, step)
            if not last:
                pending.wait()
                held = arriving
        returning[0].wait()
        own = slice(0, self.shared_rows)
        gradients.k[own], gradients.v[own] = _parted(returning[1], k.shape[2])
        return gradients


class Gathered(Work):
    """Every rank gets keys before attention, and returns their gradients to those that hold them.

    `needed` keys alone are those that its queries see, otherwise all. The gathered keys are not kept for backward.
    """

    def __init__(self, share: Any, kernel: Kernel, device: torch.device, messages: Messages, *, needed: bool) -> None:
        super().__init__(share, kernel, device)
        self.messages, self.group, self.place = messages, share.group, share.cp_rank
        self.others = [member for member in range(share.cp_size) if member != self.place]
        held = [rows_of(pieces) for pieces in share.members]
        self.foreign, self.lent = _served(share, held, self.place)
        foreign_rows = [rows for member in self.others for rows in self.foreign[member]]
        lent_away = [rows for member in self.others for rows in self.lent[member]]
        attended = [_asking(share, held, member) for member in range(share.cp_size)] if needed else None
        self.keys_from, self.keys_to = {}, {}
        for other in self.others:
            wanted = held[other] if attended is None else _seen(attended[self.place], held[other])
            given = held[self.place] if attended is None else _seen(attended[other], held[self.place])
            self.keys_from[other], self.keys_to[other] = wanted, _index(given, device)
        self.lent_rows = {other: _index(self.lent[other], device) for other in self.others}
        self.padding = 0
        self.queries = _without(self.own, lent_away), foreign_rows
        self.blocks: list[Blocks] | None = None

    def _blocks(self, rows: int) -> list[Blocks]:
        """Rows of others lie behind the own ones and those that pad: their number is known at the first call."""
        if self.blocks is None or self.padding != rows:
            self.padding = rows
            own, foreign = self.queries
            keys = [piece for other in self.others for piece in self.keys_from[other]]
            self.blocks = blocks(own + _placed(foreign, rows), self.own + _placed(keys, rows), self.device)
        return self.blocks

    def _collect(self, of_own: Tensor, rows_to: dict[int, Tensor], rows_from: dict[int, int]) -> Tensor:
        """Own rows go to those that want them; those of others are returned, one member behind the other."""
        arriving = {other: of_own.new_empty((rows_from[other], *of_own.shape[1:])) for other in self.others}
        sends = [(self.group[other], of_own.index_select(0, rows_to[other])) for other in self.others]
        self.messages.start(sends, [(self.group[other], arriving[other]) for other in self.others]).wait()
        return torch.cat([of_own[:0], *arriving.values()])

    def _return(self, of_others: Tensor, rows_from: dict[int, int], rows_to: dict[int, Tensor], home: Tensor) -> None:
        """What was computed for rows of others goes back to them, and is added to the rows at home."""
        sends, receives, begin = [], [], 0
        for other in self.others:
            sends.append((self.group[other], of_others[begin : begin + rows_from[other]]))
            begin += rows_from[other]
            receives.append((other, home.new_empty((rows_to[other].numel(), *home.shape[1:]))))
        self.messages.start(sends, [(self.group[other], tensor) for other, tensor in receives]).wait()
        for other, tensor in receives:
            home.index_add_(0, rows_to[other], tensor)

    def _keys(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        counts = {other: total(rows) for other, rows in self.keys_from.items()}
        remote = self._collect(_joined(k, v), self.keys_to, counts)
        keys, values = _parted(remote, k.shape[2])
        return torch.cat([k, keys]), torch.cat([v, values])

    def _foreign_counts(self) -> dict[int, int]:
        return {other: total(rows) for other, rows in self.foreign.items()}

    def forward(self, q, k, v, scale, layer):
        rows, counts = q.shape[0], self._foreign_counts()
        keys, values = self._keys(k, v)
        queries = torch.cat([q, self._collect(q, self.lent_rows, counts)])
        merged = Merged(queries, v.shape[2])
        _forward(self.kernel, self._blocks(rows), queries, keys, values, scale, merged)
        out, lse = merged.out[:rows], merged.lse[:, :rows]
        if self._serves():
            answer = torch.cat([merged.out, merged.lse.t().unsqueeze(-1)], dim=-1)
            home = torch.zeros_like(answer[:rows])
            self._return(answer[rows:], counts, self.lent_rows, home)
            away = torch.cat(list(self.lent_rows.values()))
            out[away], lse[:, away] = home[away, :, :-1], home[away, :, -1].t()
        return out, lse

    def backward(self, dout, q, k, v, out, lse, scale, layer):
        rows, counts = q.shape[0], self._foreign_counts()
        keys, values = self._keys(k, v)
        if self._serves():
            rows_of_lse = lse.t().unsqueeze(-1)
            dout, q, out, rows_of_lse = (torch.cat([x, self._collect(x.contiguous(), self.lent_rows, counts)])
                                         for x in (dout, q, out, rows_of_lse))
            lse = rows_of_lse.squeeze(-1).t()
        gradients = Gradients(q, keys, values)
        _backward(self.kernel, self._blocks(rows), dout, q, keys, values, out, lse, scale, gradients.q, gradients.k,
                  gradients.v)
        remote = _joined(gradients.k[rows:], gradients.v[rows:])
        home = _joined(gradients.k[:rows], gradients.v[:rows])
        self._return(remote, {other: total(piece) for other, piece in self.keys_from.items()}, self.keys_to, home)
        gradients.k, gradients.v = _parted(home, k.shape[2])
        if self._serves():
            of_others, gradients.q = gradients.q[rows:], gradients.q[:rows].contiguous()
            self._return(of_others, counts, self.lent_rows, gradients.q)
        return gradients

    def _serves(self) -> bool:
        return any(self.foreign[other] or self.lent[other] for other in self.others)


class Chain:
    """Keys and values of the chunks of a sequence, layer by layer, and gradients of them that wait for backward."""

    def __init__(self) -> None:
        self.keys: dict[Any, dict[int, tuple[Tensor, Tensor]]] = {}
        self.gradients: dict[Any, dict[int, tuple[Tensor, Tensor]]] = {}


class Chunks(Work):
    """A chunk of a sequence on a rank alone: the `number`-th of its chain, which sees the keys of those before it."""

    def __init__(self, share: Any, kernel: Kernel, device: torch.device, chain: Chain, before: list[Any]) -> None:
        super().__init__(share, kernel, device)
        self.chain, self.number = chain, len(before)
        own = _in_sequence(share.members[0])
        self.own_blocks = blocks(own, own, device)
        self.earlier = [blocks(own, _in_sequence(other.members[0]), device) for other in before]

    def forward(self, q, k, v, scale, layer):
        self.chain.keys.setdefault(layer, {})[self.number] = (k.detach(), v.detach())
        merged = Merged(q, v.shape[2])
        _forward(self.kernel, self.own_blocks, q, k, v, scale, merged)
        for chunk, block in enumerate(self.earlier):
            _forward(self.kernel, block, q, *self.chain.keys[layer][chunk], scale, merged)
        return merged.out, merged.lse

    def backward(self, dout, q, k, v, out, lse, scale, layer):
        gradients = super().backward(dout, q, k, v, out, lse, scale, layer)
        waiting = self.chain.gradients.setdefault(layer, {})
        for chunk, block in enumerate(self.earlier):
            keys, values = self.chain.keys[layer][chunk]
            if chunk not in waiting:
                waiting[chunk] = tuple(torch.zeros(x.shape, dtype=sum_type(x.dtype), device=x.device)
                                       for x in (keys, values))
            _backward(self.kernel, block, dout, q, keys, values, out, lse, scale, gradients.q, *waiting[chunk])
        if self.number in waiting:
            later_k, later_v = waiting.pop(self.number)
            gradients.k += later_k
            gradients.v += later_v
        del self.chain.keys[layer][self.number]  # nobody later is left to see them
        return gradients


class Attend(torch.autograd.Function):
    """Attention as the work says, which is called again in backward."""

    @staticmethod
    def forward(ctx, q, k, v, work, scale, layer):
        with trace.detail("attention/forward"):
            out, lse = work.forward(q, k, v, scale, layer)
            out = out.to(q.dtype)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.work, ctx.scale, ctx.layer = work, scale, layer
        return out

    @staticmethod
    def backward(ctx, dout):
        q, k, v, out, lse = ctx.saved_tensors
        with trace.detail("attention/backward"):
            gradients = ctx.work.backward(dout.contiguous(), q, k, v, out, lse, ctx.scale, ctx.layer)
        return gradients.q.to(q.dtype), gradients.k.to(k.dtype), gradients.v.to(v.dtype), None, None, None


def _joined(k: Tensor, v: Tensor) -> Tensor:
    """Keys and values as one message."""
    return torch.cat([k, v], dim=-1)


def _parted(joined: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return joined[..., :dim], joined[..., dim:]


def _index(rows: list[Rows], device: torch.device) -> Tensor:
    parts = [torch.arange(piece.row, piece.row + piece.tokens) for piece in rows]
    return torch.cat([torch.empty(0, dtype=torch.int64), *parts]).to(device)


def _placed(pieces: list[Rows], first_row: int) -> list[Rows]:
    """The pieces one behind the other from a row on."""
    placed = []
    for piece in pieces:
        placed.append(piece._replace(row=first_row))
        first_row += piece.tokens
    return placed


def _of_party(share: Any, number: int, party: int) -> list[Rows]:
    """The shared pieces of the `number`-th so many consecutive ranks of the group, one rank's behind another's."""
    members = share.members[number * party : (number + 1) * party]
    return _placed([rows for pieces in members for rows in rows_of(pieces)], 0)


def _in_sequence(pieces: Any) -> list[Rows]:
    """The pieces by sequence instead of by span: chunks see what their sequence has before them."""
    return [rows._replace(span=int(sequence)) for rows, sequence in zip(rows_of(pieces), pieces.sequence)]


def _seen(queries: list[Rows], keys: list[Rows]) -> list[Rows]:
    """The keys that any of the queries sees."""
    last: dict[int, int] = {}
    for piece in queries:
        last[piece.span] = max(last.get(piece.span, 0), piece.end)
    return [piece.part(piece.begin, min(piece.end, last.get(piece.span, 0)))
            for piece in keys if piece.begin < last.get(piece.span, 0)]


def _moved(share: Any, held: list[list[Rows]], member: int) -> list[tuple[int, Rows]]:
    """(server, rows) of the queries that a member holds and others attend, in the order of the plan."""
    moved = []
    for span, begin, tokens, holder, server in share.moved.tolist():
        if holder != member:
            continue
        for piece in held[member]:
            first, last = max(piece.begin, begin), min(piece.end, begin + tokens)
            if piece.span == span and first < last:
                moved.append((server, piece.part(first, last)))
    return moved


def _served(share: Any, held: list[list[Rows]], place: int) -> tuple[dict[int, list[Rows]], dict[int, list[Rows]]]:
    """Queries of each member that this one attends, and its own that each member attends."""
    foreign = {member: [rows for server, rows in _moved(share, held, member) if server == place and member != place]
               for member in range(share.cp_size)}
    lent = {member: [rows for server, rows in _moved(share, held, place) if server == member and member != place]
            for member in range(share.cp_size)}
    return foreign, lent


def _asking(share: Any, held: list[list[Rows]], member: int) -> list[Rows]:
    """All queries whose attention a member computes."""
    foreign, lent = _served(share, held, member)
    away = [rows for rows_ in lent.values() for rows in rows_]
    return _without(held[member], away) + [rows for rows_ in foreign.values() for rows in rows_]


def _without(pieces: list[Rows], away: list[Rows]) -> list[Rows]:
    """What is left of the pieces."""
    left = list(pieces)
    for gone in away:
        rest = []
        for piece in left:
            if piece.span != gone.span or piece.end <= gone.begin or gone.end <= piece.begin:
                rest.append(piece)
                continue
            parts = (piece.begin, max(piece.begin, gone.begin)), (min(piece.end, gone.end), piece.end)
            rest += [piece.part(begin, end) for begin, end in parts if begin < end]
        left = rest
    return left
