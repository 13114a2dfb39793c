"""The parts of hdpsim.torch in one process: which queries see which keys, the plain kernel, batches, the loader's files,
messages of errors, adapters against pretended libraries. Needs PyTorch."""

import os
import tempfile
import time
import types
from datetime import timedelta

import torch_needed  # noqa: F401  before torch
import torch
import torch_cases as cases

import hdpsim
import hdpsim.torch as ht
from hdpsim.torch import kernels, pieces, versions, watch
from hdpsim.torch.adapters import megatron, torchtitan, transformer_engine, transformers

cpu = torch.device("cpu")


def random_rows(generator, spans, whole):
    """Pieces of spans in any order, one behind the other in rows; or all of their tokens."""
    rows, row = [], 0
    for span in spans:
        borders = sorted({0, 40, *torch.randint(0, 41, (4,), generator=generator).tolist()})
        for begin, end in zip(borders, borders[1:]):
            if whole or torch.rand(1, generator=generator) < 0.5:
                rows.append(pieces.Rows(span, begin, end, row))
                row += end - begin
    return rows


def squares_and_rectangles_are_the_causal_mask():
    """300 random sets of pieces: each pair of a query and a key that the mask allows is in one problem, once."""
    generator = torch.Generator().manual_seed(1)
    for case in range(300):
        queries = random_rows(generator, [0, 1, 2], whole=False)
        keys = queries if case % 3 == 0 else random_rows(generator, [2, 0, 3], whole=case % 3 == 1)
        seen = torch.zeros(pieces.total(queries), pieces.total(keys), dtype=torch.int64)
        for block in pieces.blocks(queries, keys, cpu):
            q, k = (torch.arange(200)[rows] for rows in (block.q_rows, block.k_rows))
            for q0, q1, k0, k1 in zip(block.cu_q, block.cu_q[1:], block.cu_k, block.cu_k[1:]):
                mask = torch.ones(q1 - q0, k1 - k0, dtype=torch.int64)
                seen[q[q0:q1, None], k[k0:k1]] += mask.tril() if block.causal else mask
                assert not block.causal or q1 - q0 == k1 - k0
        expected = [[int(a.span == b.span and j <= i) for b in keys for j in range(b.begin, b.end)]
                    for a in queries for i in range(a.begin, a.end)]
        assert seen.tolist() == (expected or seen.tolist()), f"case {case}"


def the_plain_kernel_is_attention_whatever_its_tiles():
    """Output, log-sum-exp and gradients of a square and a rectangle against autograd of all scores at once."""
    torch.manual_seed(2)
    problems = {True: ([[(0, 9)], [(9, 30)]], [[(0, 9)], [(9, 30)]]), False: ([[(0, 5)], [(5, 30)]], [[(0, 3)], [(3, 50)]])}
    for causal, (queries, keys) in problems.items():
        block = pieces.Blocks(pieces.Problems(causal, queries, keys), cpu)
        q, k, v = (torch.randn(n, heads, dim, dtype=torch.float64, requires_grad=True)
                   for n, heads, dim in ((30, 6, 8), (block.cu_k[-1], 2, 8), (block.cu_k[-1], 2, 5)))
        seen = torch.zeros(30, block.cu_k[-1], dtype=torch.bool)
        for q0, q1, k0, k1 in zip(block.cu_q, block.cu_q[1:], block.cu_k, block.cu_k[1:]):
            mask = torch.ones(q1 - q0, k1 - k0, dtype=torch.bool)
            seen[q0:q1, k0:k1] = mask.tril() if causal else mask
        wide_k, wide_v = (x.repeat_interleave(3, dim=1) for x in (k, v))
        scores = (torch.einsum("qhd,khd->hqk", q, wide_k) * 0.3).masked_fill(~seen, float("-inf"))
        expected = torch.einsum("hqk,khd->qhd", scores.softmax(-1), wide_v)
        dout = torch.randn_like(expected)
        gradients = torch.autograd.grad(expected, (q, k, v), dout)
        for most in (1, 1 << 20):
            kernel = kernels.Plain(most)
            with torch.no_grad():
                out, lse = kernel.forward(q, k, v, block, 0.3)
                parts = kernel.backward(dout, q, k, v, out, lse, block, 0.3)
            assert (out - expected).abs().max() < 1e-14
            assert (lse - scores.logsumexp(-1)).abs().max() < 1e-14
            for part, gradient in zip(parts, gradients):
                assert (part - gradient).abs().max() < 1e-13


