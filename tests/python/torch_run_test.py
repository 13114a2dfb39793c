"""hdpsim.torch on four processes: gradients of plans by every policy against one process, and against mistakes that must
show; training and resuming; what is refused; ranks that die. Needs PyTorch with gloo.
"""

import contextlib
import io
import itertools
import os
import socket
import sys
import tempfile
import time

import torch_needed  # noqa: F401  before torch
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
import torch_cases as cases

import hdpsim
import hdpsim.torch as ht
from hdpsim.torch import attention, batch as batches, offload, sharded, trace, traded

RANKS = 4
LIMIT_S = 60  # of a busy machine


class Rank:
    """One of the processes."""

    def __init__(self, rank, plans):
        self.rank, self.plans = rank, plans
        self.worst = {}

    def gradients(self, plan, hdp, forward=None, batch=None, **model):
        """(loss, gradients) of a step of a plan."""
        net = cases.Llama(hdp.attend, **model)
        hdp.prepare(net, broadcast=False)
        batch = batch or ht.make_batch(plan, self.rank, cases.tokens_of(plan), cases.labels_of(plan))
        loss = hdp.run(batch, forward(net) if forward else forward_of(net))
        return loss, cases.gradients(net)

    def error(self, name, hdp, **model):
        """Relative errors of gradients and loss against one process; the reference is another rank's for every plan."""
        plan = hdpsim.Plan.parse(self.plans[name])
        loss, gradients = self.gradients(plan, hdp, **model)
        if list(self.plans).index(name) % RANKS != self.rank:
            return 0.0
        model = {**model, "dtype": torch.float64}
        expected, reference = cases.reference(plan, cases.Llama(cases.dense, **model))
        return max(cases.relative(gradients, reference), abs(loss - expected) / expected)


def forward_of(net):
    return lambda part: ht.loss_sum(net(part.input_ids, part.position_ids), part.labels)


def raises(kind, text, function):
    try:
        function()
    except kind as error:
        assert text in str(error), f"it says: {error}"
    else:
        raise AssertionError(f"nothing was raised where this was expected: {text}")


def everywhere(value):
    """The largest of all ranks."""
    value = torch.tensor([float(value)], dtype=torch.float64)
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value.item()


# Gradients.

def gradients_of_every_policy_are_those_of_one_process(self):
    hdp = ht.HDP(token_wise="offload", time_limit=LIMIT_S)
    for name in self.plans:
        error = self.error(name, hdp, layers=3)  # plans that offload leave two layers alone
        assert error < 1e-12, f"{name}: {error}"
        self.worst["fp64, as planned"] = max(self.worst.get("fp64, as planned", 0), error)


def gradients_are_the_same_however_keys_travel(self):
    some = ("hdp-balance:1", "skrull:2", "zeppelin:1", "by hand", "per_pack", "dispatch", "served", "random 0", "random 1")
    for exchange in ("ring", "all_gather", "group_cast", "a2a"):
        hdp = ht.HDP(exchange=exchange, time_limit=LIMIT_S)
        for dtype, bound in ((torch.float64, 1e-12), (torch.float32, 2e-5)):
            for name in some:
                error = self.error(name, hdp, dtype=dtype)
                assert error < bound, f"{name}, {exchange}, {dtype}: {error}"
                key = f"{str(dtype)[6:]}, {exchange}"
                self.worst[key] = max(self.worst.get(key, 0), error)


