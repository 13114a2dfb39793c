"""What the tests of hdpsim.torch share: a small Llama, one process as the reference, and plans by every policy."""

from __future__ import annotations

import hashlib
import json

import torch
from torch import nn

import hdpsim

VOCABULARY = 61
POLICIES = ("static", "megatron-dp-balanced", "megatron-hybrid-cp", "megatron-dynamic-cp", "flexsp",
            "flexsp-homogeneous", "hydraulis", "wlb", "skrull", "chunkflow", "distca", "zeppelin", "verl", "openrlhf",
            "skyrl", "areal", "prime-rl", "slime", "hdp-naive", "hdp-balance")


def study(plans=POLICIES, context=256, capacity=128):
    return {"name": "torch", "cluster": {"preset": "laptop-cpu"}, "model": {"preset": "byte-3m"}, "profile": "epyc-cpu",
            "data": {"lengths": {"preset": "github"}, "context": context, "tokens_per_step": "1Ki", "steps": 4},
            "mesh": {"capacity": capacity}, "memory": {"reserve": "0 B"}, "plans": list(plans)}


def lengths(count, seed, longest=256):
    """Many short sequences and a few long ones."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(count, generator=generator).pow(4) * longest).long().add(2).tolist()


def plans_of(seed, policies):
    """The plans of policies for a batch, as text, and those of the policies that refuse it."""
    plans, refused = {}, []
    for policy in policies:
        try:
            plans[policy] = hdpsim.Planner(study(), policy).plan(lengths(18, seed)).json()
        except hdpsim.InputError as error:
            assert "use larger batches" in str(error), error
            refused.append(policy)
    return plans, refused


def by_hand(**keys):
    """A plan whose group is in no order, with sequences shorter than the group, local spans and an idle rank."""
    plan = {"schema": "hdpsim.plan/1", "policy": "by-hand", "step": 3, "ranks": 4, "capacity": 64, "layers": 4,
            "sequences": [1, 2, 3, 17, 9, 11],
            "micro_batches": [
                {"group": [2, 0, 1], "spans": [0, 1, 2],
                 "local": [{"rank": 0, "spans": [3]}, {"rank": 1, "spans": [4, 5]}]}],
            "schedule": [[0], [0], [0], []], **keys}
    return json.dumps(plan)


def cut_by_hand(cut, **keys):
    """Packed documents over three ranks in no order, cut in another way; a rank runs another micro-batch."""
    spans = {"group": [3, 1, 0], "spans": [0, 1, 2, 3], "cut": cut, **keys}
    return by_hand(sequences=[40, 5, 23, 31, 12], micro_batches=[spans, {"group": [2], "spans": [4]}],
                   schedule=[[0], [0], [1], [0]])


def trades_by_hand():
    """Groups of 3 and 2 that trade heads, with local spans and ranks without tokens; then a ring, and all four trade."""
    return by_hand(
        schema="hdpsim.plan/2", model_layers=4, sequences=[1, 2, 3, 17, 9, 11, 37, 22, 5, 29],
        micro_batches=[
            {"group": [2, 0, 1], "spans": [0, 1], "local": [{"rank": 0, "spans": [2]}], "exchange": "a2a"},
            {"group": [3, 1], "spans": [3, 5], "local": [{"rank": 3, "spans": [4]}], "exchange": "a2a"},
            {"group": [2, 0, 3], "spans": [6], "exchange": "p2p"},
            {"group": [1, 3, 0, 2], "spans": [7, 8, 9], "exchange": "a2a"}],
        schedule=[[0, 2, 3], [0, 1, 3], [0, 2, 3], [1, 2, 3]])


def chunks_by_hand():
    """A sequence in three chunks on one rank, of which the first two run forward twice."""
    chunk = [{"group": [1], "spans": [[0, 0, 20]], "repeats_forward": True},
             {"group": [1], "spans": [[0, 20, 20]], "continues": True, "repeats_forward": True},
             {"group": [1], "spans": [[0, 40, 13]], "continues": True}]
    return by_hand(sequences=[53, 30, 8], schedule=[[3], [0, 1, 2, 4], [], []],
                   micro_batches=[*chunk, {"group": [0], "spans": [1]}, {"group": [1], "spans": [2]}])


def random_plan(seed):
    """A sound plan of any kind: groups in any order, ranks without work, sequences of few tokens, spans of one rank."""
    generator = torch.Generator().manual_seed(seed)

    def below(count):
        return int(torch.randint(0, count, (1,), generator=generator))
    sequences = [1 + below(1 + below(70)) for _ in range(4 + below(10))]
    left, parts, schedule = list(range(len(sequences))), [], [[] for _ in range(4)]
    while left:
        taken = [left.pop(below(len(left))) for _ in range(min(len(left), 1 + below(4)))]
        group = torch.randperm(4, generator=generator).tolist()[: 1 + below(4)]
        part = {"group": group, "spans": taken}
        if len(group) > 1:
            part["cut"] = ("per_document", "per_pack", "dispatch")[below(3)]
            if part["cut"] == "per_document" and len(taken) > 1 and below(2):
                part["local"] = [{"rank": group[below(len(group))], "spans": [taken.pop()]}]
        for rank in group:
            schedule[rank].append(len(parts))
        parts.append(part)
    return by_hand(sequences=sequences, micro_batches=parts, schedule=schedule, capacity=1024)


class Block(nn.Module):
    def __init__(self, width, heads, kv_heads, attend, dropout):
        super().__init__()
        self.heads, self.kv_heads, self.dim, self.attend = heads, kv_heads, width // heads, attend
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * kv_heads * self.dim, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(2 * width, width, bias=False)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, turn):
        y = self.norms[0](x)
        q = self.q(y).view(-1, self.heads, self.dim)
        k, v = self.kv(y).view(-1, 2 * self.kv_heads, self.dim).chunk(2, dim=1)
        x = x + self.dropout(self.o(self.attend(rotate(q, turn), rotate(k, turn), v).reshape(x.shape)))
        a, b = self.up(self.norms[1](x)).chunk(2, dim=-1)
        return x + self.down(nn.functional.silu(a) * b)


def rotate(x, turn):
    a, b = x.chunk(2, dim=-1)
    cos, sin = turn
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Llama(nn.Module):
    """Rotary positions, grouped queries, SwiGLU: what attention over pieces could get wrong shows in its gradients."""

    def __init__(self, attend, width=32, layers=2, heads=4, kv_heads=2, dropout=0.0, dtype=torch.float64, seed=5):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(Block(width, heads, kv_heads, attend, dropout) for _ in range(layers))
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        self.unused = nn.Linear(2, 2)  # by nobody: its gradients stay None
        self.half = width // heads // 2
        self.to(dtype)

    def forward(self, ids, positions):
        x = self.embedding(ids)
        rates = 100.0 ** (-torch.arange(self.half, dtype=x.dtype) / self.half)
        angles = (positions.to(x.dtype)[:, None] * rates)[:, None, :]
        turn = torch.cos(angles), torch.sin(angles)
        for layer in self.layers:
            x = layer(x, turn)
        return self.head(x)


def dense(q, k, v):
    """Causal attention of one document, written again: all scores of all heads."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * q.shape[-1]**-0.5
    hidden = torch.arange(len(q))[:, None] < torch.arange(len(q))
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, float("-inf")).softmax(-1), v)


