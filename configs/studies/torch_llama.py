#!/usr/bin/env python3
"""A small Llama trained by plans, from lengths to loss, on the cores of one machine:

    torchrun --nproc_per_node 4 configs/studies/torch_llama.py
    python3 configs/studies/torch_llama.py        # the same without torchrun, which Debian 12's PyTorch 1.13 breaks

Two plans of the same batches, `static` (one degree of context parallelism for all) and `hdp-balance`: the losses are
equal, the times are not. Beside the measured times stand those that the simulator predicted when it planned, for the
cores and kernels of its profile: compare ratios, on a machine with a core for each rank. What you
need for a model of your own is marked with `<--`. Needs PyTorch 1.13 or later, and `import hdpsim` (pip install, or
PYTHONPATH=build/release/python).
"""

import argparse
import contextlib
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import nn

import hdpsim
import hdpsim.torch as ht

STUDY = """  # What the planner has to know: ranks, model, speed, and how many tokens a rank can hold.
name: torch-llama
cluster: {preset: laptop-cpu}
model: {preset: byte-3m}
profile: epyc-cpu  # `hdpsim calibrate --backend cpu` makes one of your machine
data: {lengths: {preset: github}, context: 2Ki, tokens_per_step: 4Ki, steps: 4, seed: 1}
mesh: {capacity: 1Ki}
memory: {reserve: 0 B}
plans: [static, hdp-balance]
"""
POLICIES = "static", "hdp-balance"


class Documents:
    """A data set: lengths, and the tokens [begin, end) of a document. Here each repeats a word of 16 letters."""

    def __init__(self, count: int, longest: int) -> None:
        generator = torch.Generator().manual_seed(7)
        lengths = torch.exp(torch.randn(count, generator=generator) * 1.2 + 5).long()
        self.lengths = lengths.clamp(8, longest).tolist()

    def tokens(self, index: int, begin: int, end: int) -> torch.Tensor:
        word = torch.randint(97, 113, (5 + index % 20,), generator=torch.Generator().manual_seed(index))
        return word[torch.arange(begin, end) % len(word)]


class Layer(nn.Module):
    def __init__(self, hdp: ht.HDP, width: int = 256, inner: int = 704, heads: int = 4, kv_heads: int = 2) -> None:
        super().__init__()
        self.hdp, self.heads, self.kv_heads, self.dim = hdp, heads, kv_heads, width // heads
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * self.dim, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)
        self.norms = nn.ParameterList([nn.Parameter(torch.ones(width)) for _ in range(2)])

    def forward(self, x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        qkv = self.qkv(norm(x, self.norms[0])).view(-1, self.heads + 2 * self.kv_heads, self.dim)
        q, k, v = qkv.split([self.heads, self.kv_heads, self.kv_heads], dim=1)
        attended = self.hdp.attend(rotate(q, turn), rotate(k, turn), v)  # <-- over the tokens of all ranks of the group
        x = x + self.out(attended.reshape(x.shape))
        a, b = self.up(norm(x, self.norms[1])).chunk(2, dim=-1)
        return x + self.down(nn.functional.silu(a) * b)


class Llama(nn.Module):
    def __init__(self, hdp: ht.HDP) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding, self.head = nn.Embedding(256, 256), nn.Linear(256, 256, bias=False)
        self.layers = nn.ModuleList(Layer(hdp) for _ in range(4))
        self.norm = nn.Parameter(torch.ones(256))
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:  # <-- positions come with the tokens
        angles = (positions[:, None] * 10000.0 ** (-torch.arange(32) / 32))[:, None, :]
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, (torch.cos(angles), torch.sin(angles)))
        return self.head(norm(x, self.norm))


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


def rotate(x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * turn[0] - b * turn[1], b * turn[0] + a * turn[1]], dim=-1)


def train(policy: str, options: argparse.Namespace) -> list[tuple[float, float, float]]:
    """(loss, measured seconds, predicted seconds) of each step."""
    hdp = ht.HDP(time_limit=120)  # <-- the ranks: all processes
    model = hdp.prepare(Llama(hdp))  # <-- gradients are summed once a step
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    planner = hdpsim.Planner(STUDY, policy)
    data = Documents(2000, longest=planner.context)

    def forward(mb: ht.MicroBatch) -> torch.Tensor:  # <-- this rank's tokens of one micro-batch; the SUM of losses
        return ht.loss_sum(model(mb.input_ids, mb.position_ids), mb.labels)

    steps = []
    loader = iter(ht.PlannedLoader(data, planner, hdp, tokens_per_step=options.tokens, seed=1))  # <-- plans ahead
    traces = os.path.join(options.trace or ".", policy)
    with ht.profile(traces, rank=hdp.rank, steps=[1]) if options.trace else contextlib.nullcontext() as running:
        for _ in range(options.steps):
            batch = next(loader)
            loss = hdp.run(batch, forward)  # <-- forward and backward; the mean loss of the whole batch
            optimizer.step()
            optimizer.zero_grad()
            if running:
                running.step(batch.plan)
            slowest = torch.tensor(hdp.step_s)
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
            steps.append((loss, slowest.item(), batch.plan.estimate_s or float("nan")))
    loader.close()
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=3000, help="of a step")
    parser.add_argument("--trace", help="folder for traces of the second step")
    options = parser.parse_args()
    if "RANK" in os.environ:  # torchrun
        run(options)
        return
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(listener.getsockname()[1]), WORLD_SIZE="4")
    torch.multiprocessing.spawn(run_as, args=(options,), nprocs=4)


def run_as(rank: int, options: argparse.Namespace) -> None:
    os.environ["RANK"] = str(rank)
    run(options)


def run(options: argparse.Namespace) -> None:
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // int(os.environ["WORLD_SIZE"])))
    dist.init_process_group("gloo")
    runs = {policy: train(policy, options) for policy in POLICIES}
    if dist.get_rank() == 0:
        report(runs)
        if options.trace:
            tell_comparison(options.trace)


def report(runs: dict[str, list[tuple[float, float, float]]]) -> None:
    first, second = runs
    print(f"{'':5}{'loss':>20}{'measured, s':>22}{'':7}{'predicted, s':>22}")
    print(f"step {first:>8}{second:>12}{first:>10}{second:>12}{'ratio':>7}{first:>10}{second:>12}{'ratio':>7}")
    for step, (a, b) in enumerate(zip(runs[first], runs[second])):
        print(f"{step:4} {a[0]:8.4f}{b[0]:12.4f}{a[1]:10.3f}{b[1]:12.3f}{a[1] / b[1]:7.2f}{a[2]:10.3f}{b[2]:12.3f}"
              f"{a[2] / b[2]:7.2f}")
    worst = max(abs(a[0] - b[0]) for a, b in zip(runs[first], runs[second]))
    print(f"Losses differ by {worst:.1e} at most.")


def tell_comparison(folder: str) -> None:
    """The command that lays the traces beside simulations of the plans that they ran."""
    study = os.path.join(folder, "study.yaml")
    with open(study, "w") as file:
        file.write(STUDY)
    for policy in POLICIES:
        print(f"hdpsim compare {folder}/{policy}/rank*.json.gz {study} --plan {folder}/{policy}/plan-step1.json")


if __name__ == "__main__":
    main()
