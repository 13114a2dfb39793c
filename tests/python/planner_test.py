#!/usr/bin/env python3
# usage: planner_test.py HDPSIM SOURCE_FOLDER
#
# Plans of a live run beside those that the program writes for a study with the same lengths.
import json
import multiprocessing
import os
import pickle
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

program, source = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve()
import hdpsim  # noqa: E402

# Every policy, with an option where the plan would otherwise be searched for in simulated steps.
POLICIES = ["static", "hdp-naive", {"hdp-balance": {"search": "none"}}, "hdp-balance", {"wlb": {"outliers": "none"}},
            *(name for name in hdpsim.names("plans") if name not in ("static", "hdp-naive", "hdp-balance", "wlb"))]
CONTEXT = 4096


def study_of(lengths=(CONTEXT,), **changes):
    return {
        "name": "live",
        "cluster": {"preset": "a100-rail-3tier", "gpus": 8},
        "model": {"preset": "llama-7b"},
        "profile": "bytescale-implied",
        "data": {"lengths": lengths if isinstance(lengths, dict) else list(lengths), "context": CONTEXT,
                 "tokens_per_step": sum(lengths) if not isinstance(lengths, dict) else 65536, "steps": 1},
        "mesh": {"hdp": 8, "capacity": 1024},
        "plans": ["static"],
        **changes,
    }