def token(sequence, places, batch=0):
    """Tokens that anybody can compute; a third of the labels of some sequences is masked."""
    generator = torch.Generator().manual_seed(1000 * batch + sequence)
    return torch.randint(0, VOCABULARY, (places,), generator=generator)


def tokens_of(plan, batch=0):
    all_ = [token(i, length, batch) for i, length in enumerate(plan.lengths)]
    return lambda sequence, begin, end: all_[sequence][begin:end]


def labels_of(plan, batch=0):
    read = tokens_of(plan, batch)

    def labels(sequence, begin, end):
        values = read(sequence, begin, end).clone()
        if sequence % 3 == 0 and plan.lengths[sequence] > 4:
            values[torch.arange(begin, end) % 3 == 0] = -100
        return values
    return labels


def documents(plan):
    """(sequence, begin, end, update) of what attention sees as one: spans, and the chunks of a sequence together."""
    chained = {}
    found = []
    for part in plan.micro_batches:
        spans = list(part.spans) + [span for _, spans in part.local for span in spans]
        for sequence, begin, tokens in spans:
            end = min(begin + tokens, plan.lengths[sequence])
            if part.continues:
                found[chained[sequence]] = (sequence, found[chained[sequence]][1], end, part.update)
            else:
                chained[sequence] = len(found)
                found.append((sequence, begin, end, part.update))
    return found


def reference(plan, model, batch=0):
    """Loss and gradients of the first optimizer step of a plan in one process: document by document."""
    model.zero_grad(set_to_none=True)
    tokens, labels = tokens_of(plan, batch), labels_of(plan, batch)
    count = sum(int((labels(i, 1, length) != -100).sum()) for i, length in enumerate(plan.lengths))
    loss = 0.0
    for sequence, begin, end, _ in documents(plan):
        stop = min(end + 1, plan.lengths[sequence])
        target = torch.full((end - begin,), -100)
        target[: stop - begin - 1] = labels(sequence, begin + 1, stop)
        logits = model(tokens(sequence, begin, end), torch.arange(begin, end))
        part = nn.functional.cross_entropy(logits, target, reduction="sum", ignore_index=-100) / count
        part.backward()
        loss += part.item()
    return loss, gradients(model)


def gradients(model):
    return torch.cat([p.grad.reshape(-1).double() for p in model.parameters() if p.grad is not None])


def relative(a, b):
    return ((a - b).norm() / b.norm()).item()


def digest(model):
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()