def gradients_are_the_same_however_many_ranks_trade_heads(self):
    """Groups of 2, 3 and 4 in parties of 1 to 4, as planned and where the plan has a ring."""
    right, seen = traded.ranks_that_trade, set()

    def noted(ranks, kv_heads, most):
        seen.add((ranks, right(ranks, kv_heads, most)))
        return right(ranks, kv_heads, most)
    for kv_heads, most, exchange in ((2, 0, "plan"), (4, 0, "plan"), (4, 2, "a2a"), (3, 0, "a2a")):
        hdp = ht.HDP(exchange=exchange, a2a_ranks=most, time_limit=LIMIT_S)
        for dtype, bound in ((torch.float64, 1e-12), (torch.float32, 2e-5)):
            with patched(traded, "ranks_that_trade", noted):
                error = self.error("trades", hdp, dtype=dtype, width=16 * kv_heads, heads=2 * kv_heads, kv_heads=kv_heads)
            assert error < bound, f"{kv_heads} heads, at most {most} trade, {dtype}: {error}"
            key = f"{str(dtype)[6:]}, a2a"
            self.worst[key] = max(self.worst.get(key, 0), error)
    assert seen >= {(3, 1), (3, 3), (4, 1), (4, 2), (4, 4)} and (self.rank in (0, 2) or (2, 2) in seen), seen
    assert [right(12, 8), right(12, 8, 3), right(6, 1), right(6, 12, 4)] == [4, 2, 1, 3]


def trades_send_what_they_must(self):
    """Each once forward and once backward: own tokens of heads that others have, or tokens of others of own heads."""
    plan = hdpsim.Plan.parse(cases.by_hand(
        sequences=[53], micro_batches=[{"group": [3, 1, 0, 2], "spans": [0]}], schedule=[[0]] * 4))
    hdp = ht.HDP(exchange="a2a", time_limit=LIMIT_S)
    _, right = self.gradients(plan, hdp, heads=8, kv_heads=4)
    own = plan.share(self.rank)[0].tokens
    layers, dim, fp64_bytes = 2, 32 // 8, 8
    heads = 8 + 4 + 4 + 8  # of queries, keys, values and outputs; gradients go the other way
    assert hdp.messages.sent_bytes == (own * 3 / 4 + (53 - own) / 4) * heads * dim * fp64_bytes * layers
    # Heads that come back in another order are another model.
    with patched(traded.Trade, "to_tokens", reversed_heads(traded.Trade.to_tokens)):
        _, wrong = self.gradients(plan, hdp, heads=8, kv_heads=4)
    assert cases.relative(wrong, right) > 1e-4
    raises(ValueError, "a2a_ranks=-1", lambda: ht.HDP(a2a_ranks=-1))


def reversed_heads(to_tokens):
    return lambda trade, *tensors: tuple(x.flip(1) for x in to_tokens(trade, *tensors))


def mistakes_show_in_the_gradients(self):
    """Each of these, made on purpose, is far outside of the bound: the checks above are not vacuous."""
    def positions_from_zero(part):
        ends = part.cu_seqlens.tolist()
        part.position_ids = torch.cat([torch.arange(b - a) for a, b in zip(ends, ends[1:])])

    def labels_shifted_after_the_cut(part):
        part.labels = torch.cat([part.input_ids[1:], torch.tensor([-100])])

    def lost(ring):
        def backward(work, dout, q, k, v, *rest):
            gradients = ring(work, dout, q, k, v, *rest)
            alone = attention.Work.backward(work, dout, q, k, v, *rest)
            gradients.k, gradients.v = alone.k, alone.v
            return gradients
        return backward

    def wrong_merge(merged, rows, out, lse):
        known = torch.exp(merged.lse[:, rows]).t().unsqueeze(-1)
        merged.out[rows] = torch.where(known > 0, (merged.out[rows] + out) / 2, out)
        merged.lse[:, rows] = torch.logaddexp(merged.lse[:, rows], lse)

    def one_document(visible):
        return lambda queries, keys: visible([piece._replace(span=0, begin=piece.row, end=piece.row + piece.tokens)
                                              for piece in queries],
                                             [piece._replace(span=0, begin=piece.row, end=piece.row + piece.tokens)
                                              for piece in keys])

    from hdpsim.torch import pieces
    plan = hdpsim.Plan.parse(self.plans["by hand"])
    model = cases.Llama(cases.dense)
    _, reference = cases.reference(plan, model)
    hdp = ht.HDP(time_limit=LIMIT_S)
    for mistake, where, name, wrong in (
            ("positions from 0 in every piece", positions_from_zero, "", None),
            ("labels shifted after the cut", labels_shifted_after_the_cut, "", None),
            ("lost gradients of remote keys", attention.Ring, "backward", lost(attention.Ring.backward)),
            ("a merge that takes the mean", attention.Merged, "add", wrong_merge),
            ("documents that see each other", pieces, "visible", one_document(pieces.visible))):
        batch = ht.make_batch(plan, self.rank, cases.tokens_of(plan), cases.labels_of(plan))
        if not name:
            for part in batch.micro_batches:
                where(part)
        with patched(where, name, wrong) if name else contextlib.nullcontext():
            _, gradients = self.gradients(plan, hdp, batch=batch)
        error = cases.relative(gradients, reference)
        assert error > 1e-4, f"{mistake}: nobody sees it, {error}"