def lengths_of(seed, count=40, longest=CONTEXT):
    draw = random.Random(seed)
    return [min(longest, max(1, int(draw.lognormvariate(6, 1.2)))) for _ in range(count)]


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def plan_of_program(self, study, step=0):
        """What ``hdpsim plan`` writes, or what it says instead."""
        Path("study.json").write_text(json.dumps(study))
        done = subprocess.run([program, "plan", "study.json", "--step", str(step)], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else done.stderr


class Same(InFolder):
    def test_plans_are_those_of_the_program_for_the_same_lengths_byte_for_byte(self):
        for policy in POLICIES:
            for seed in (1, 2):
                with self.subTest(policy=policy, seed=seed):
                    lengths = lengths_of(seed)
                    Path("lengths.txt").write_text("".join(f"{tokens}\n" for tokens in lengths))
                    data = {"lengths": {"file": "lengths.txt", "order": "file"}, "context": CONTEXT,
                            "tokens_per_step": sum(lengths), "steps": 1}
                    study = study_of({"preset": "github"}, plans=[policy])
                    expected = self.plan_of_program({**study, "data": data})
                    try:
                        found = hdpsim.Planner(study, policy).plan(lengths).json()
                    except hdpsim.InputError as refused:
                        self.assertIn(refused.problems[0].message, expected)
                        continue
                    self.assertEqual(found, expected)

    def test_sequences_are_planned_as_they_are(self):
        lengths = [700, 4096, 1, 1, 300]
        plan = hdpsim.Planner(study_of()).plan(lengths)
        self.assertEqual(plan.lengths, lengths)
        self.assertIsNone(plan.ids)
        self.assertGreater(plan.estimate_s, 0)

    def test_ids_come_back_in_the_order_of_the_lengths(self):
        ids = [17, "17", -1, "a \"name\"", 2**62]
        plan = hdpsim.Planner(study_of()).plan([5, 4, 3, 2, 1], ids=ids)
        self.assertEqual(plan.ids, ids)
        self.assertEqual(hdpsim.Plan.parse(plan.json()).ids, ids)

    def test_a_policy_that_the_study_lacks_is_planned_by_as_well(self):
        planner = hdpsim.Planner(study_of(), {"static": {"cp": 4}})
        self.assertEqual({len(batch.group) for batch in planner.plan([4096, 10]).micro_batches}, {4})
        self.assertEqual(hdpsim.Planner(study_of(compare_to="static"), "hdp-naive").policy, "hdp-naive")

    def test_steps_count_on_and_can_be_stated(self):
        planner = hdpsim.Planner(study_of(), "static")
        self.assertEqual([planner.plan([9]).step, planner.plan([9]).step, planner.plan([9], step=7).step,
                          planner.plan([9]).step], [0, 1, 7, 8])


class Wrong(unittest.TestCase):
    def refusal(self, *arguments, planner=None, **named):
        with self.assertRaises(hdpsim.InputError) as raised:
            (planner or hdpsim.Planner(study_of(), "static")).plan(*arguments, **named)
        return str(raised.exception)

    def test_what_the_pool_cannot_hold_is_told_with_its_sequence(self):
        self.assertIn("sequence 1 has 4097 tokens, the longest of this study has 4096", self.refusal([1, 4097]))
        self.assertIn("sequence 0 has 0 tokens", self.refusal([0]))

    def test_ids_are_one_a_sequence_and_each_once(self):
        self.assertIn("1 ids of 2 sequences", self.refusal([1, 2], ids=["a"]))
        self.assertIn("the id 'a' is there twice", self.refusal([1, 2], ids=["a", "a"]))

    def test_a_refused_batch_leaves_the_planner_as_it_was(self):
        planner = hdpsim.Planner(study_of(), "static")
        self.refusal([4097], planner=planner)
        self.assertEqual(planner.plan([1]).step, 0)

    def test_lengths_are_whole_numbers(self):
        with self.assertRaises(TypeError):
            hdpsim.Planner(study_of(), "static").plan([1.5])

    def test_a_study_that_is_wrong_is_told_as_by_run(self):
        with self.assertRaises(hdpsim.InputError) as raised:
            hdpsim.Planner(study_of(mesh={"hdq": 8}))
        self.assertIn("did you mean 'hdp'?", str(raised.exception))


class Held(unittest.TestCase):
    """wlb, which holds long sequences back until there is one for every micro-batch."""

    WLB = {"wlb": {"outliers": [1024]}}

    def planner(self):
        return hdpsim.Planner(study_of({"preset": "github"}), self.WLB)

    def test_each_sequence_is_trained_once_and_ids_say_when(self):
        planner = self.planner()
        self.assertTrue(planner.holds_back)
        arrived, trained, waited = [], [], False
        for step in range(20):
            lengths = lengths_of(step)
            ids = [f"{step}-{place}" for place in range(len(lengths))]
            plan = planner.plan(lengths, ids)
            arrived += zip(ids, lengths)
            trained += zip(plan.ids, plan.lengths)
            self.assertEqual(sorted(planner.held), sorted(set(name for name, _ in arrived) - set(dict(trained))))
            waited = waited or bool(planner.held)
        self.assertTrue(waited)
        while planner.held:
            plan = planner.plan([])
            trained += zip(plan.ids, plan.lengths)
        self.assertEqual(sorted(trained), sorted(arrived))

    def test_without_ids_sequences_have_the_names_of_their_steps_and_places(self):
        planner = self.planner()
        plan = planner.plan([10, 2000, 20])
        self.assertEqual((plan.ids, planner.held), (["0/2", "0/0"], ["0/1"]))  # longest first
        self.assertEqual(planner.plan([30]).ids, ["1/0"])

    def test_a_planner_goes_on_from_its_state_and_in_another_process(self):
        first = self.planner()
        for step in range(3):
            first.plan(lengths_of(step))
        state = json.loads(json.dumps(first.state_dict()))
        second = self.planner()
        second.load_state_dict(state)
        third = pickle.loads(pickle.dumps(first))
        with multiprocessing.get_context("spawn" if os.name == "nt" else "fork").Pool(1) as pool:
            apart = pool.apply(planned, (first, lengths_of(3)))
        expected = first.plan(lengths_of(3))
        for other in (second, third):
            self.assertEqual(other.plan(lengths_of(3)), expected)
            self.assertEqual(other.held, first.held)
        self.assertEqual(apart, expected)

    def test_a_state_of_another_planner_is_refused(self):
        state = self.planner().state_dict()
        for changed in ({**state, "policy": "static"}, {**state, "hash": "0"}, {**state, "step": "0"}, {},
                        {**state, "left": [["a", 0]]}, {**state, "left": [["a", 1], ["a", 1]]}):
            with self.subTest(state=changed), self.assertRaises(hdpsim.InputError):
                self.planner().load_state_dict(changed)


def planned(planner, lengths):
    return planner.plan(lengths)


class Waves(unittest.TestCase):
    def test_every_rank_runs_as_many_micro_batches_and_each_at_the_same_place(self):
        study = study_of({"preset": "github"})
        lengths = lengths_of(5)
        self.assertFalse(hdpsim.Planner(study, "hdp-naive").plan(lengths).waves)
        plan = hdpsim.Planner(study, "hdp-naive", waves=16).plan(lengths)
        self.assertTrue(plan.waves)
        self.assertEqual(len({len(plan.schedule(rank)) for rank in range(plan.ranks)}), 1)
        self.assertEqual({batch.padding for batch in plan.micro_batches if not batch.spans}, {16})


class Live(unittest.TestCase):
    def test_two_threads_plan_at_once(self):
        planner = hdpsim.Planner(study_of(), "hdp-naive")
        batches = [lengths_of(seed) for seed in range(20)]
        expected = [planner.plan(lengths, step=0) for lengths in batches]
        found = [[], []]

        def plan_all(into):
            into.extend(planner.plan(lengths, step=0) for lengths in batches)

        threads = [threading.Thread(target=plan_all, args=(into,)) for into in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected, expected])

    def test_a_pool_of_512_ranks_is_planned_in_milliseconds_and_without_end(self):
        study = study_of({"preset": "github"}, cluster={"preset": "a100-rail-3tier", "gpus": 512},
                         mesh={"hdp": 512, "capacity": 4096})
        for policy in ("static", "hdp-naive", {"hdp-balance": {"search": "none"}}):
            with self.subTest(policy=policy):
                planner = hdpsim.Planner(study, policy)
                batches = [lengths_of(seed, count=4096) for seed in range(4)]
                spent = []
                for step in range(200):
                    if step == 20:
                        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                    begin = time.thread_time()  # others may use the machine
                    planner.plan(batches[step % len(batches)])
                    spent.append(time.thread_time() - begin)
                grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
                median = sorted(spent)[len(spent) // 2]
                print(f"{policy}: {median * 1e3:.1f} ms of processor time a plan, {grown_kib} KiB more", file=sys.stderr)
                self.assertLess(median, 0.1)  # 20 ms on a quiet machine; this one may be emulated
                self.assertLess(grown_kib, 16 * 1024)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
