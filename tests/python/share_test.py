#!/usr/bin/env python3
# usage: share_test.py HDPSIM SOURCE_FOLDER
#
# What each rank holds of a plan: the cut of `execute`, told again from the words of configs/studies/PLANS.md.
import collections
import json
import os
import pickle
import random
import re
import subprocess
import sys
import unittest
from pathlib import Path

program, source = sys.argv[1], Path(sys.argv[2])

try:
    import numpy
except ImportError as missing:
    # The Python of the build may have none, and that of the distribution be of the same version.
    usual = "/usr/bin/python3"
    code = f"import sys, numpy; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"
    if sys.executable != usual and subprocess.run([usual, "-c", code], capture_output=True).returncode == 0:
        os.execv(usual, [usual, *sys.argv])
    print(f"NOT RUN: {missing} (Debian: apt-get install python3-numpy)", file=sys.stderr)
    sys.exit(77)
import hdpsim  # noqa: E402


def plan_text(ranks, lengths, micro_batches, **more):
    """A plan by hand: micro-batches run in their order."""
    schedule = [[] for _ in range(ranks)]
    for index, micro_batch in enumerate(micro_batches):
        for rank in micro_batch["group"]:
            schedule[rank].append(index)
    return json.dumps({"schema": "hdpsim.plan/2", "policy": "hand", "step": 0, "ranks": ranks, "capacity": 1 << 30,
                       "layers": 4, "sequences": lengths, "micro_batches": micro_batches, "schedule": schedule, **more})


def random_plan(draw):
    """A sound plan: groups of one to all ranks in any order, with spans of sequences that are cut anywhere."""
    ranks = draw.randint(1, 5)
    lengths = [draw.randint(1, 60) for _ in range(draw.randint(1, 8))]
    spans = []
    for sequence, tokens in enumerate(lengths):
        cuts = sorted({0, tokens, *(draw.randint(0, tokens) for _ in range(draw.randint(0, 2)))})
        spans += [[sequence, begin, end - begin] for begin, end in zip(cuts, cuts[1:])]
    draw.shuffle(spans)
    micro_batches = []
    while spans:
        group = draw.sample(range(ranks), draw.randint(1, ranks))
        own = [spans.pop() for _ in range(min(len(spans), draw.randint(1, 4)))]
        cuts = ["per_document", "per_pack", "dispatch"]
        if sum(tokens for _, _, tokens in own) >= 2 * len(group):
            cuts.append("served")
        cut = draw.choice(cuts) if len(group) > 1 else "per_document"
        micro_batch = {"group": group, "spans": own, "cut": cut}
        if len(group) > 1 and cut == "per_document" and spans and draw.random() < 0.5:
            micro_batch["local"] = [{"rank": draw.choice(group), "spans": [spans.pop()]}]
        micro_batches.append(micro_batch)
    return plan_text(ranks, lengths, micro_batches)


# The rules of the page in Python: the ranges of the spans of a micro-batch that each member of its group holds.