def half_precision_has_sums_of_single_precision():
    block = pieces.Blocks(pieces.Problems(True, [[(0, 64)]], [[(0, 64)]]), cpu)
    torch.manual_seed(3)
    q, k, v = (torch.randn(64, 2, 16).bfloat16() for _ in range(3))
    out, lse = kernels.Plain().forward(q, k, v, block, 0.25)
    expected, _ = kernels.Plain().forward(q.double(), k.double(), v.double(), block, 0.25)
    assert out.dtype == lse.dtype == torch.float32 and (out - expected).abs().max() < 1e-5


def batches_shift_labels_before_the_cut():
    """Of sequences cut over three ranks, tokens lie as the plan says, and labels are the next tokens of the sequence."""
    plan = hdpsim.Plan.parse(cases.by_hand())
    whole = {i: list(range(100 * i, 100 * i + length)) for i, length in enumerate(plan.lengths)}
    seen = {}
    for rank in range(4):
        batch = ht.make_batch(plan, rank, lambda i, begin, end: whole[i][begin:end])
        assert rank < 3 or not batch.micro_batches
        for part in batch.micro_batches:
            assert part.tokens == part.input_ids.numel() or part.tokens == 0
            assert part.cu_seqlens[-1] == part.input_ids.numel() and part.cu_seqlens.dtype == torch.int32
            assert part.tokens == 0 or part.position_ids.tolist() == part.share.position_ids.tolist()
            for token, place, label in zip(*(x.tolist()[: part.tokens]
                                             for x in (part.input_ids, part.position_ids, part.labels))):
                assert token % 100 == place
                seen[token] = label
    for i, tokens in whole.items():
        assert [seen.pop(token) for token in tokens] == tokens[1:] + [-100]
    assert not seen


def rows_behind_the_end_of_a_sequence_are_in_no_loss():
    plan = hdpsim.Plan.parse(cases.by_hand(
        sequences=[5], schedule=[[0], [], [], []],
        micro_batches=[{"group": [0], "spans": [[0, 0, 8]], "padded": True}]))
    part = ht.make_batch(plan, 0, lambda i, begin, end: torch.arange(begin, end)).micro_batches[0]
    assert part.input_ids.tolist() == [0, 1, 2, 3, 4, 0, 0, 0] and part.labels.tolist() == [1, 2, 3, 4] + [-100] * 4
    assert part.counted == 4


def a_data_set_with_other_lengths_is_an_error():
    plan = hdpsim.Plan.parse(cases.by_hand())
    try:
        ht.make_batch(plan, 0, lambda i, begin, end: [1])
    except ValueError as error:
        assert "the data set gave 1: the plan's length is not that of the data" in str(error)
    else:
        raise AssertionError("it was read")


def plans_of_files_are_read_in_the_order_of_their_numbers():
    """2.json before 10.json; ids are indices; a loader goes on where another one was."""
    lengths = [7, 5, 6, 9]
    data = types.SimpleNamespace(lengths=lengths, tokens=lambda i, begin, end: [i] * (end - begin))
    with tempfile.TemporaryDirectory() as folder:
        for number, index in ((2, 3), (10, 1), (1, 0)):
            text = cases.by_hand(schema="hdpsim.plan/2", sequences=[lengths[index]], ids=[index], step=number,
                                 micro_batches=[{"group": [0], "spans": [0]}], schedule=[[0], [], [], []])
            with open(os.path.join(folder, f"{number}.json"), "w") as file:
                file.write(text)
        pattern = os.path.join(folder, "*.json")
        loader = ht.PlannedLoader.from_files(data, pattern, rank=0)
        taken = iter(loader)
        first = next(taken)
        assert first.plan.step == 1 and first.micro_batches[0].input_ids.tolist() == [0] * 7
        state = loader.state_dict()
        taken.close()
        again = ht.PlannedLoader.from_files(data, pattern, rank=0)
        again.load_state_dict(state)
        assert [batch.plan.step for batch in again] == [2, 10]
        assert [batch.plan.step for batch in again] == [1, 2, 10], "the next epoch"
        lengths[3] = 10
        expect(ValueError, "9 tokens of sequence 3, which has 10 in the data set", lambda: list(loader))
    expect(ValueError, "no plan files", lambda: ht.PlannedLoader.from_files(data, "nowhere/*.json", rank=0))


