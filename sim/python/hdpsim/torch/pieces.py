"""Which queries see which keys: pieces of spans on ranks, turned into problems that attention kernels know.

Every problem is one of two: a square with a causal mask (queries and keys are the same tokens) or a rectangle without a
mask (all keys lie before all queries). Kernels need no third kind, whatever the cut, and what versions of kernels
disagree about (where a causal mask of a rectangle is aligned) cannot matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch


class Rows(NamedTuple):
    """Tokens [begin, end) of a span, in rows `row` to `row + end - begin` of a tensor."""

    span: int
    begin: int
    end: int
    row: int

    @property
    def tokens(self) -> int:
        return self.end - self.begin

    def part(self, begin: int, end: int) -> Rows:
        return Rows(self.span, begin, end, self.row + begin - self.begin)


def rows_of(pieces: object, first_row: int = 0) -> list[Rows]:
    """The pieces of a share (arrays `span`, `begin`, `end`), row after row; those of no tokens are left out."""
    rows = []
    for span, begin, end in zip(pieces.span.tolist(), pieces.begin.tolist(), pieces.end.tolist()):
        if end > begin:
            rows.append(Rows(span, begin, end, first_row))
            first_row += end - begin
    return rows


def total(rows: Iterable[Rows]) -> int:
    return sum(piece.tokens for piece in rows)


@dataclass
class Problems:
    """Problems of one mask. The i-th has queries in the rows `queries[i]` and keys in the rows `keys[i]`."""

    causal: bool
    queries: list[list[tuple[int, int]]] = field(default_factory=list)
    keys: list[list[tuple[int, int]]] = field(default_factory=list)

    def add(self, queries: list[Rows], keys: list[Rows]) -> None:
        self.queries.append([(piece.row, piece.row + piece.tokens) for piece in queries])
        self.keys.append([(piece.row, piece.row + piece.tokens) for piece in keys])


def visible(queries: list[Rows], keys: list[Rows]) -> list[Problems]:
    """What the queries see of these keys: of their span the tokens up to their own. Squares first, none empty."""
    squares, rectangles = Problems(causal=True), Problems(causal=False)
    keys_of_span: dict[int, list[Rows]] = {}
    for piece in keys:
        keys_of_span.setdefault(piece.span, []).append(piece)
    queries_of_span: dict[int, list[Rows]] = {}
    for piece in queries:
        queries_of_span.setdefault(piece.span, []).append(piece)
    for span, asking in queries_of_span.items():
        if span in keys_of_span:
            _visible_in_span(_in_order(asking), _in_order(keys_of_span[span]), squares, rectangles)
    return [problems for problems in (squares, rectangles) if problems.queries]


def _visible_in_span(queries: list[Rows], keys: list[Rows], squares: Problems, rectangles: Problems) -> None:
    if [(piece.begin, piece.end) for piece in queries] == [(piece.begin, piece.end) for piece in keys]:
        squares.add(queries, keys)  # each sees all pieces before its own: causal in the order of rows
        return
    queries, keys = _cut_at(queries, keys), _cut_at(keys, queries)
    asking: dict[tuple[Rows, ...], list[Rows]] = {}  # queries by the keys that all of them see
    for piece in queries:
        squares_keys = [key for key in keys if key.begin == piece.begin]
        if squares_keys:
            squares.add([piece], squares_keys)
        before = tuple(key for key in keys if key.end <= piece.begin)
        if before:
            asking.setdefault(before, []).append(piece)
    for before, together in asking.items():
        rectangles.add(together, list(before))


def _in_order(pieces: list[Rows]) -> list[Rows]:
    return sorted(pieces, key=lambda piece: piece.begin)


def _cut_at(pieces: list[Rows], others: list[Rows]) -> list[Rows]:
    """The pieces, cut where the others begin and end: any two of both are then the same tokens, or none."""
    borders = sorted({border for other in others for border in (other.begin, other.end)})
    cut = []
    for piece in pieces:
        inner = [border for border in borders if piece.begin < border < piece.end]
        for begin, end in zip([piece.begin, *inner], [*inner, piece.end]):
            cut.append(piece.part(begin, end))
    return cut


class Blocks:
    """Problems as kernels take them: rows to pack and cumulative lengths, on the device.

    q_rows, k_rows: a slice where the rows are consecutive, otherwise an index (int64); a row of keys may occur twice.
    cu_q, cu_k: [problems + 1], as lists; on_device() gives them as int32 tensors.
    """

    def __init__(self, problems: Problems, device: torch.device) -> None:
        self.causal = problems.causal
        self.q_rows, self.cu_q = _packed(problems.queries, device)
        self.k_rows, self.cu_k = _packed(problems.keys, device)
        self.max_q = max(b - a for a, b in zip(self.cu_q, self.cu_q[1:]))
        self.max_k = max(b - a for a, b in zip(self.cu_k, self.cu_k[1:]))
        self._on_device: tuple[torch.Tensor, torch.Tensor] | None = None
        self._device = device

    def on_device(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self._on_device is None:
            self._on_device = (torch.tensor(self.cu_q, dtype=torch.int32, device=self._device),
                               torch.tensor(self.cu_k, dtype=torch.int32, device=self._device))
        return self._on_device


def blocks(queries: list[Rows], keys: list[Rows], device: torch.device) -> list[Blocks]:
    return [Blocks(problems, device) for problems in visible(queries, keys)]


def _packed(ranges: list[list[tuple[int, int]]], device: torch.device) -> tuple[slice | torch.Tensor, list[int]]:
    cumulative = [0]
    flat: list[tuple[int, int]] = []
    for problem in ranges:
        for begin, end in problem:
            if flat and flat[-1][1] == begin:
                flat[-1] = (flat[-1][0], end)
            else:
                flat.append((begin, end))
        cumulative.append(cumulative[-1] + sum(end - begin for begin, end in problem))
    if len(flat) == 1:
        return slice(*flat[0]), cumulative
    return torch.cat([torch.arange(begin, end) for begin, end in flat]).to(device), cumulative


def take(tensor: torch.Tensor, rows: slice | torch.Tensor) -> torch.Tensor:
    return tensor[rows] if isinstance(rows, slice) else tensor.index_select(0, rows)


def add_rows(total_: torch.Tensor, rows: slice | torch.Tensor, part: torch.Tensor) -> None:
    """Adds to rows, to one that occurs twice both."""
    part = part.to(total_.dtype)
    if isinstance(rows, slice):
        total_[rows] += part
    else:
        total_.index_add_(0, rows, part)
