#!/usr/bin/env python3
# usage: hdpsim_test.py HDPSIM SOURCE_FOLDER
#
# The Python module beside the program: the same studies, the same results, the same words.
import contextlib
import csv
import functools
import html
import io
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from pathlib import Path
from unittest import mock

program, source = sys.argv[1], Path(sys.argv[2])
import hdpsim  # noqa: E402

# One study, written in both languages.
yaml = """name: two ways
cluster: {preset: a100-rail-3tier, gpus: 32}
model: {preset: llama-7b}
profile: bytescale-implied
data:
  lengths: {preset: github}
  context: 64Ki
  tokens_per_step: 256Ki
  steps: 2
mesh: {tp: 2}
plans: [static, hdp-balance: {offload: auto}]
sweep: {data.context: [32Ki, 64Ki]}
compare_to: static
"""
study = {
    "name": "two ways",
    "cluster": {"preset": "a100-rail-3tier", "gpus": 32},
    "model": {"preset": "llama-7b"},
    "profile": "bytescale-implied",
    "data": {"lengths": {"preset": "github"}, "context": "64Ki", "tokens_per_step": "256Ki", "steps": 2},
    "mesh": {"tp": 2},
    "plans": ["static", {"hdp-balance": {"offload": "auto"}}],
    "sweep": {"data.context": ["32Ki", "64Ki"]},
    "compare_to": "static",
}


def hdpsim_program(*arguments, folder="."):
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)