def parts(tokens, ranks, first):
    """2N parts of a span; the remainder goes to ranks in turn, first to their first parts, then to their second ones."""
    sizes = [tokens // (2 * ranks)] * (2 * ranks)
    for i in range(tokens % (2 * ranks)):
        rank = (first + i) % ranks
        sizes[rank if i < ranks else 2 * ranks - 1 - rank] += 1
    return sizes, (first + tokens % (2 * ranks)) % ranks


def chunks_of_pack(lengths, sizes):
    """The ranges of documents in consecutive chunks of the pack."""
    tokens = [(document, place) for document, length in enumerate(lengths) for place in range(length)]
    begin = 0
    for size in sizes:
        yield tokens[begin:begin + size]
        begin += size


def held_tokens(spans, ranks, cut):
    """By member, the (span, place in it) pairs that it holds."""
    lengths = [tokens for _, _, tokens in spans]
    held = [[] for _ in range(ranks)]
    if cut == "per_document" or ranks == 1 or (cut == "per_pack" and len(lengths) == 1):
        first = 0
        for span, tokens in enumerate(lengths):
            sizes, first = parts(tokens, ranks, first)
            for part, chunk in enumerate(chunks_of_pack([tokens], sizes)):
                held[min(part, 2 * ranks - 1 - part)] += [(span, place) for _, place in chunk]
        return held
    total = sum(lengths)
    if cut == "dispatch":
        size = max(1, -(-total // (8 * ranks)))
        each = -(-total // (size * ranks))
        chunks = list(chunks_of_pack(lengths, [size] * (each * ranks)))
        pairs = [sum(place + 1 for _, place in chunk) for chunk in chunks]
        loads, counts = [0] * ranks, [0] * ranks
        for chunk in sorted(range(len(chunks)), key=lambda chunk: (-pairs[chunk], -chunk)):
            rank = min((rank for rank in range(ranks) if counts[rank] < each), key=lambda rank: (loads[rank], rank))
            held[rank] += chunks[chunk]
            loads[rank] += pairs[chunk]
            counts[rank] += 1
        return [sorted(tokens) for tokens in held]
    sizes = [total // (2 * ranks) + (part < total % (2 * ranks)) for part in range(2 * ranks)]
    for part, chunk in enumerate(chunks_of_pack(lengths, sizes)):
        held[min(part, 2 * ranks - 1 - part) if cut == "per_pack" else part % ranks] += chunk
    return held


def tokens_of(pieces):
    return [(span, place) for span, begin, end in zip(pieces.span.tolist(), pieces.begin.tolist(), pieces.end.tolist())
            for place in range(begin, end)]


class Shares(unittest.TestCase):
    def test_shares_of_random_plans_are_what_the_page_says_and_their_union_is_the_batch(self):
        for seed in range(300):
            with self.subTest(seed=seed):
                plan = hdpsim.Plan.parse(random_plan(random.Random(seed)))
                seen = collections.Counter()
                for rank in range(plan.ranks):
                    for share in plan.share(rank):
                        batch = share.facts
                        held = held_tokens(batch.spans, share.cp_size, share.cut)
                        self.assertEqual(share.group[share.cp_rank], rank)
                        for member, pieces in enumerate(share.members):
                            first = [begin for _, begin, _ in batch.spans]
                            self.assertEqual([(span, place - first[span]) for span, place in tokens_of(pieces)],
                                             sorted(held[member]))
                        seen.update(zip(share.sequence_ids.tolist(), share.position_ids.tolist()))
                expected = {(sequence, place) for sequence, tokens in enumerate(plan.lengths) for place in range(tokens)}
                self.assertEqual(set(seen), expected)
                self.assertEqual(set(seen.values()), {1})

    def test_arrays_of_a_share_agree(self):
        for seed in range(50):
            plan = hdpsim.Plan.parse(random_plan(random.Random(seed)))
            for share in (share for rank in range(plan.ranks) for share in plan.share(rank)):
                pieces = share.pieces
                rows = (pieces.end - pieces.begin).tolist()
                self.assertTrue(all(rows))
                self.assertEqual(share.cu_seqlens.tolist(), [sum(rows[:i]) for i in range(len(rows) + 1)])
                self.assertEqual(share.cu_seqlens.dtype, numpy.int32)
                self.assertEqual((share.max_seqlen, share.tokens), (max(rows, default=0), sum(rows)))
                places = [place for begin, end in zip(pieces.begin, pieces.end) for place in range(begin, end)]
                self.assertEqual(share.position_ids.tolist(), places)
                own = tokens_of(share.members[share.cp_rank]) + tokens_of(share.local)
                self.assertEqual(tokens_of(pieces), own)
                self.assertTrue((pieces.span_begin <= pieces.begin).all() and (pieces.end <= pieces.span_end).all())

    def test_queries_that_move_have_their_holders(self):
        # Four parts of ten tokens: members 0, 1, 0, 1. Sequence 0 begins the pack.
        text = plan_text(2, [40], [{"group": [1, 0], "spans": [0], "cut": "served", "moved": [[0, 5, 3, 0], [0, 18, 2, 1]]}])
        share = hdpsim.Plan.parse(text).share(0)[0]
        self.assertEqual(share.exchange, "servers")
        self.assertEqual(share.moved.tolist(), [[0, 5, 3, 0, 1], [0, 18, 2, 1, 0]])

    def test_chunks_see_the_keys_before_them(self):
        text = plan_text(1, [10], [{"group": [0], "spans": [[0, 0, 6]]},
                                   {"group": [0], "spans": [[0, 6, 4]], "continues": True}])
        first, second = hdpsim.Plan.parse(text).share(0)
        self.assertEqual((first.earlier_keys, second.earlier_keys, second.continues), (0, 6, True))

    def test_a_rank_without_work_has_no_share(self):
        plan = hdpsim.Plan.parse(plan_text(2, [4], [{"group": [1], "spans": [0]}]))
        self.assertEqual(plan.share(0), [])
        with self.assertRaises(ValueError):
            plan.share(2)

    def test_plans_and_shares_can_be_sent_to_other_processes(self):
        plan = hdpsim.Plan.parse(random_plan(random.Random(3)))
        again, shares = pickle.loads(pickle.dumps((plan, plan.share(0))))
        self.assertEqual(again, plan)
        self.assertEqual([share.position_ids.tolist() for share in shares],
                         [share.position_ids.tolist() for share in plan.share(0)])


class Page(unittest.TestCase):
    """The worked example of configs/studies/PLANS.md."""

    def test_the_example_is_a_plan_whose_shares_are_those_of_its_table(self):
        text = (source / "configs/studies/PLANS.md").read_text()
        plan = hdpsim.Plan.parse(re.search(r"```json\n(.*?)```", text, re.S)[1])
        table = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) of (\d+) \| (.*?) \| (.*?) \|$", text, re.M)
        found = []
        for rank in range(plan.ranks):
            for share in plan.share(rank):
                rows = ", ".join(f"{plan.ids[sequence]}[{begin}:{end}]" for sequence, begin, end in
                                 zip(share.pieces.sequence, share.pieces.begin, share.pieces.end))
                place = (str(rank), str(share.micro_batch), str(share.cp_rank), str(share.cp_size))
                found.append((*place, rows, str(share.cu_seqlens.tolist())[1:-1]))
        self.assertEqual(found, table)
        self.assertEqual(sum(tokens - 1 for tokens in plan.lengths), int(re.search(r"divides by (\d+)", text)[1]))
        self.assertEqual([[plan.world_rank(rank, stage, shard) for shard in range(plan.tp)]
                          for rank in range(plan.ranks) for stage in range(plan.pp)],
                         [[2 * rank, 2 * rank + 1] for rank in range(plan.ranks)])

    def test_every_key_of_the_schema_is_on_the_page(self):
        text = (source / "configs/studies/PLANS.md").read_text()
        schema = json.loads((source / "configs/schemas/plan.schema.json").read_text())
        batches = schema["properties"]["micro_batches"]["items"]["properties"]
        for key in (*schema["properties"], *batches):
            self.assertIn(f"`{key}`", text)
        for words in (batches["cut"]["enum"], schema["properties"]["exchange"]["enum"]):
            for word in words:
                self.assertIn(f"`{word}`", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