@contextlib.contextmanager
def patched(where, name, value):
    before = getattr(where, name)
    setattr(where, name, value)
    try:
        yield
    finally:
        setattr(where, name, before)


def one_row_a_rank_gives_padding_no_gradient(self):
    """Rows that pad to a multiple of 16 change nothing."""
    for name, exchange in (("by hand", "ring"), ("by hand", "all_gather"), ("trades", "plan")):
        plan = hdpsim.Plan.parse(self.plans[name])
        padded = ht.make_batch(plan, self.rank, cases.tokens_of(plan), cases.labels_of(plan), pad_to_multiple_of=16)
        assert all(part.input_ids.numel() % 16 == 0 and part.cu_seqlens[-1] == part.input_ids.numel()
                   for part in padded.micro_batches)
        hdp = ht.HDP(exchange=exchange, time_limit=LIMIT_S)
        assert cases.relative(self.gradients(plan, hdp, batch=padded)[1], self.gradients(plan, hdp)[1]) < 1e-12


def dropout_in_chunks_that_run_twice_drops_the_same(self):
    """A plan without repeated forwards has other work and the same numbers."""
    again = hdpsim.Plan.parse(self.plans["chunks"])
    once = hdpsim.Plan.parse(self.plans["chunks"].replace(', "repeats_forward": true', ""))
    hdp = ht.HDP(time_limit=LIMIT_S)
    results = []
    for plan in (again, once):
        torch.manual_seed(3 + self.rank)
        net = cases.Llama(hdp.attend, dropout=0.3)
        hdp.prepare(net, broadcast=False)
        torch.manual_seed(3 + self.rank)
        batch = ht.make_batch(plan, self.rank, cases.tokens_of(plan))
        results.append((hdp.run(batch, forward_of(net)), cases.gradients(net)))
    assert again.micro_batches[0].repeats_forward and not once.micro_batches[0].repeats_forward
    assert results[0][0] == results[1][0] and torch.equal(results[0][1], results[1][1])


def activation_checkpointing_of_the_user_works(self):
    """Of layers, and of attention alone, whose messages run again in backward at the same place on all ranks."""
    from torch.utils.checkpoint import checkpoint

    hdp = ht.HDP(time_limit=LIMIT_S)

    def layers(net):
        for layer in net.layers:
            inner = layer.forward
            layer.forward = lambda x, turn, inner=inner: checkpoint(inner, x, turn, use_reentrant=False)
        return forward_of(net)

    def attention_alone(net):
        for layer in net.layers:
            inner = layer.attend
            layer.attend = lambda q, k, v, inner=inner: checkpoint(inner, q, k, v, use_reentrant=False)
        return forward_of(net)
    for name in ("by hand", "trades"):
        plan = hdpsim.Plan.parse(self.plans[name])
        expected = self.gradients(plan, hdp)[1]
        for forward in (layers, attention_alone):
            assert cases.relative(self.gradients(plan, hdp, forward)[1], expected) < 1e-12