class InFolder(unittest.TestCase):
    """A working folder of its own for every test, with the study in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        Path("study.yaml").write_text(yaml)

    def assert_columns_are(self, text, columns):
        """The cells of a CSV file of the program."""
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(list(columns), list(rows[0]))
        for name, cells in columns.items():
            with self.subTest(column=name):
                self.assertEqual(len(cells), len(rows))
                for cell, row in zip(cells, rows):
                    self.assert_same(cell, row[name])

    def assert_same(self, cell, text):
        if isinstance(cell, bool):
            self.assertEqual(text, "true" if cell else "false")
        elif isinstance(cell, int):  # the program writes counts as the study does
            self.assertEqual(cell, int(text.replace("Ki", "")) * (1024 if text.endswith("Ki") else 1))
        elif isinstance(cell, float):
            self.assertEqual(cell, float(text))
        else:
            self.assertEqual(cell or "", text)

    def assert_same_files(self, names):
        for name in names:
            self.assertEqual(Path("module", name).read_bytes(), Path("program", name).read_bytes(), name)


class Results(InFolder):
    def test_a_dictionary_a_text_and_a_file_are_the_same_study_as_the_program_runs(self):
        printed = hdpsim_program("study", "study.yaml", "--format", "json").stdout
        for written in (study, yaml, "study.yaml", Path("study.yaml")):
            with self.subTest(type=type(written)):
                self.assertEqual(hdpsim.run(written).json(), printed)

    def test_columns_hold_the_cells_of_the_programs_tables(self):
        result = hdpsim.run(study, out="out")
        for table in ("runs", "steps", "ranks", "links", "memory"):
            with self.subTest(table=table):
                self.assert_columns_are(Path(f"out/{table}.csv").read_text(), result.columns(table))

    def test_a_refused_run_has_no_figures_and_says_why(self):
        demanding = {"megatron-dp-balanced": {"micro_batches_divided_by": 65536}}
        refused = {**study, "plans": ["static", demanding], "sweep": {}}
        runs = hdpsim.run(refused).columns()
        self.assertEqual(runs["refusal"][0], None)
        self.assertIn("megatron-dp-balanced makes", runs["refusal"][1])
        self.assertEqual(runs["step_time_mean_s"][1], None)
        with self.assertRaises(hdpsim.InputError):
            hdpsim.run({**refused, "plans": [demanding], "compare_to": None})

    def test_columns_have_types(self):
        columns = hdpsim.run(study).columns()
        self.assertEqual(columns["plan"], ["static", "hdp-balance"] * 2)
        self.assertEqual(columns["data.context"], [32 << 10, 32 << 10, 64 << 10, 64 << 10])
        for name, kind in {"gpus": int, "mfu": float, "step_time_mean_s": float, "fits": bool, "versus": str}.items():
            self.assertEqual({type(cell) for cell in columns[name]}, {kind}, name)

    def test_overrides_mean_what_set_means(self):
        sets = ["sweep={}", "plans=[static, {hdp-balance: {delta: 0.2}}]", "data.steps=1"]
        options = [word for each in sets for word in ("--set", each)]
        printed = hdpsim_program("study", "study.yaml", *options, "--without", "contention", "--format", "json").stdout
        result = hdpsim.run("study.yaml", without=["contention"], overrides={
            "sweep": {}, "plans": ["static", {"hdp-balance": {"delta": 0.2}}], "data.steps": 1})
        self.assertEqual(result.json(), printed)

    def test_numbers_of_other_types_are_numbers(self):
        class Count:
            def __index__(self):
                return 2

        self.assertEqual(hdpsim.run({**study, "mesh": {"tp": Count()}}).json(), hdpsim.run(study).json())

    def test_a_result_prints_as_the_programs_table(self):
        self.assertEqual(str(hdpsim.run(study)), hdpsim_program("study", "study.yaml").stdout)

    def test_the_number_of_threads_changes_nothing_and_progress_comes_to_its_end(self):
        seen = []
        one = hdpsim.run(study, jobs=1, progress=lambda done, steps: seen.append((done, steps)))
        self.assertEqual(seen, [(done, 8) for done in range(1, 9)])  # 2 points, 2 plans, 2 steps
        self.assertEqual(one.json(), hdpsim.run(study, jobs=3).json())

    def test_the_page_is_the_programs(self):
        asked = {**study, "output": {"html": True}}
        result = hdpsim.run(asked, out="out")
        result.page("page.html")
        self.assertEqual(Path("page.html").read_bytes(), Path("out/report.html").read_bytes())
        options = ("--set", "output.html=true", "--out", "program")
        self.assertEqual(hdpsim_program("study", "study.yaml", *options).returncode, 0)
        self.assertEqual(Path("page.html").read_bytes(), Path("program/report.html").read_bytes())

    def test_out_is_the_folder_that_the_program_writes_and_resumes(self):
        self.assertEqual(hdpsim_program("study", "study.yaml", "--out", "program").returncode, 0)
        hdpsim.run("study.yaml", out="module")
        again = []
        hdpsim.run("study.yaml", out="program", resume=True, progress=lambda *steps: again.append(steps))
        self.assertEqual(again, [])  # everything was there
        self.assert_same_files(
            ["study.yaml", "result.json", "runs.csv", "steps.csv", "ranks.csv", "links.csv", "memory.csv"])

    def test_the_resolved_study_gives_the_same_results(self):
        result = hdpsim.run(study)
        self.assertEqual(hdpsim.run(result.study).columns(), result.columns())

    def test_frames_are_of_the_library_that_is_there_or_an_error_that_says_so(self):
        result = hdpsim.run(study, overrides={"sweep": {}})
        frames = {name: types.SimpleNamespace(DataFrame=lambda columns, name=name: (name, columns))
                  for name in ("pandas", "polars")}
        for there, wanted, got in ((("pandas", "polars"), None, "pandas"), (("polars",), None, "polars"),
                                   (("pandas", "polars"), "polars", "polars")):
            with mock.patch.dict(sys.modules, {"pandas": None, "polars": None, **{name: frames[name] for name in there}}):
                self.assertEqual(result.frame("steps", wanted), (got, result.columns("steps")))
        with mock.patch.dict(sys.modules, {"pandas": None, "polars": None}):
            with self.assertRaisesRegex(ImportError, "needs pandas or polars.*columns"):
                result.frame()
            with self.assertRaisesRegex(ImportError, "needs polars,"):
                result.frame(library="polars")
        with self.assertRaisesRegex(ValueError, "'panda'.*must be 'pandas' or 'polars'"):
            result.frame(library="panda")

    def test_an_explanation_says_what_the_program_says(self):
        self.assertEqual(hdpsim_program("study", "study.yaml", "--out", "out").returncode, 0)
        result = hdpsim.run("study.yaml")
        self.assertEqual(str(result.explain()), hdpsim_program("explain", "out").stdout)
        one = result.explain("hdp-balance", point=1, step=0)
        options = ("explain", "out", "1/hdp-balance", "--step", "0")
        self.assertEqual(str(one), hdpsim_program(*options).stdout)
        self.assertEqual(one.json(), hdpsim_program(*options, "--format", "json").stdout)
        self.assertEqual([plan["plan"] for plan in one.plans], ["hdp-balance"])
        for wrong in ({"plan": "hdp"}, {"point": 7}, {"step": 2}):
            with self.assertRaises(hdpsim.InputError):
                result.explain(**wrong)

    def test_a_notebook_shows_the_table_and_the_charts(self):
        result = hdpsim.run(study, overrides={"sweep": {}})
        self.assertEqual(html.unescape(result._repr_html_()), f"<pre>{result}</pre>")
        page = result.plot("plotted.html")
        self.assertEqual(Path("plotted.html").read_text(encoding="utf-8"), page.html)
        frame = page._repr_html_()
        [text] = re.findall(r'<iframe srcdoc="([^"]*)"', frame)  # no quote of the page ends it
        self.assertEqual(html.unescape(text), page.html)
        with self.assertRaises(hdpsim.MachineError):
            page.save("nowhere/page.html")

    def test_lengths_may_be_numbers(self):
        numbers = [100 * i for i in range(1, 400)]
        Path("lengths.txt").write_text("".join(f"{number}\n" for number in numbers))
        of_file = {**study, "data": {**study["data"], "lengths": {"file": "lengths.txt"}}}
        wanted = hdpsim.run(of_file).columns()

        class Array:  # what NumPy's arrays and columns of frames have in common
            def __iter__(self):
                return iter(numbers)

        for lengths in (numbers, tuple(numbers), Array()):
            given = {**study, "data": {**study["data"], "lengths": lengths}}
            self.assertEqual(hdpsim.run(given).columns(), wanted)
            self.assertEqual(hdpsim.run(study, overrides={"data.lengths": lengths}).columns(), wanted)
        kept = hdpsim.run(study, overrides={"data.lengths": numbers}, out="out")
        self.assertEqual(Path("out/lengths.txt").read_text(), Path("lengths.txt").read_text())
        self.assertIn(str(Path("out/lengths.txt").resolve()), kept.study)
        self.assertEqual(hdpsim.run("out/study.yaml").columns(), wanted)

    def test_lengths_that_are_no_whole_numbers_are_named(self):
        with self.assertRaisesRegex(TypeError, r"lengths\[1\] is 2.5"):
            hdpsim.run(study, overrides={"data.lengths": [1, 2.5]})
        with self.assertRaisesRegex(TypeError, "not int"):
            hdpsim.replay("study.yaml", trace=7)
        [problem] = hdpsim.check(study, overrides={"data.lengths": [5, -3]})
        self.assertEqual(problem.message, "lengths[1] is -3: a length is a whole number of tokens from 1 to 2^40")
        with self.assertRaisesRegex(hdpsim.InputError, r"lengths\[0\] is 9223372036854775808: "):
            hdpsim.run(study, overrides={"data.lengths": [2**63]})

    def test_truth_values_and_bytes_are_no_lengths(self):
        class Mask:  # as an element of NumPy's or PyTorch's masks
            dtype = "torch.bool"

            def __index__(self):
                return 1

        for lengths, place in (([5, True], r"lengths\[1\] is True"), ([Mask()], r"lengths\[0\] is ")):
            with self.assertRaisesRegex(TypeError, place):
                hdpsim.run({**study, "data": {**study["data"], "lengths": lengths}})
            with self.assertRaisesRegex(TypeError, place):
                hdpsim.replay(study, trace=lengths)
        for lengths in (b"abc", bytearray(b"abc"), memoryview(b"abc")):
            with self.assertRaisesRegex(TypeError, type(lengths).__name__):
                hdpsim.run({**study, "data": {**study["data"], "lengths": lengths}})
            with self.assertRaisesRegex(TypeError, type(lengths).__name__):
                hdpsim.run(study, overrides={"data.lengths": lengths})
            with self.assertRaisesRegex(TypeError, type(lengths).__name__):
                hdpsim.replay(study, trace=lengths)

    def test_iterables_without_an_end_are_refused(self):
        with mock.patch("hdpsim._lengths.MOST_WITHOUT_LENGTH", 1000):
            with self.assertRaisesRegex(hdpsim.InputError, "does it end?"):
                hdpsim.run(study, overrides={"data.lengths": itertools.count(1)})

        def endless(lengths, pool):
            while True:
                yield {"ranks": [0], "sequences": [0]}

        def endless_group(lengths, pool):
            return [{"ranks": [0], "sequences": itertools.repeat(0)}]

        with mock.patch("hdpsim._policies.MOST_ITEMS", 1000):
            for plan in (endless, endless_group):
                with self.assertRaisesRegex(hdpsim.PolicyError, "does this end?"):
                    hdpsim.run({**study, "plans": [hdpsim.policy("mine", plan)], "compare_to": None})

    def test_lengths_are_read_at_random_unless_the_study_keeps_their_order(self):
        rising = list(range(100, 4100))
        half = {"sweep": None, "data.steps": 1}  # a step reads a part of them

        def longest(**order):
            ran = hdpsim.run(study, overrides={**half, "data.lengths": rising, **order})
            return json.loads(ran.json())["runs"][0]["trace"]

        self.assertEqual(longest()["order"], "shuffle")
        kept = longest(**{"data.lengths.order": "file"})
        self.assertEqual(kept["order"], "file")
        self.assertTrue(kept["halves_differ"])

    def test_lengths_of_the_study_and_of_its_overrides_are_not_taken_for_each_other(self):
        short, long = [100] * 50, [4000] * 50
        of_study = {**study, "data": {**study["data"], "lengths": short}}
        wanted = hdpsim.run(study, overrides={"data.lengths": long}).columns()
        self.assertEqual(hdpsim.run(of_study, overrides={"data.lengths": long}, out="both").columns(), wanted)

    def test_policies_whose_names_look_alike_keep_their_own_plans(self):
        def one_rank_each(lengths, pool):
            return [{"ranks": [i % pool.ranks], "sequences": [i]} for i in range(len(lengths))]

        def all_ranks_each(lengths, pool):
            return [{"ranks": list(range(pool.ranks)), "sequences": [i]} for i in range(len(lengths))]

        names = ("a b", "a-b", "a/b", "a%20b", "..", "a" * 300)
        plans = [hdpsim.policy(name, (one_rank_each, all_ranks_each)[i % 2]) for i, name in enumerate(names)]
        several = {**study, "plans": plans, "compare_to": None, "sweep": None}
        columns = [hdpsim.run(several, **out).columns() for out in ({}, {"out": "two_names"})]
        self.assertEqual(columns[0], columns[1])
        self.assertEqual(len(list(Path("two_names/plans").iterdir())), len(names))

    def test_texts_without_a_form_in_utf_8_are_named(self):
        with self.assertRaisesRegex(ValueError, r"study\['name'\]: '\\ud800' has no form in UTF-8"):
            hdpsim.check({**study, "name": "\ud800"})

    def test_a_point_that_is_not_there_is_named(self):
        result = hdpsim.run(study, overrides={"sweep": {}})
        for point in (-1, 7):
            with self.assertRaisesRegex(hdpsim.InputError, f"there is no point {point}"):
                result.explain(point=point)

    def test_the_names_of_what_is_shipped_are_those_that_a_study_can_use(self):
        for cluster in hdpsim.names("clusters"):
            self.assertTrue((source / f"configs/clusters/{cluster}.yaml").exists(), cluster)
        self.assertIn("llama3-8b", hdpsim.names("models"))
        self.assertIn("bytescale-implied", hdpsim.names("profiles"))
        self.assertIn("github", hdpsim.names("lengths"))
        self.assertIn("hdp-balance", hdpsim.names("plans"))
        with self.assertRaisesRegex(ValueError, "'model'.*did you mean 'models'"):
            hdpsim.names("model")

    def test_an_unknown_table_is_an_error_with_the_names(self):
        with self.assertRaisesRegex(ValueError, "no table 'step'.*did you mean 'steps'"):
            hdpsim.run(study).columns("step")


def packed(lengths, pool):
    """Sequences in their order, as many as a rank holds; those that are longer than that on as many ranks as they need."""
    groups, open_group, room = [], None, 0
    for place, length in enumerate(lengths):
        if length > pool.capacity:
            groups.append((-(-length // pool.capacity), [place]))
        elif length <= room:
            open_group[1].append(place)
            room -= length
        else:
            open_group, room = (1, [place]), pool.capacity - length
            groups.append(open_group)
    return groups


class Policies(InFolder):
    """A policy that is a function of Python."""

    one_point = {**study, "sweep": {}, "compare_to": "static"}

    def with_policy(self, plan, **changes):
        return {**self.one_point, "plans": ["static", hdpsim.policy("mine", plan)], **changes}

    def test_its_plans_run_beside_those_of_the_study(self):
        calls = []

        def plan(lengths, pool):
            calls.append((sum(lengths), pool))
            return packed(lengths, pool)

        runs = hdpsim.run(self.with_policy(plan)).columns()
        self.assertEqual(runs["plan"], ["static", "mine"])
        self.assertGreater(runs["step_time_mean_s"][1], 0)
        pool = hdpsim.Pool(ranks=16, ranks_per_node=4, capacity=8192, context=65536, layers=32, stages=1)
        self.assertEqual(calls, [(1 << 18, pool)] * 2)  # a call a step

    def test_a_plan_of_the_study_has_the_same_figures_when_a_function_returns_it(self):
        with open("policies.yaml", "w") as file:
            file.write(yaml.replace("sweep:", "# sweep:"))

        def naive(lengths, pool):
            step = naive.steps.pop(0)
            only = ("--set", "plans=[hdp-naive]", "--set", "compare_to=null")
            plan = json.loads(hdpsim_program("plan", "policies.yaml", *only, "--step", step).stdout)
            self.assertEqual(plan["sequences"], lengths)
            groups = []
            for micro_batch in plan["micro_batches"]:
                first, _, last = micro_batch["group"].partition("-")
                ranks = list(range(int(first), int(last or first) + 1))
                groups.append({"ranks": ranks, "sequences": micro_batch["spans"]})
            return groups

        naive.steps = ["0", "1"]
        runs = hdpsim.run(self.with_policy(naive, plans=["hdp-naive", hdpsim.policy("mine", naive)], compare_to=None),
                          out="out").columns()
        self.assertEqual(runs["plan"], ["hdp-naive", "mine"])
        for name, (of_policy, of_function) in runs.items():
            if name != "plan":
                self.assertEqual(of_policy, of_function, name)
        self.assertEqual(sorted(path.name for path in Path("out/plans/mine").iterdir()), ["0.json", "1.json"])

    def test_it_may_stand_in_overrides_beside_a_file(self):
        plans = ["static", hdpsim.policy("mine, too", packed)]
        runs = hdpsim.run("study.yaml", overrides={"sweep": {}, "plans": plans}, out="out").columns()
        self.assertEqual(runs["plan"], ["static", "mine, too"])
        self.assertIsNotNone(runs["speedup_mean"][1])

    def test_its_exceptions_name_the_step(self):
        def plan(lengths, pool):
            plan.calls += 1
            return packed(lengths, pool) if plan.calls == 1 else {}["nothing"]

        plan.calls = 0
        with self.assertRaises(hdpsim.PolicyError) as raised:
            hdpsim.run(self.with_policy(plan))
        self.assertEqual((raised.exception.policy, raised.exception.step), ("mine", 1))
        self.assertEqual(str(raised.exception), "policy 'mine', step 1: KeyError: 'nothing'")
        self.assertIsInstance(raised.exception.__cause__, KeyError)

    def test_groups_that_are_no_plan_are_wrong_input(self):
        with self.assertRaises(hdpsim.InputError) as raised:
            hdpsim.run(self.with_policy(lambda lengths, pool: packed(lengths[:-2], pool)))
        problem = raised.exception.problems[0]
        self.assertEqual(problem.file, "policy mine, step 0")
        self.assertIn("in no group: sequences", problem.message)
        self.assertRaises(TypeError, hdpsim.policy, "mine", None)
        self.assertEqual(hdpsim.check(self.with_policy(packed)), [])

    def test_a_plan_beyond_the_capacity_is_an_answer_that_does_not_fit(self):
        runs = hdpsim.run(self.with_policy(lambda lengths, pool: [(1, list(range(len(lengths))))])).columns()
        self.assertEqual(runs["fits"], [True, False])
        self.assertGreater(runs["step_time_mean_s"][1], 0)


class Tunings(InFolder):
    # tp 8 leaves four ranks, tp 3 does not divide the heads: one that runs and one that cannot.
    tuned = {**study, "sweep": {}, "tune": {
        "space": {"mesh.tp": [2, 3, 8], "mesh.pp": [1], "mesh.capacity": ["8Ki", "auto"]}, "price": "2 USD/GPU-hour"}}

    def setUp(self):
        super().setUp()
        Path("tune.yaml").write_text(json.dumps(self.tuned))

    def test_the_candidates_are_those_of_the_program(self):
        tuning = hdpsim.tune(self.tuned)
        self.assert_columns_are(hdpsim_program("tune", "tune.yaml", "--format", "csv").stdout, tuning.columns())
        self.assertEqual(str(tuning), hdpsim_program("tune", "tune.yaml").stdout)
        self.assertIn("infeasible", tuning.columns()["fate"])
        unknown = [gpus is None for gpus in tuning.columns()["gpus"]]
        self.assertEqual(unknown, [fate == "infeasible" for fate in tuning.columns()["fate"]])

    def test_overrides_mean_what_set_means_and_jobs_change_nothing(self):
        options = ("--set", "tune.space={mesh.tp: [2], mesh.pp: [1], mesh.capacity: [8Ki]}", "--format", "json")
        printed = hdpsim_program("tune", "tune.yaml", *options).stdout
        for jobs in (1, 3):
            space = {"mesh.tp": [2], "mesh.pp": [1], "mesh.capacity": ["8Ki"]}
            tuning = hdpsim.tune("tune.yaml", overrides={"tune.space": space}, jobs=jobs)
            self.assertEqual(tuning.json(), printed)

    def test_out_is_the_folder_that_the_program_writes_and_resumes(self):
        self.assertEqual(hdpsim_program("tune", "tune.yaml", "--out", "program").returncode, 0)
        tuning = hdpsim.tune("tune.yaml", out="module")
        names = ["study.yaml", "best.yaml", "candidates.csv", "tune.json", "journal.jsonl"]
        self.assert_same_files(names)
        self.assertEqual(tuning.best, Path("program/best.yaml").read_text())
        self.assertEqual(hdpsim.tune("tune.yaml", out="program", resume=True).columns(), tuning.columns())
        self.assert_same_files(names)

    def test_the_best_runs_in_the_time_that_the_search_found(self):
        tuning = hdpsim.tune(self.tuned)
        self.assertEqual(tuning.columns()["fate"][0], "finished")  # on all steps
        [seconds] = hdpsim.run(tuning.best).columns()["step_time_mean_s"]
        self.assertAlmostEqual(seconds, tuning.columns()["step_time_s"][0], delta=1e-9 * seconds)

    def test_progress_comes_to_its_end_and_exceptions_say_what_the_program_says(self):
        seen = []
        tuning = hdpsim.tune(self.tuned, progress=lambda *counts: seen.append(counts))
        self.assertGreaterEqual(len(seen), len(tuning.columns()["rank"]))  # each candidate at least once
        self.assertEqual([done for done, _ in seen], sorted(done for done, _ in seen))
        self.assertTrue(all(0 < done <= most for done, most in seen))
        told = hdpsim_program("tune", "tune.yaml", "--set", "tune.objectiv=cost")
        self.assertEqual(told.returncode, 2)
        with self.assertRaises(hdpsim.InputError) as raised:
            hdpsim.tune("tune.yaml", overrides={"tune.objectiv": "cost"})
        self.assertEqual(str(raised.exception) + "\n", told.stderr)


class Decisions(InFolder):
    def test_they_are_those_of_the_program(self):
        found = hdpsim.decide("study.yaml", 1e12)
        self.assertEqual(found.json(), hdpsim_program("decide", "study.yaml", "--tokens", "1T", "--format", "json").stdout)
        self.assertEqual(str(found), hdpsim_program("decide", "study.yaml", "--tokens", "1T").stdout)
        self.assert_columns_are(hdpsim_program("decide", "study.yaml", "--tokens", "1T", "--format", "csv").stdout,
                                found.columns())
        self.assertEqual(found.smallest, {})

    def test_a_study_that_is_in_time_needs_no_more_gpus_and_fewer_days_no_less(self):
        one = {"sweep": {}, "data.steps": 1}
        runs = hdpsim.decide("study.yaml", 1e12, overrides=one).columns()
        days, gpus = max(runs["days"]), runs["gpus"][0]
        enough, less = (hdpsim.decide("study.yaml", 1e12, days=limit, most_gpus=4 * gpus, overrides=one).smallest
                        for limit in (days, days / 1.5))
        for plan, smallest in enough.items():
            self.assertLessEqual(smallest, gpus)
            self.assertTrue(less[plan] is None or less[plan] >= smallest)

    def test_prices_and_questions_are_checked(self):
        Path("prices.yaml").write_text("hardware: {H100: {price: 2 USD/GPU-hour}}\n")
        self.assertRaises(hdpsim.InputError, hdpsim.decide, "study.yaml", 1e12, prices="prices.yaml")
        self.assertRaises(ValueError, hdpsim.decide, "study.yaml", 0)
        self.assertRaises(ValueError, hdpsim.decide, "study.yaml", 1e12, most_gpus=64)


class Comparisons(InFolder):
    def test_results_are_beside_the_first_of_them(self):
        for out, context in (("a", "64Ki"), ("b", "32Ki")):
            hdpsim.run("study.yaml", overrides={"sweep": {}, "data.context": context}, out=out)
        found = hdpsim.compare("a", Path("b"))
        self.assertEqual(found.changed, [{"data.context": ("64Ki", "32Ki")}])
        self.assertEqual(found.json(), hdpsim_program("compare", "a", "b", "--format", "json").stdout)
        self.assertEqual(str(found), hdpsim_program("compare", "a", "b").stdout)
        self.assert_columns_are(hdpsim_program("compare", "a", "b", "--format", "csv").stdout, found.columns())
        self.assertIn("<html", found.plot().html)

    def test_there_are_two_or_more_and_all_are_results(self):
        self.assertRaises(ValueError, hdpsim.compare, "a")
        with self.assertRaises(hdpsim.InputError) as raised:
            hdpsim.compare("nowhere", "study.yaml")
        self.assertEqual(len(raised.exception.problems), 2)


class Replays(InFolder):
    def setUp(self):
        super().setUp()
        Path("lengths.csv").write_text("in,out\n" + "".join(f"{900 * i},{i}\n" for i in range(1, 80)))

    def program(self, *options):
        options = ("--trace", "lengths.csv", "--column", "in+out", "--point", "1", *options)
        return hdpsim_program("replay", "study.yaml", *options)

    def module(self, **options):
        return hdpsim.replay("study.yaml", trace=Path("lengths.csv"), column="in+out", point=1, **options)

    def test_columns_hold_the_cells_of_the_programs_tables(self):
        replay = self.module(out="module")
        self.assert_columns_are(self.program("--format", "csv", "--out", "program").stdout, replay.columns())
        self.assert_columns_are(Path("program/windows.csv").read_text(), replay.columns("windows"))
        self.assert_same_files(["study.yaml", "steps.csv", "windows.csv", "replay.json", "replay.html"])
        replay.page("page.html")
        self.assertEqual(Path("page.html").read_bytes(), Path("program/replay.html").read_bytes())
        self.assertEqual(str(replay), self.program().stdout)

    def test_a_trace_is_used_once(self):
        tokens = sum(900 * i + i for i in range(1, 80))
        [whole, *rest] = self.module(plans=["static"], overrides={"data.tokens_per_step": "256Ki"}).columns()["tokens"]
        self.assertLessEqual(whole, 256 << 10)
        self.assertGreaterEqual(whole + sum(rest), tokens)
        self.assertLess(sum(rest), tokens)

    def test_a_trace_may_be_numbers(self):
        numbers = [900 * i + i for i in range(1, 80)]
        replay = hdpsim.replay("study.yaml", trace=numbers, point=1)
        self.assertEqual(replay.columns(), self.module().columns())

    def test_choices_and_overrides_mean_what_options_mean(self):
        printed = self.program("--plan", "hdp-balance", "--steps", "3", "--set", "mesh.tp=4", "--format", "json").stdout
        for jobs in (1, 3):
            replay = self.module(plans=["hdp-balance"], steps=3, overrides={"mesh.tp": 4}, jobs=jobs)
            self.assertEqual(replay.json(), printed)
        self.assertEqual(replay.columns()["step"], [0, 1, 2])

    def test_resume_makes_a_replay_longer(self):
        seen = []
        self.module(steps=2, out="module")
        longer = self.module(steps=5, out="module", resume=True, progress=lambda *counts: seen.append(counts))
        self.assertEqual(seen, [(3, 5), (4, 5), (5, 5)])
        self.assertEqual(longer.columns(), self.module(steps=5).columns())

    def test_exceptions_say_what_the_program_says(self):
        for options, choices in (
            (["--plan", "hdp"], {"plans": ["hdp"]}),
            (["--point", "7"], {"point": 7}),
            ([], {}),  # several points, and none chosen
            (["--trace", "none.csv"], {"trace": "none.csv"}),
            (["--column", "in"], {"column": "in"}),
        ):
            told = hdpsim_program("replay", "study.yaml", *options)
            self.assertEqual(told.returncode, 2, options)
            with self.assertRaises(hdpsim.InputError) as raised:
                hdpsim.replay("study.yaml", **choices)
            self.assertEqual(str(raised.exception) + "\n", told.stderr)
        with self.assertRaisesRegex(ValueError, "steps is 0"):
            self.module(steps=0)
        with self.assertRaisesRegex(ValueError, "no table 'window'.*did you mean 'windows'"):
            self.module(steps=1).columns("window")


class Problems(InFolder):
    wrong = yaml.replace("256Ki", "256Kb").replace("llama-7b", "llama-8b").replace("tp: 2", "tp: 2, pq: 1")

    def test_nothing_is_wrong_with_a_good_study(self):
        self.assertEqual(hdpsim.check(study), [])
        self.assertEqual(hdpsim.check(source / "configs/studies/tiny.yaml"), [])

    def test_every_problem_has_its_place_and_a_suggestion(self):
        Path("study.yaml").write_text(self.wrong)
        lines = self.wrong.splitlines()
        for written, name in ((self.wrong, "study"), ("study.yaml", "study.yaml")):
            problems = hdpsim.check(written)
            places = [(problem.file, problem.line, problem.column) for problem in problems]
            for text in ("llama-8b", "256Kb", "pq"):
                line = next(number for number, line in enumerate(lines, 1) if text in line)
                self.assertIn((name, line, lines[line - 1].index(text) + 1), places)
            named = next(problem for problem in problems if "llama-8b" in problem.message)
            self.assertIn("llama-7b", named.help)
            self.assertTrue(str(named).startswith(f"{name}:3:17: "), str(named))

    def test_exceptions_say_what_the_program_says(self):
        Path("study.yaml").write_text(self.wrong)
        told = hdpsim_program("study", "study.yaml", "--set", "data.stps=3")
        self.assertEqual(told.returncode, 2)
        with self.assertRaises(hdpsim.InputError) as raised:
            hdpsim.run("study.yaml", overrides={"data.stps": 3})
        self.assertEqual(str(raised.exception) + "\n", told.stderr)
        self.assertEqual(raised.exception.problems, hdpsim.check("study.yaml", overrides={"data.stps": 3}))
        self.assertIsInstance(raised.exception, ValueError)

    def test_a_dictionary_is_told_of_by_the_lines_of_its_yaml(self):
        with self.assertRaises(hdpsim.InputError) as raised:
            hdpsim.run({**study, "profile": "bytescale-implid"})
        self.assertIn('profile: bytescale-implid\n', str(raised.exception))  # the line, above the caret
        [problem] = raised.exception.problems
        self.assertEqual((problem.file, problem.column), ("study", len("profile: ") + 1))

    def test_what_no_study_can_hold_is_a_type_error_that_says_where(self):
        with self.assertRaisesRegex(TypeError, r"study\['data'\]\['steps'\]: .* no place for a object"):
            hdpsim.check({**study, "data": {"steps": object()}})
        with self.assertRaisesRegex(TypeError, r"study\['plans'\]\[0\]: the key 3 is not text"):
            hdpsim.check({**study, "plans": [{3: 4}]})

    def test_values_that_hold_themselves_or_nest_without_an_end_are_problems(self):
        cycle = {}
        cycle["a"] = cycle
        deep = functools.reduce(lambda inner, _: {"a": inner}, range(20_000), 1)
        lists = functools.reduce(lambda inner, _: [inner], range(20_000), 1)
        for value in (cycle, deep, lists):
            for wrong, overrides in (({**study, "mesh": value}, None), (study, {"mesh": value})):
                [problem] = hdpsim.check(wrong, overrides=overrides)[:1] or [None]
                self.assertIn("nested too deeply", str(problem))
        [problem] = hdpsim.check(study, overrides={".".join(["mesh"] * 20_000): 1})
        self.assertIn("nested too deeply", problem.message)

    def test_of_countless_unknown_keys_the_first_thousand_are_told(self):
        unknown = {f"key{i}": 1 for i in range(40_000)}
        with self.assertRaisesRegex(hdpsim.InputError, "and 39900 more$") as raised:
            hdpsim.run({**unknown, **study})
        self.assertEqual(len(raised.exception.problems), 1000)
        self.assertIn("'key0'", raised.exception.problems[0].message)
        [problem] = hdpsim.check({f"key{i}": 1 for i in range(100_000)})
        self.assertIn("more than 50000 keys in one map", problem.message)
        [problem] = hdpsim.check({**study, "plans": ["static"] * 1_000_000})
        self.assertIn("too many values", problem.message)

    def test_missing_files_are_problems_and_unwritable_folders_are_of_the_machine(self):
        self.assertIn("none.yaml", hdpsim.check("none.yaml")[0].message + hdpsim.check("none.yaml")[0].file)
        Path("file").write_text("")
        with self.assertRaises(hdpsim.MachineError):
            hdpsim.run(study, out="file/folder")
        with self.assertRaisesRegex(hdpsim.InputError, "resume needs the folder"):
            hdpsim.run(study, resume=True)

    def test_errors_of_the_progress_callback_come_back(self):
        def fail(done, steps):
            raise KeyError("mine")

        for jobs in (1, 3):
            with self.assertRaisesRegex(KeyError, "mine"):
                hdpsim.run(study, jobs=jobs, progress=fail)


class Readme(InFolder):
    def test_a_folder_without_the_built_module_says_how_to_build_it(self):
        found = subprocess.run([sys.executable, "-B", "-c", "import hdpsim"], capture_output=True, text=True,
                               env={**os.environ, "PYTHONPATH": str(source / "sim/python")})
        self.assertNotEqual(found.returncode, 0)
        self.assertIn("ImportError: the module is not built in this folder: `pip install .`", found.stderr)

    def test_the_example_of_the_readme_runs(self):
        [example] = re.findall(r"```python\n(.*?)```", (source / "README.md").read_text(), re.DOTALL)
        os.chdir(source)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(example, {"hdpsim": hdpsim})  # noqa: S102
        self.assertIn("hdp-balance", printed.getvalue())


class Threads(InFolder):
    # So many steps that nobody waits for the last one.
    forever = json.dumps({**study, "sweep": {}, "data": {**study["data"], "steps": 65536}})

    def test_other_threads_run_while_a_study_is_simulated(self):
        class Enough(Exception):
            pass

        def report(done, steps):
            begun.set()
            if turns == 100:
                raise Enough

        def simulate():
            with self.assertRaises(Enough):
                hdpsim.run(json.loads(self.forever), jobs=1, progress=report)

        turns = 0
        begun = threading.Event()
        thread = threading.Thread(target=simulate)
        thread.start()
        begun.wait()
        while turns < 100:  # only this ends the study
            self.assertTrue(thread.is_alive())
            turns += 1
            time.sleep(0.001)
        thread.join()

    def test_control_c_ends_a_run(self):
        script = """import hdpsim, json, sys
try:
    hdpsim.run(json.loads(sys.argv[1]), progress=lambda done, steps: done == 1 and print("begun", flush=True))
except KeyboardInterrupt:
    print("interrupted")
"""
        command = [sys.executable, "-c", script, self.forever]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            self.assertEqual(running.stdout.readline(), "begun\n")
            running.send_signal(signal.SIGINT)
            self.assertEqual(running.communicate(timeout=600)[0], "interrupted\n")
        self.assertEqual(running.returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