def expect(kind, text, function):
    try:
        function()
    except kind as error:
        assert text in str(error), f"it says: {error}"
    else:
        raise AssertionError(f"nothing was raised where this was expected: {text}")


def losses_are_sums_over_counted_labels():
    logits, labels = torch.randn(1, 4, 7), torch.tensor([[1, -100, 3, -100]])
    expected = -(logits[0].log_softmax(-1)[0, 1] + logits[0].log_softmax(-1)[2, 3])
    assert abs(ht.loss_sum(logits, labels) - expected) < 1e-5


class Pretended:
    """An HDP whose attention answers with what it got."""

    def attend(self, q, k, v, *, scale=None, layer=None):
        self.got = (q, k, v, scale, layer)
        return q * 2


def adapters_turn_shapes_into_rows():
    """What models of others hand over, [1, heads, T, dim] or [T, 1, heads, dim], arrives as [T, heads, dim]."""
    hdp = Pretended()
    q, k = torch.randn(1, 4, 10, 8), torch.randn(1, 2, 10, 8)
    module = types.SimpleNamespace(layer_idx=3, training=True)
    out, weights = transformers.attention_of(hdp)(module, q, k, k, None, scaling=0.5, is_causal=True)
    assert weights is None and torch.equal(out, 2 * q.transpose(1, 2))
    assert torch.equal(hdp.got[0], q[0].transpose(0, 1)) and hdp.got[3:] == (0.5, 3)
    for wrong in ({"sliding_window": 128}, {"softcap": 30.0}, {"dropout": 0.1}):
        expect(versions.Unsupported, "", lambda: transformers.attention_of(hdp)(module, q, k, k, None, **wrong))
    expect(ValueError, "a batch of 2 rows",
           lambda: transformers.attention_of(hdp)(module, q.expand(2, 4, 10, 8), k, k, None))
    assert torch.equal(torchtitan.InnerAttention(hdp)(q, k, k), 2 * q)
    rows = torch.randn(10, 4, 8)
    assert transformer_engine.DotProductAttention(hdp)(rows, rows, rows).shape == (10, 32)
    core = megatron.CoreAttention.of(hdp)(config=None, layer_number=1)
    assert core(rows.unsqueeze(1), rows.unsqueeze(1), rows.unsqueeze(1), None).shape == (10, 1, 32)
    part = ht.make_batch(hdpsim.Plan.parse(cases.by_hand()), 0, lambda i, begin, end: [0] * (end - begin)).micro_batches[0]
    expect(ValueError, "3 ranks share the micro-batch", lambda: transformer_engine.thd_arguments(part))