def offload_moves_its_share_and_changes_nothing(self):
    for share in (0.5, 1.0):
        text = self.plans["by hand"].replace('"group"', f'"offload": {share}, "group"')
        plan = hdpsim.Plan.parse(text)
        hdp = ht.HDP(time_limit=LIMIT_S)
        with patched(offload, "SMALLEST_BYTES", 64):
            loss, gradients = self.gradients(plan, hdp, layers=5)
        if plan.share(self.rank):
            away = hdp.offload.away_bytes / hdp.offload.seen_bytes
            assert share - 0.15 < away <= share, f"{away} of the bytes went away, {share} were to"
        expected = self.gradients(hdpsim.Plan.parse(self.plans["by hand"]), hdp, layers=5)
        assert loss == expected[0] and torch.equal(gradients, expected[1])


def several_optimizer_steps_of_one_batch(self):
    plan = hdpsim.Plan.parse(cases.by_hand(
        sequences=[20, 30, 9], schedule=[[0, 2], [1], [1], [2]],
        micro_batches=[{"group": [0], "spans": [0]}, {"group": [1, 2], "spans": [1]},
                       {"group": [3, 0], "spans": [2], "update": 1}]))
    tokens = cases.tokens_of(plan)
    hdp = ht.HDP(time_limit=LIMIT_S)
    net, one = cases.Llama(hdp.attend), cases.Llama(cases.dense)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (net, one)]
    hdp.prepare(net)
    raises(ht.Refused, "2 optimizer steps", lambda: hdp.run(ht.make_batch(plan, self.rank, tokens), forward_of(net)))

    def update():
        optimizers[0].step()
        optimizers[0].zero_grad()
    loss, expected = hdp.run(ht.make_batch(plan, self.rank, tokens), forward_of(net), update), 0
    for sequences in ((0, 1), (2,)):
        optimizers[1].zero_grad()
        count = sum(plan.lengths[i] - 1 for i in sequences)
        for i in sequences:
            ids = tokens(i, 0, plan.lengths[i])
            part = torch.nn.functional.cross_entropy(one(ids, torch.arange(len(ids)))[:-1], ids[1:], reduction="sum")
            (part / count).backward()
            expected += part.item() / (sum(plan.lengths) - 3)
        optimizers[1].step()
    assert abs(loss - expected) < 1e-12
    for a, b in zip(net.parameters(), one.parameters()):
        assert (a - b).abs().max() < 1e-12


def evaluation_gives_the_loss_without_gradients(self):
    plan = hdpsim.Plan.parse(self.plans["chunks"])
    hdp = ht.HDP(time_limit=LIMIT_S)
    net = cases.Llama(hdp.attend)
    hdp.prepare(net)
    batch = ht.make_batch(plan, self.rank, cases.tokens_of(plan), cases.labels_of(plan))
    loss = hdp.evaluate(batch, forward_of(net))
    assert all(p.grad is None for p in net.parameters())
    assert loss == hdp.run(batch, forward_of(net))


# Training.

class Documents:
    """A data set that counts what is read of it."""

    def __init__(self, lengths):
        self.lengths, self.read = lengths, 0

    def tokens(self, index, begin, end):
        self.read += end - begin
        return cases.token(index, self.lengths[index])[begin:end]


def train(self, policy, steps, state=None):
    """Losses of steps of Adam, and the state after them."""
    data = Documents(cases.lengths(200, seed=11))
    hdp = ht.HDP(time_limit=LIMIT_S)
    net = cases.Llama(hdp.attend, seed=5 + self.rank)  # of which that of rank 0 counts
    hdp.prepare(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    loader = ht.PlannedLoader(data, planner(policy), hdp, tokens_per_step=400, seed=1)
    if state is not None:
        stored = torch.load(io.BytesIO(state))
        net.load_state_dict(stored["net"])
        optimizer.load_state_dict(stored["optimizer"])
        loader.load_state_dict(stored["loader"])
    losses, taken = [], iter(loader)
    for _ in range(steps):
        losses.append(hdp.run(next(taken), forward_of(net)))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    taken.close()
    stored = io.BytesIO()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}, stored)
    return losses, stored.getvalue(), cases.digest(net)


