"""HDP: runs the micro-batches of a plan through the user's model, on every rank in the order of its schedule.

The runtime calls the user's forward, since chunks of a sequence run backward in reverse order and may run forward
twice; and it owns the sum of gradients, since ranks have unequal numbers of micro-batches, some none.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from . import trace, versions
from .attention import Chain, Chunks, Gathered, Ring, Work
from .batch import Batch, MicroBatch
from .exchange import Messages
from .kernels import kernel_named
from .offload import RESIDENT_LAYERS, Offload, layers_of
from .reduce import sum_over_ranks
from .sharded import Replicated, Sharded
from .traded import Traded
from .versions import Unsupported
from .watch import Watch

#: forward(micro_batch) -> the loss, SUMMED over the counted labels of this rank: a scalar.
Forward = Callable[[MicroBatch], torch.Tensor]

# How keys travel, by the words of plans; where a plan does not say it, in a ring.
_exchanges = {None: "ring", "p2p": "ring", "all_gather": "all_gather", "group_cast": "group_cast", "a2a": "a2a"}


class Refused(ValueError):
    """What the runtime does not do, said before the step by all ranks."""


@dataclass
class _Pass:
    """A micro-batch between its forward and its backward."""

    part: MicroBatch
    work: Work
    generators: Any = None  # their states before the first forward
    loss: torch.Tensor | None = None
    calls: int = 0  # of attention, which number its layers


class HDP:
    """The ranks that share a plan, one process each.

    `group`: a process group, or a DeviceMesh of one dimension; by default all processes. Rank i of plans is the i-th of
    it. `exchange`: how keys reach queries: `plan` as the plan says, otherwise `ring`, `all_gather`, `group_cast` or
    `a2a`; the gradients are the same. `a2a_ranks`: the most ranks that trade heads under a2a, as `mesh.a2a_ranks` of the
    study, which plans do not state; 0 is as many as can. `attention`: `auto`, `flash_attn`, `varlen_attn`, `aten` or
    `plain` (see kernels).
    `time_limit`: seconds for any single wait, after which every rank tells what all were doing. `token_wise`: what to
    do with micro-batches that offload token by token: `refuse`, or `offload` for whole tensors instead.
    """

    def __init__(self, group: Any = None, *, exchange: str = "plan", attention: str = "auto",
                 time_limit: float = 600.0, token_wise: str = "refuse", a2a_ranks: int = 0) -> None:
        if exchange not in ("plan", "ring", "all_gather", "group_cast", "a2a"):
            raise ValueError(f"exchange={exchange!r}: choose plan, ring, all_gather, group_cast or a2a")
        if a2a_ranks < 0:
            raise ValueError(f"a2a_ranks={a2a_ranks}: give the most ranks that trade heads, or 0 for as many as can")
        if token_wise not in ("refuse", "offload"):
            raise ValueError(f"token_wise={token_wise!r}: choose refuse or offload")
        self.group = versions.process_group(group)
        self.rank, self.size = dist.get_rank(self.group), dist.get_world_size(self.group)
        if self.rank < 0:
            raise ValueError("this process is not in the group that it was given")
        self.exchange, self.a2a_ranks = exchange, a2a_ranks
        self.token_wise, self.kernel_name = token_wise, attention
        self.watch = Watch(self.group, self.rank, self.size, time_limit)
        self.messages = Messages(self.group, self.watch)
        self.model: torch.nn.Module | None = None
        self.device = torch.device("cpu")
        self.step_s = 0.0  # of the last run(), on this rank
        self._active: _Pass | None = None
        self._in_backward = False

    # What users call.

    def prepare(self, model: torch.nn.Module, *, layers: list[torch.nn.Module] | None = None, broadcast: bool = True,
                context: int | None = None, gather: str = "step") -> torch.nn.Module:
        """Says which model is trained: a bare one, one in DDP, or one with fully_shard() (FSDP2). Returns it.

        Parameters and buffers of rank 0 go to all ranks unless `broadcast` is false; sharded ones are left alone.
        `layers`: for plans that offload; by default the longest ModuleList. `context`: the longest sequence that the
        model takes; by default max_position_embeddings of its config, if it has one. `gather`, of FSDP2: parameters
        once a `step`, or in every `micro_batch`, which needs plans in waves (hdpsim.Planner(..., waves=1)).
        """
        if gather not in ("step", "micro_batch"):
            raise ValueError(f"gather={gather!r}: choose step or micro_batch")
        self.device = next(model.parameters()).device
        self.kernel = kernel_named(self.kernel_name, self.device)
        self.parallel = Sharded(model, self, gather) if versions.is_fsdp2(model) else Replicated(model, self)
        self.model = model
        self.offload = Offload(layers or layers_of(model), list(model.parameters()))
        self.context = context or getattr(getattr(model, "config", None), "max_position_embeddings", None)
        if broadcast:
            self.parallel.broadcast()
        return model

    def run(self, batch: Batch, forward: Forward, update: Callable[[], None] | None = None) -> float:
        """Runs one step forward and backward. Returns the mean loss over all counted labels of the whole batch.

        Afterwards every parameter's `grad` is the gradient of that mean, on all ranks (with fully_shard(): of its
        shard). `update` is called after every optimizer step of the batch, for plans of several: it steps the
        optimizer and clears the gradients.
        Refused, before anything runs and on all ranks: what any rank cannot do. Stuck: a rank has died or hangs.
        """
        return self._guarded(self._run, batch, forward, update, True)

    def evaluate(self, batch: Batch, forward: Forward) -> float:
        """The same mean loss without gradients."""
        return self._guarded(self._run, batch, forward, lambda: None, False)

    @versions.not_compiled
    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float | None = None,
               layer: Any = None) -> torch.Tensor:
        """Causal attention of this rank's tokens to their documents. For the user's model, inside of forward.

        q [T, heads, dim], k [T, kv_heads, dim], v [T, kv_heads, dim_v], or with a dimension of 1 in front; returns
        [T, heads, dim_v]. `scale` is 1 / sqrt(dim) by default. `layer` names the layer; without it calls are counted,
        which activation checkpointing of one's own does not allow where chunks continue each other.
        """
        if q.dim() == 4:
            return self.attend(q[0], k[0], v[0], scale=scale, layer=layer).unsqueeze(0)
        active = self._active
        if active is None:
            raise RuntimeError("attention was called outside of HDP.run(): only there it is known which tokens these are")
        rows = active.part.input_ids.numel()
        if q.shape[0] != rows or k.shape[0] != rows or v.shape[0] != rows:
            raise ValueError(f"attention got {q.shape[0]} queries, {k.shape[0]} keys and {v.shape[0]} values, the "
                             f"micro-batch has {rows} tokens on this rank: shapes are [tokens, heads, dim]")
        if layer is None:
            if self._in_backward and isinstance(active.work, Chunks):
                raise RuntimeError("attention is recomputed in backward while chunks continue each other: "
                                   "call attend(..., layer=index)")
            layer = active.calls
            active.calls += 1
        q, k = (x if x.dtype == v.dtype else x.to(v.dtype) for x in (q, k))
        return active.work.attend(q, k, v, scale or q.shape[-1]**-0.5, layer)

    @property
    def attention(self) -> str:
        """The name of this attention for `transformers` (attn_implementation), which it registers there."""
        from .adapters import transformers

        return transformers.register(self)

    # One step.

    def _guarded(self, function: Callable[..., float], *arguments: Any) -> float:
        try:
            return function(*arguments)
        except BaseException as error:
            if not isinstance(error, Refused):  # all ranks refuse together, and may go on
                self.watch.failed(error)
            raise
        finally:
            self._active, self._in_backward = None, False
            self.watch.now("between steps")

    def _run(self, batch: Batch, forward: Forward, update: Callable[[], None] | None, train: bool) -> float:
        begin = time.perf_counter()
        labels = self._agreed(batch, update)
        losses = 0.0
        with trace.whole(batch.plan.step, self.rank) if train else contextlib.nullcontext():
            for number, denominator in enumerate(labels):
                losses += self._update(batch, forward, number, denominator, train)
                if update is not None and train:
                    update()
        self.step_s = time.perf_counter() - begin
        return losses / sum(labels)

    def _update(self, batch: Batch, forward: Forward, number: int, denominator: int, train: bool) -> float:
        """One optimizer step's passes. Returns the sum of losses over all ranks."""
        loss = torch.zeros((), dtype=torch.float64, device=self.device)
        parts = [part for part in batch.micro_batches if part.share.update == number]
        step = batch.plan.step
        with self.parallel.step(train), torch.set_grad_enabled(train):
            self.parallel.open(forward)
            for chain in _chains(parts):
                for one in self._chain(chain, forward, step, 1 / denominator, train):
                    loss += one
            self.watch.now(f"step {step}, sum of gradients")
            with trace.reduction(step):
                self.parallel.close(forward, train)
                total = sum_over_ranks(self.parallel.to_sum if train else [], loss, self.group, self.watch)
        return total.item()

    def _chain(self, chain: list[MicroBatch], forward: Forward, step: int, weight: float, train: bool
               ) -> Iterator[torch.Tensor]:
        """Forward in order, backward in reverse. Yields the losses."""
        passes = [_Pass(part.to(self.device), work) for part, work in zip(chain, self._works(chain))]
        for number, one in enumerate(passes):
            if one.part.share.repeats_forward and train and number + 1 < len(passes):
                one.generators = versions.generator_state(self.device)
                with torch.no_grad():
                    self._forward(one, forward, step)  # for the keys that later chunks see
                one.loss = None
            else:
                self._forward(one, forward, step)
        for one in reversed(passes):
            if one.loss is None:
                with self._as_before(one):
                    self._forward(one, forward, step)
            if train:
                self._backward(one, step, weight)
            yield one.loss.detach().to(torch.float64)
            one.loss = None

    @contextlib.contextmanager
    def _as_before(self, one: _Pass) -> Iterator[None]:
        """Random numbers as in the first forward: dropout drops the same, whose keys later chunks have seen."""
        later = versions.generator_state(self.device)
        versions.set_generator_state(self.device, one.generators)
        try:
            yield
        finally:
            versions.set_generator_state(self.device, later)

    def _forward(self, one: _Pass, forward: Forward, step: int) -> None:
        share = one.part.share
        self.watch.now(f"step {step}, micro-batch {share.micro_batch}, forward")
        self._active, self._in_backward, one.calls = one, False, 0
        offloads = torch.is_grad_enabled() and (share.offload > 0 or share.token_wise)
        ratio = 1.0 if share.token_wise else share.offload
        saving = self.offload.saving(ratio, self.device) if offloads else contextlib.nullcontext()
        with trace.span(step, share.micro_batch, "forward"), saving:
            one.loss = forward(one.part)
        self._active = None
        if not isinstance(one.loss, torch.Tensor) or one.loss.dim() != 0:
            raise TypeError("forward must return the sum of losses, a tensor of no dimensions (see loss_sum); it "
                            f"returned {getattr(one.loss, 'shape', type(one.loss).__name__)}")
        if torch.is_grad_enabled() and not one.loss.requires_grad:
            raise TypeError("forward returned a loss without a graph: was it detached, or computed under no_grad?")

    def _backward(self, one: _Pass, step: int, weight: float) -> None:
        index = one.part.share.micro_batch
        self.watch.now(f"step {step}, micro-batch {index}, backward")
        self._active, self._in_backward = one, True
        with trace.span(step, index, "backward"):
            (one.loss * (weight * self.parallel.loss_factor)).backward()
        self._active, self._in_backward = None, False

    def outside(self, part: MicroBatch, work: Work, forward: Forward) -> torch.Tensor:
        """A forward pass of no plan. Its loss may be without labels."""
        self._active, self._in_backward = _Pass(part, work), False
        return forward(part)

    def _works(self, chain: list[MicroBatch]) -> list[Work]:
        if len(chain) == 1:
            return [self._work(chain[0].share)]
        keys, shares = Chain(), [part.share for part in chain]
        return [Chunks(share, self.kernel, self.device, keys, shares[:number]) for number, share in enumerate(shares)]

    def _work(self, share: Any) -> Work:
        if share.cp_size == 1:
            return Work(share, self.kernel, self.device)
        exchange = self._exchange_of(share)
        if exchange == "ring":
            return Ring(share, self.kernel, self.device, self.messages)
        if exchange == "a2a":
            return Traded(share, self.kernel, self.device, self.messages, self.a2a_ranks)
        return Gathered(share, self.kernel, self.device, self.messages, needed=exchange == "group_cast")

    def _exchange_of(self, share: Any) -> str:
        if share.cut == "served" or len(share.moved) > 0:
            return "group_cast"  # the keys that the queries see which a rank attends
        return _exchanges[share.exchange] if self.exchange == "plan" else self.exchange

    # What is said before the step.

    def _agreed(self, batch: Batch, update: Callable[[], None] | None) -> list[int]:
        """The counted labels of every optimizer step of the batch, over all ranks. Refused where any rank refuses."""
        self.watch.now(f"step {batch.plan.step}, about to begin")
        refusal = self._refusal(batch, update)
        updates = batch.plan.update_count
        facts = self._all_gather([int(refusal is not None), batch.fingerprint, updates])
        if any(fact[0] for fact in facts):
            raise Refused(self._refusals(refusal))
        different = [rank for rank, fact in enumerate(facts) if fact[1:] != facts[0][1:]]
        if different:
            raise Refused(f"the plan of rank {different[0]} is not that of rank 0: all ranks need the same plan of a step")
        counts = torch.tensor([batch.counted(number) for number in range(updates)], device=self._collective_device())
        with self.watch.waiting("the count of labels"):
            self.watch.wait(dist.all_reduce(counts, group=self.group, async_op=True))
            labels = counts.tolist()
        if 0 in labels:
            raise Refused(f"optimizer step {labels.index(0)} of the batch has no counted label")
        return labels

    def _refusal(self, batch: Batch, update: Callable[[], None] | None) -> str | None:
        plan = batch.plan
        if self.model is None:
            return "no model: call HDP.prepare(model) first"
        if plan.ranks != self.size:
            return f"the plan is for {plan.ranks} ranks, the group has {self.size}"
        if batch.rank != self.rank:
            return f"the batch is that of rank {batch.rank}, this is rank {self.rank}"
        if plan.pp > 1:
            return f"the plan is for a pipeline of {plan.pp} stages, which this runtime does not run"
        if plan.update_count > 1 and update is None:
            return f"the batch has {plan.update_count} optimizer steps: call run(batch, forward, update)"
        if self.parallel.gathers_inside:
            if not plan.waves:
                return ("parameters are gathered in every micro-batch, and the plan's ranks have unequal numbers of these: "
                        "use prepare(gather='step'), or plan in waves: hdpsim.Planner(..., waves=1)")
            if any(part.continues for part in plan.micro_batches):
                return "parameters are gathered in every micro-batch, and chunks in order differ from rank to rank"
        if self.context is not None and max(plan.lengths) > self.context:
            return (f"a sequence of {max(plan.lengths)} tokens, the model takes {self.context} "
                    "(max_position_embeddings, or prepare(context=...))")
        for part in batch.micro_batches:
            refusal = self._refusal_of(part.share)
            if refusal is not None:
                return f"micro-batch {part.share.micro_batch}: {refusal}"
        return None

    def _refusal_of(self, share: Any) -> str | None:
        if share.token_wise and self.token_wise == "refuse":
            return "activations leave token by token (token_wise); HDP(token_wise='offload') takes whole tensors instead"
        if (share.offload > 0 or share.token_wise) and len(self.offload.layers) <= RESIDENT_LAYERS:
            return f"it offloads, but {len(self.offload.layers)} layers are known: call prepare(model, layers=[...])"
        served = share.cut == "served" or len(share.moved) > 0
        if share.cp_size > 1 and not served and self.exchange == "plan" and share.exchange not in _exchanges:
            return (f"keys travel by {share.exchange!r}, which is not run here: HDP(exchange='ring') or 'all_gather' "
                    "gives the same gradients, at other times than planned")
        return None

    def _refusals(self, own: str | None) -> str:
        texts: list[Any] = [None] * self.size
        with self.watch.waiting("what other ranks refuse"):
            dist.all_gather_object(texts, own, group=self.group)
        ranks: dict[str, list[int]] = {}
        for rank, text in enumerate(texts):
            if text is not None:
                ranks.setdefault(text, []).append(rank)
        if len(ranks) == 1 and len(next(iter(ranks.values()))) == self.size:
            return next(iter(ranks))
        return "; ".join(f"rank {', '.join(map(str, where))}: {text}" for text, where in ranks.items())

    def _all_gather(self, values: list[int]) -> list[list[int]]:
        own = torch.tensor(values, dtype=torch.int64, device=self._collective_device())
        everyone = [torch.empty_like(own) for _ in range(self.size)]
        with self.watch.waiting("all ranks to begin the step"):
            self.watch.wait(dist.all_gather(everyone, own, group=self.group, async_op=True))
            return [one.tolist() for one in everyone]

    def _collective_device(self) -> torch.device:
        return torch.device("cpu") if dist.get_backend(self.group) == "gloo" else self.device


def _chains(parts: list[MicroBatch]) -> Iterator[list[MicroBatch]]:
    """Micro-batches in their order, those that continue each other together."""
    chain: list[MicroBatch] = []
    for part in parts:
        if chain and not part.share.continues:
            yield chain
            chain = []
        chain.append(part)
    if chain:
        yield chain