def transformers_trains_the_same():
    """A Llama of `transformers` with attention by name against its own eager attention, gradient by gradient."""
    try:
        import transformers as library
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError as error:
        print(f"NOT RUN: a model of transformers: {str(error).splitlines()[0]}")
        return False
    import torch.distributed as dist
    store = tempfile.NamedTemporaryFile()
    dist.init_process_group("gloo", init_method=f"file://{store.name}x", rank=0, world_size=1)
    plan = hdpsim.Plan.parse(cases.by_hand(ranks=1, sequences=[30], micro_batches=[{"group": [0], "spans": [0]}],
                                           schedule=[[0]]))
    ids = torch.randint(0, 61, (30,))
    config = LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, vocab_size=61, max_position_embeddings=64)
    hdp = ht.HDP()
    gradients = []
    for name in ("eager", hdp.attention):
        torch.manual_seed(0)
        config._attn_implementation = name
        model = LlamaForCausalLM(config).double()
        if name == "eager":
            logits = model(input_ids=ids[None]).logits[0]
            torch.nn.functional.cross_entropy(logits[:-1], ids[1:]).backward()
        else:
            hdp.prepare(model)

            def forward(part):
                part = part.batched()
                answer = model(input_ids=part.input_ids, position_ids=part.position_ids, use_cache=False)
                return ht.loss_sum(answer.logits, part.labels)
            hdp.run(ht.make_batch(plan, 0, lambda i, begin, end: ids[begin:end]), forward)
        gradients.append(cases.gradients(model))
    error = cases.relative(gradients[1], gradients[0])
    assert error < 1e-6, f"transformers {library.__version__}: {error}"  # its rotary angles are in fp32
    dist.destroy_process_group()


class PretendedStore(dict):
    """A key-value store of a process group, which goes with its process."""

    gone = False

    def set(self, key, text):
        if self.gone:
            raise RuntimeError("connection reset")
        self[key] = text.encode()

    def get(self, key):
        if self.gone:
            raise RuntimeError("connection reset")
        return self[key]

    def check(self, keys):
        if self.gone:
            raise RuntimeError("connection reset")
        return all(key in self for key in keys)


def a_rank_that_waits_has_heard_the_first_report_when_the_store_goes():
    """Rank 1 dies, rank 0 sees it and leaves, and with it the store: rank 2, which waits for rank 0, can still say why."""
    store = PretendedStore()
    saved = versions.shared_store, versions.waits_with_limit, versions.global_rank, watch.SILENT_S
    versions.shared_store, versions.waits_with_limit = lambda: store, lambda group: True
    versions.global_rank, watch.SILENT_S = lambda group, rank: rank, 0.3
    try:
        first, dead, last = (watch.Watch(None, rank, 3, 60.0) for rank in range(3))
        dead.close()
        time.sleep(0.4)  # dead for longer than SILENT_S
        last._waits_for = "messages from 0"
        report = first.report("messages from 1")
        assert "rank 1: ready (no sign of life for " in report, report
        assert "before that" not in report, report
        last._changed.set()  # its next sign of life, in which it reads what others reported
        for _ in range(100):
            if last._heard:
                break
            time.sleep(0.1)
        store.gone = True
        report = last.report("messages from 0")
        assert "rank 0: not known: the store does not answer" in report, report
        assert "before that:\n    rank 0 waited" in report and "rank 1: ready (no sign of life for " in report, report
    finally:
        versions.shared_store, versions.waits_with_limit, versions.global_rank, watch.SILENT_S = saved
        first.close()
        last.close()


def errors_of_torch_stay_torchs():
    """Its C++ errors are translated beside this module as they are without it."""
    try:
        torch.distributed.TCPStore("localhost", 1, 2, False, timedelta(seconds=0.2))
    except Exception as error:
        assert not isinstance(error, (hdpsim.MachineError, hdpsim.InputError)), repr(error)
    else:
        raise AssertionError("nobody listens, and it came through")


for check in (squares_and_rectangles_are_the_causal_mask, the_plain_kernel_is_attention_whatever_its_tiles,
              half_precision_has_sums_of_single_precision, batches_shift_labels_before_the_cut,
              rows_behind_the_end_of_a_sequence_are_in_no_loss, a_data_set_with_other_lengths_is_an_error,
              plans_of_files_are_read_in_the_order_of_their_numbers, losses_are_sums_over_counted_labels,
              adapters_turn_shapes_into_rows, a_rank_that_waits_has_heard_the_first_report_when_the_store_goes,
              errors_of_torch_stay_torchs, transformers_trains_the_same):
    if check() is not False:
        print(check.__name__.replace("_", " "), flush=True)