def planner(policy):
    return hdpsim.Planner(cases.study(), policy)


def alone(steps):
    """The same training in one process, by its own order and sums."""
    data = Documents(cases.lengths(200, seed=11))
    net = cases.Llama(cases.dense)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(1 << 20)).tolist()
    losses = []
    for _ in range(steps):
        drawn, tokens = [], 0
        while order and (not drawn or tokens + data.lengths[order[0]] <= 400):
            drawn.append(order.pop(0))
            tokens += data.lengths[drawn[-1]]
        count, loss = tokens - len(drawn), 0.0
        for i in drawn:
            ids = cases.token(i, data.lengths[i])
            logits = net(ids, torch.arange(len(ids)))
            part = torch.nn.functional.cross_entropy(logits[:-1], ids[1:], reduction="sum") / count
            part.backward()
            loss += part.item()
        losses.append(loss)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return losses


def twenty_steps_of_adam_are_those_of_one_process(self):
    expected = alone(20) if self.rank == 0 else None
    balance = {"hdp-balance": {"search": "none"}}
    for policy in ("static", balance):
        losses, state, digest = train(self, policy, 20)
        assert losses[-1] < losses[0]
        if expected:
            worst = max(abs(a - b) / b for a, b in zip(losses, expected))
            assert worst < 1e-12, f"{policy}: {worst}"
            self.worst["20 steps of Adam"] = max(worst, self.worst.get("20 steps of Adam", 0))
    half, state, _ = train(self, balance, 10)
    rest, _, resumed = train(self, balance, 10, state)
    assert half + rest == losses and resumed == digest, "a resumed run is another run"


def each_rank_reads_its_own_tokens_and_every_sequence_comes_once(self):
    """Also where the policy holds long sequences back, and where the run stops in between."""
    order = torch.randperm(60, generator=torch.Generator().manual_seed(2 << 20)).tolist()
    for policy in ({"hdp-balance": {"search": "none"}}, {"wlb": {"outliers": [100]}}):
        data = Documents(cases.lengths(60, seed=11))
        seen, own, state = [], 0, None
        for most in (3, 100):
            loader = ht.PlannedLoader(data, planner(policy), rank=self.rank, tokens_per_step=400, seed=2, ahead=1)
            if state is not None:
                loader.load_state_dict(state)
            taken = iter(loader)
            for batch in itertools.islice(taken, most):
                seen += batch.plan.ids
                own += sum(part.tokens for part in batch.micro_batches)
            state = loader.state_dict()
            taken.close()
        assert sorted(seen) == sorted(order), f"{policy}: sequences that are missing or come twice"
        assert (seen == order) == ("hdp-balance" in policy), f"{policy} holds back, or not"
        # Each token is read as a token and as a label; and a stopped loader has read ahead, at most two batches.
        assert own <= data.read <= 2 * (own + 2 * 400), f"{policy}: {data.read} tokens read, {own} needed"
        total = torch.tensor([own])
        dist.all_reduce(total)
        assert total.item() == sum(data.lengths)


# Models in wrappers.

def a_model_in_ddp_trains_the_same(self):
    plan = hdpsim.Plan.parse(self.plans["hdp-balance:1"])
    hdp = ht.HDP(time_limit=LIMIT_S)
    _, expected = self.gradients(plan, hdp)
    net = cases.Llama(hdp.attend)
    wrapped = torch.nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)
    hdp.prepare(wrapped)
    hdp.run(ht.make_batch(plan, self.rank, cases.tokens_of(plan), cases.labels_of(plan)), forward_of(wrapped))
    assert torch.equal(cases.gradients(net), expected)
    net.register_buffer("running", torch.zeros(1))
    raises(ht.Unsupported, "broadcast_buffers=False",
           lambda: hdp.prepare(torch.nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)))


