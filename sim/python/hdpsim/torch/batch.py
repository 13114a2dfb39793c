"""What the user's forward gets: this rank's tokens of one micro-batch, one row a token.

Labels are shifted before the cut: the label of a token is the next one of its sequence, on whichever rank that lies.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

#: Labels that are not counted, as in torch.nn.functional.cross_entropy.
IGNORED = -100
#: tokens(sequence, begin, end): those of a sequence of the plan, by its index; a list, an array or a tensor.
Reader = Callable[[int, int, int], Any]


@dataclass
class MicroBatch:
    """One rank's tokens of a micro-batch. T is their number, at least 1: a rank without tokens has one that pads."""

    input_ids: torch.Tensor  #: [T], int64.
    position_ids: torch.Tensor  #: [T]: the place of a token in its sequence.
    labels: torch.Tensor  #: [T]: the next token of the sequence; IGNORED behind its last one, and where masked.
    cu_seqlens: torch.Tensor  #: int32, [pieces + 1]: where the rank's pieces begin and end. NOT what attention sees.
    max_seqlen: int  #: The longest piece.
    share: Any  #: hdpsim.Share: pieces of this rank and of its group.

    @property
    def cp_rank(self) -> int:
        """This rank's place in the group that shares the micro-batch."""
        return self.share.cp_rank

    @property
    def cp_size(self) -> int:
        """Ranks of the group."""
        return self.share.cp_size

    @property
    def tokens(self) -> int:
        """Without those that pad."""
        return self.share.tokens

    @property
    def counted(self) -> int:
        """Labels of this rank that are in the loss."""
        return int((self.labels != IGNORED).sum())

    def to(self, device: torch.device) -> MicroBatch:
        moved = {name: getattr(self, name).to(device, non_blocking=True)
                 for name in ("input_ids", "position_ids", "labels", "cu_seqlens")}
        return dataclasses.replace(self, **moved)

    def pinned(self) -> MicroBatch:
        """In page-locked memory, from which copies to a GPU overlap with its work."""
        return dataclasses.replace(self, **{name: getattr(self, name).pin_memory()
                                            for name in ("input_ids", "position_ids", "labels", "cu_seqlens")})

    def batched(self) -> MicroBatch:
        """The same with a dimension of 1 in front, [1, T], as models of `transformers` want."""
        return dataclasses.replace(self, **{name: getattr(self, name).unsqueeze(0)
                                            for name in ("input_ids", "position_ids", "labels")})


@dataclass
class Batch:
    """One rank's work of a step: its micro-batches in the order of execution."""

    plan: Any  #: hdpsim.Plan
    rank: int
    micro_batches: list[MicroBatch]
    fingerprint: int  #: Of the plan: ranks with different plans would wait for each other for ever.

    def counted(self, update: int) -> int:
        """Labels in the loss of one optimizer step, on this rank."""
        return sum(part.counted for part in self.micro_batches if part.share.update == update)


def make_batch(plan: Any, rank: int, tokens: Reader, labels: Reader | None = None, *,
               pad_to_multiple_of: int = 1) -> Batch:
    """Reads this rank's tokens of a plan, and no others but the one that follows a piece.

    `tokens(sequence, begin, end)` gives tokens of a sequence by its index in the plan. `labels` gives labels in the
    same way, in the places of their tokens and not yet shifted, IGNORED where masked; by default the tokens themselves.
    `pad_to_multiple_of` adds rows that are in no piece, for kernels that want such a number.
    """
    parts = [_micro_batch(share, plan.lengths, tokens, labels or tokens, pad_to_multiple_of)
             for share in plan.share(rank)]
    digest = hashlib.sha256(plan.json().encode()).digest()
    return Batch(plan, rank, parts, int.from_bytes(digest[:7], "little"))


def _micro_batch(share: Any, lengths: Sequence[int], tokens: Reader, labels: Reader, multiple: int) -> MicroBatch:
    ids, positions, targets, ends = [], [], [], [0]
    for pieces in (share.members[share.cp_rank], share.local):
        for sequence, begin, end in zip(pieces.sequence.tolist(), pieces.begin.tolist(), pieces.end.tolist()):
            length = int(lengths[sequence])
            ids.append(_filled(tokens, sequence, begin, min(end, length), end - begin, 0))
            targets.append(_filled(labels, sequence, begin + 1, min(end + 1, length), end - begin, IGNORED))
            positions.append(torch.arange(begin, end))
            ends.append(ends[-1] + end - begin)
    rows = max(ends[-1] + share.padding, 1)
    pad = rows + -rows % multiple - ends[-1]
    if pad:
        ids.append(torch.zeros(pad, dtype=torch.int64))
        targets.append(torch.full((pad,), IGNORED))
        positions.append(torch.arange(pad))
        ends.append(ends[-1] + pad)
    longest = max(end - begin for begin, end in zip(ends, ends[1:]))
    return MicroBatch(torch.cat(ids), torch.cat(positions), torch.cat(targets),
                      torch.tensor(ends, dtype=torch.int32), longest, share)


def _filled(read: Reader, sequence: int, begin: int, end: int, rows: int, rest: int) -> torch.Tensor:
    """Tokens [begin, end) of a sequence, and `rest` up to so many rows."""
    values = torch.full((rows,), rest)
    if begin < end:
        got = torch.as_tensor(read(sequence, begin, end)).to(torch.int64).reshape(-1)
        if got.numel() != end - begin:
            raise ValueError(f"sequence {sequence}: {end - begin} tokens from {begin} on were asked for, the data set "
                             f"gave {got.numel()}: the plan's length is not that of the data")
        values[: end - begin] = got
    return values


def loss_sum(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The cross entropy of [T, vocabulary] or [1, T, vocabulary], summed over counted labels, in fp32 or fp64."""
    logits = logits.reshape(-1, logits.shape[-1])
    wide = logits if logits.dtype == torch.float64 else logits.float()
    return torch.nn.functional.cross_entropy(wide, labels.reshape(-1), ignore_index=IGNORED, reduction="sum")