def fsdp_gathers_and_reduces_once_a_step(self):
    """A model that answers as FSDPModule does: between the opening and the closing pass all is off, on every rank."""
    hdp = ht.HDP(time_limit=LIMIT_S)
    net = cases.Llama(hdp.attend)
    said = []
    net.unshard = lambda: None
    for name in ("set_requires_gradient_sync", "set_reshard_after_forward", "set_reshard_after_backward"):
        setattr(net, name, lambda on, name=name: said.append((name, on)))
    hdp.prepare(net)
    assert isinstance(hdp.parallel, sharded.Sharded)

    def forward(part):
        said.append((part.share.micro_batch, torch.is_grad_enabled()))
        return ht.loss_sum(net(part.input_ids, part.position_ids), part.labels)
    plan = hdpsim.Plan.parse(self.plans["by hand"])
    hdp.run(ht.make_batch(plan, self.rank, cases.tokens_of(plan), cases.labels_of(plan)), forward)
    kept, let_go = ([(name, on) for name in ("set_requires_gradient_sync", "set_reshard_after_forward",
                                             "set_reshard_after_backward")] for on in (False, True))
    own = [] if self.rank == 3 else [(0, True)]
    assert said == [*kept, (-1, False), *own, *let_go, (-1, True)], said
    for parameter in net.parameters():  # FSDP2 takes the mean over ranks
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= RANKS
    _, expected = self.gradients(plan, ht.HDP(time_limit=LIMIT_S))
    assert cases.relative(cases.gradients(net), expected) < 1e-12

    hdp.prepare(net, gather="micro_batch")
    raises(ht.Refused, "hdpsim.Planner(..., waves=1)",
           lambda: hdp.run(ht.make_batch(plan, self.rank, cases.tokens_of(plan)), forward))
    said.clear()
    plan = hdpsim.Planner(cases.study(), "hdp-naive", waves=1).plan([20, 30, 9, 4, 7])
    hdp.run(ht.make_batch(plan, self.rank, cases.tokens_of(plan)), forward)
    everyones = [None] * RANKS
    dist.all_gather_object(everyones, [on for _, on in said])
    assert everyones.count(everyones[0]) == RANKS and said[-2:] == [("set_requires_gradient_sync", True), (-1, True)]

    class FullyShardedDataParallel(torch.nn.Sequential):
        pass
    raises(ht.Unsupported, "fully_shard()", lambda: hdp.prepare(FullyShardedDataParallel(torch.nn.Linear(2, 2))))


# Words.

def what_cannot_run_is_refused_by_all_ranks_before_the_step(self):
    hdp = ht.HDP(time_limit=LIMIT_S)
    net = cases.Llama(hdp.attend)
    called = []

    def forward(part):
        called.append(part)
        return forward_of(net)(part)

    def batch(text, rank=self.rank):
        plan = hdpsim.Plan.parse(text)
        return ht.make_batch(plan, rank, cases.tokens_of(plan))
    hand = self.plans["by hand"]
    raises(ht.Refused, "HDP.prepare(model)", lambda: hdp.run(batch(hand), forward))
    hdp.prepare(net, context=16)
    raises(ht.Refused, "a sequence of 17 tokens, the model takes 16", lambda: hdp.run(batch(hand), forward))
    hdp.prepare(net)
    five = hand.replace('"ranks": 4', '"ranks": 5').replace("[]]", "[], []]")
    raises(ht.Refused, "the plan is for 5 ranks, the group has 4", lambda: hdp.run(batch(five), forward))
    other = hand if self.rank != 2 else hand.replace('"step": 3', '"step": 4')
    raises(ht.Refused, "the plan of rank 2 is not that of rank 0", lambda: hdp.run(batch(other), forward))
    raises(ht.Refused, "rank 1: the batch is that of rank 0, this is rank 1",
           lambda: hdp.run(batch(hand, 0 if self.rank == 1 else self.rank), forward))
    raises(ht.Refused, "keys travel by 'burst'",
           lambda: hdp.run(batch(hand.replace("plan/1", "plan/2").replace('"layers": 4', '"layers": 4, "exchange": "burst"')),
                           forward))
    raises(ht.Refused, "2 layers are known", lambda: hdp.run(batch(hand.replace('"group"', '"offload": 0.5, "group"')),
                                                             forward))
    short = cases.by_hand(sequences=[1], micro_batches=[{"group": [0], "spans": [0]}], schedule=[[0], [], [], []])
    raises(ht.Refused, "no counted label", lambda: hdp.run(batch(short), forward))
    raises(ht.Unsupported, "needs a GPU", lambda: ht.HDP(attention="flash_attn").prepare(net))
    raises(ValueError, "choose one of auto, plain", lambda: ht.HDP(attention="fast").prepare(net))
    raises(RuntimeError, "outside of HDP.run()", lambda: hdp.attend(*[torch.zeros(3, 2, 4)] * 3))
    assert not called
    # All of that left the ranks together: the next step runs.
    assert hdp.run(batch(hand), forward) > 0


def ranges_name_step_micro_batch_and_pass(self):
    plan = hdpsim.Plan.parse(self.plans["by hand"])
    hdp = ht.HDP(time_limit=LIMIT_S)
    net = cases.Llama(hdp.attend)
    hdp.prepare(net)
    with tempfile.TemporaryDirectory() as folder:
        with trace.profile(folder, rank=self.rank, steps=[1]) as running:
            for _ in range(3):
                hdp.run(ht.make_batch(plan, self.rank, cases.tokens_of(plan)), forward_of(net))
                running.step(plan)
        assert os.path.exists(os.path.join(folder, "plan-step1.json")) == (self.rank == 0)
        assert [path.name for path in running.files] == [f"rank{self.rank}-step1.json.gz"]
        import gzip
        text = gzip.open(running.files[0], "rt").read()
    passes = ["3/0/forward", "3/0/backward", "attention/forward", "attention/backward", "exchange"]
    for name in (f"3/rank/{self.rank}", "3/reduce", *(passes if self.rank != 3 else [])):
        assert f'"hdpsim:{name}"' in text, name


def ranges_within_a_pass_cost_nothing_without_a_profiler(self):
    assert trace.detail("exchange") is trace.detail("attention/forward")  # a context that does nothing
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        assert trace.detail("exchange") is not trace.detail("exchange")


CHECKS = [gradients_of_every_policy_are_those_of_one_process, gradients_are_the_same_however_keys_travel,
          gradients_are_the_same_however_many_ranks_trade_heads, trades_send_what_they_must,
          mistakes_show_in_the_gradients, one_row_a_rank_gives_padding_no_gradient,
          dropout_in_chunks_that_run_twice_drops_the_same, activation_checkpointing_of_the_user_works,
          offload_moves_its_share_and_changes_nothing, several_optimizer_steps_of_one_batch,
          evaluation_gives_the_loss_without_gradients, twenty_steps_of_adam_are_those_of_one_process,
          each_rank_reads_its_own_tokens_and_every_sequence_comes_once, a_model_in_ddp_trains_the_same,
          fsdp_gathers_and_reduces_once_a_step, what_cannot_run_is_refused_by_all_ranks_before_the_step,
          ranges_name_step_micro_batch_and_pass, ranges_within_a_pass_cost_nothing_without_a_profiler]


def all_checks(rank, port, plans, only):
    join(rank, port)
    self = Rank(rank, plans)
    for check in CHECKS:
        if not only or only in check.__name__:
            begin = time.perf_counter()
            check(self)
            dist.barrier()
            if rank == 0:
                print(f"{time.perf_counter() - begin:6.1f} s  {check.__name__.replace('_', ' ')}", flush=True)
    for name in ("fp64, as planned", "float64, ring", "float64, all_gather", "float64, group_cast", "float64, a2a",
                 "float32, ring", "float32, all_gather", "float32, group_cast", "float32, a2a", "20 steps of Adam"):
        worst = everywhere(self.worst.get(name, 0))
        if rank == 0:
            print(f"          worst relative error, {name}: {worst:.1e}", flush=True)
    dist.destroy_process_group()


def ranks_that_leave(rank, port, plans, how):
    """The others say which, and where everybody was, within the time limit."""
    join(rank, port)
    hdp = ht.HDP(time_limit=LIMIT_S)
    net = cases.Llama(hdp.attend)
    hdp.prepare(net)
    if how == "hangs":  # others break the connection, which needs no limit
        hdp.watch.limit_s = 6
    plan = hdpsim.Plan.parse(plans["by hand"])
    leaver = 1

    def forward(part):
        if rank == leaver and how in ("dies", "has gone"):
            os._exit(0)
        if how == "has gone":  # before the others start a message, in place of while they wait for one
            time.sleep(2)
        if rank == leaver and how == "hangs":
            time.sleep(16)
            os._exit(0)
        if rank == leaver:
            raise ValueError("a mistake of the user")
        return forward_of(net)(part)
    begin = time.perf_counter()
    try:
        hdp.run(ht.make_batch(plan, rank, cases.tokens_of(plan)), forward)
    except ht.Stuck as error:
        text = str(error)
        assert time.perf_counter() - begin < 40, "that took long"
        said = {"dies": "(no sign of life for ",
                "has gone": "(no sign of life for ",
                "hangs": "rank 1: step 3, micro-batch 0, forward",
                "raises": "rank 1: FAILED in step 3, micro-batch 0, forward: ValueError: a mistake of the user"}[how]
        assert "rank 1: " in text and said in text or "the store does not answer" in text, text
        assert said in text or rank != 0, text  # the store goes with rank 0, perhaps before the others saw why
        if rank == 2:
            print(f"({how}) {text}", flush=True)
    except ValueError:
        assert rank == leaver and how == "raises"
    else:
        raise AssertionError("a step without a rank")
    os._exit(0)


def join(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(function, *arguments):
    """Four processes, which share what this one has imported."""
    processes.start_processes(function, (free_port(), *arguments), nprocs=RANKS, start_method="fork")


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    begin = time.perf_counter()
    plans = {}
    for seed in range(12):
        plans[f"random {seed}"] = cases.random_plan(seed)
    for seed in (1, 2):  # each for every other policy
        found, refused = cases.plans_of(seed, cases.POLICIES[seed % 2::2])
        plans.update({f"{name}:{seed}": text for name, text in found.items()})
        print(f"batch {seed}: {len(found)} policies planned it, refused by {', '.join(refused) or 'none'}", flush=True)
    plans.update({"by hand": cases.by_hand(), "trades": cases.trades_by_hand(), "per_pack": cases.cut_by_hand("per_pack"),
                  "dispatch": cases.cut_by_hand("dispatch"), "chunks": cases.chunks_by_hand(),
                  "served": cases.cut_by_hand("served", moved=[[0, 10, 8, 0], [3, 2, 20, 3]])})
    print(f"{time.perf_counter() - begin:6.1f} s  {len(plans)} plans", flush=True)
    start(all_checks, plans, only)
    for how in ("dies", "has gone", "hangs", "raises"):
        if not only or only == how:
            start(ranks_that_leave, plans, how)


if __name__ == "__main__":
    main()
