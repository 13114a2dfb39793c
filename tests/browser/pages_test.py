"""usage: pages_test.py HDPSIM SOURCE_FOLDER CHROMIUM

Opens all kinds of pages in headless Chromium, on a desk and on a phone, light and dark: nothing is complained of on the
console (a page's own policy would complain of a request to a network), every chart is drawn and legible, every figure has
its table, and names out of files stay text whatever is in them. Exit code 77 (skipped) without Chromium.
"""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from chromium import Chromium

HDPSIM, SOURCE, CHROMIUM = sys.argv[1:4]
TINY = SOURCE + "/configs/studies/tiny.yaml"
PROBE = (pathlib.Path(__file__).parent / "probe.js").read_text()
DESK = (1200, "light")
LOOKS = ((400, "dark"), DESK)
# activities, why, ranks (map, histogram), timeline, groups, memory (by use, over time), lengths, evidence
CHARTS_OF_A_POINT = 10


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.browser = Chromium(CHROMIUM, cls.folder)
        cls.page = cls.browser.open("about:blank")

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.temporary.cleanup()

    def hdpsim(self, *arguments):
        done = subprocess.run([HDPSIM, "--data-dir", SOURCE, *arguments], cwd=self.folder, text=True, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def tiny(self, out, *changes):
        """The report of configs/studies/tiny.yaml with changes."""
        settings = [word for change in changes for word in ("--set", change)]
        self.hdpsim("study", TINY, "--set", "output.html=true", *settings, "--out", out)
        return out + "/report.html"

    def open(self, path, looks=LOOKS):
        """The page after its script as it is drawn anew for every look, without a problem (probe.js). Its text as on a desk."""
        for width, scheme in looks:
            with self.subTest(path, width=width, scheme=scheme):
                self.page.show_as(width, 1000, scheme)
                self.page.go(f"file://{self.folder}/{path}")
                self.page.wait_for("document.documentElement.dataset.shown")
                found = self.page.value(f"(() => {{ {PROBE}\nreturn found; }})()")
                self.assertEqual(found["problems"], [])
                self.assertEqual((found["width"], found["ground"]), (width, scheme))
                self.assertEqual(self.page.complaints(), [])
                self.charts = found["charts"]
        return self.page.value("document.documentElement.outerHTML")

    def check_tables(self, text, least):
        """Every table has a caption, and every chart its table."""
        tables = text.count("<table")
        self.assertGreaterEqual(tables, least)
        self.assertEqual(tables, text.count("<caption>"))
        self.assertEqual(text.count('<div class="figures">'), text.count('<div class="figures"><div class="scroll'))

    def check_intervals(self, text, narrower):
        """Intervals of the means, with what would narrow them: on the page, not only in its script."""
        self.assertRegex(text, "<th[^>]*>p5 – p50 – p95</th>")
        self.assertIn('<span id="points-intervals">the 5th to 95th percentile over 50 samples', text)
        self.assertRegex(text, rf'<ul class="notes" id="narrower"><li>[^<]*{narrower}[^<]*\.</li>')
        self.assertIn("<caption>Where the variance of the mean step time comes from", text)
        self.assertEqual(len(re.findall(r'<circle cx="[^>]* r="3"', text)), 6, "a dot at the median of each run")

    # ---- The report

    def test_report_answers_and_shows_all_that_a_study_found(self):
        text = self.open(self.tiny("tiny", "data.steps=2"), ((400, "light"), (1200, "dark"), *LOOKS))
        self.check_tables(text, 8)
        self.assertEqual(self.charts, CHARTS_OF_A_POINT + 2)  # and the sweep, and tokens a step
        self.assertRegex(text, r'<p class="lead">hdp-balance is the fastest plan at all 2 points, 1\.')
        self.assertIn("What shrinks is cp_comm, waiting for keys and values", text)
        self.assertIn("that is how much batches differ.", text)
        self.assertRegex(text, "ith 90% a step of hdp-balance takes .{5,40}, its speed-up over static is ")
        self.assertIn("where nine of ten published figures would lie", text)
        self.assertIn('<abbr title="ByteScale, Algorithm 2', text)
        self.assertIn("attention twice as fast", text)
        self.assertRegex(text, '<td[^>]*data-title="The busiest one"')
        self.assertNotIn("only point", text)
        self.assertRegex(text, "<th[^>]*>p5 – p95</th>")
        self.assertIn("<caption>6 runs, p5 – p95 of 2 steps; the fastest plan of a point is bold</caption>", text)
        self.assertNotIn('id="narrower"', text)

        # On paper: the charts and the study take some pages.
        paper = base64.b64decode(self.page.call("Page.printToPDF")["data"])
        self.assertGreaterEqual(len(re.findall(rb"/Type */Page\b", paper)), 3)

    def test_what_there_is_no_data_for_is_not_there(self):
        text = self.open(self.tiny("one", "sweep={}", "plans=[static]", "compare_to=static", "data.steps=1"))
        self.assertEqual(self.charts, CHARTS_OF_A_POINT)
        self.assertIn('<p class="lead">static takes ', text)
        self.assertNotIn(' id="choose-point"', text)
        self.assertNotRegex(text, "<th[^>]*>p5 – p95</th>")  # of one step

    def test_numbers_that_are_swept_are_a_curve_a_plan_in_a_panel_for_what_else_is(self):
        text = self.open(self.tiny("curves", "sweep={data.context: [16Ki, 32Ki, 128Ki], mesh.capacity: [8Ki, 16Ki]}",
                                   "data.steps=1"))
        self.assertEqual(self.charts, CHARTS_OF_A_POINT + 3)
        self.assertIn('aria-label="Step time over data.context, 16Ki"', text)

    def test_intervals_say_what_would_narrow_them(self):
        text = self.open(self.tiny("sure", "uncertainty={samples: 50}", "data.steps=2"), [DESK])
        self.check_intervals(text, "does not include the error of gemm, which is not known; to know it: calibrate")
        self.assertIn("the profile's errors of costs are in it, but not those of", text)

        errors = ("attention_forward: 0.01, attention_backward: 0.01, gemm: 0.3, memory_bound: 0.01, messages: 0.01, "
                  "collectives: 0.01, host_copies: 0.01")
        text = self.open(self.tiny("known", f"uncertainty={{samples: 50, errors: {{{errors}}}}}", "data.steps=2"), [DESK])
        self.check_intervals(text, "All runs: most of the variance comes from gemm; to narrow the interval: calibrate matrix")

    def test_plan_that_does_not_fit_is_the_fastest_of_nothing_and_a_trace_read_again_is_told(self):
        (self.folder / "lengths.csv").write_text("length\n300\n20000\n9000\n500\n200000\n")
        text = self.open(self.tiny("small", "data.steps=2", "cluster.node.gpu_memory=30 GB", "sweep={}",
                                   f"data.lengths={{file: {self.folder}/lengths.csv}}"))
        self.assertNotIn('class="best"', text)
        self.assertIn('<p class="lead">No plan fits the memory', text)
        self.assertGreaterEqual(len(re.findall("<s>[^<]*</s>", text)), 3 * 3, "every figure of a misfit is struck out")
        self.assertIn("struck out: 3 runs of a plan that does not fit", text)
        self.assertRegex(text, r'<span class="misfit">does not fit \([0-9]+% sure\): [0-9.]* of 30\.0 GB')
        self.assertIn("The 5 documents of the trace are read 9.13 times, each time in the same random order.", text)
        self.assertIn("1 of the 5 documents of the trace (20%), with 87% of its tokens, are longer than the context of 128Ki "
                      "and are", text)

    def test_pipeline_has_lanes_and_bars_by_stage_and_a_section_of_its_own(self):
        text = self.open(self.tiny("pipeline", "sweep={}", "data.steps=1", "data.context=32Ki", "mesh.pp=4"))
        self.check_tables(text, 8)
        self.assertEqual(self.charts, CHARTS_OF_A_POINT + 2)
        self.assertRegex(text, "rank [0-9]* stage 3")
        self.assertIn("bubble", text)

    def test_names_that_would_be_markup_stay_text(self):
        lengths = "it's <b>\"odd\"\n</script>.csv"
        (self.folder / lengths).parent.mkdir()
        self.hdpsim("trace", "generate", "--preset", "github", "--count", "2000", "--out", "github.csv")
        shutil.copy(self.folder / "github.csv", self.folder / lengths)
        name = ("</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\n"
                "{{data}} & 'more'")
        # JSON is YAML, with strings that may hold anything.
        (self.folder / "hostile.yaml").write_text(json.dumps({
            "name": name,
            "cluster": {"preset": "a100-rail-3tier", "gpus": 32},
            "model": {"preset": "llama-7b"},
            "profile": "bytescale-implied",
            "data": {"lengths": {"file": lengths}, "context": "64Ki", "tokens_per_step": "1Mi", "steps": 2},
            "mesh": {"tp": 2},
            "plans": ["static", "hdp-balance"],
            "output": {"html": True}}))
        self.hdpsim("study", "hostile.yaml", "--out", "hostile")
        text = self.open("hostile/report.html", [DESK])
        self.assertEqual(self.charts, CHARTS_OF_A_POINT + 1)
        self.assertIn("<title>&lt;/script&gt;&lt;script&gt;document.title", text)
        self.assertNotIn('<img src="x"', text)
        self.assertEqual(text.count("<script"), 2)
        self.assertIn("&lt;b&gt;", text)

    # ---- The other pages

    def test_replay_says_who_leads(self):
        self.hdpsim("replay", TINY, "--point", "1", "--steps", "12", "--out", "replay")
        text = self.open("replay/replay.html")
        self.assertEqual(self.charts, 2)  # times and lengths
        self.assertIn('<p class="lead">hdp-balance takes ', text)
        self.assertIn('id="slowest"', text)

    def test_tuning_names_the_best_of_each_plan(self):
        self.hdpsim("tune", SOURCE + "/configs/studies/tune.yaml", "--set", "data.steps=2", "--set",
                    "tune.space={mesh.tp: [2, 4], mesh.pp: [1], mesh.capacity: [auto]}", "--out", "tuned")
        text = self.open("tuned/tune.html")
        self.assertEqual(self.charts, 1)  # the front
        self.assertIn('<p class="lead">The best of ', text)
        self.assertIn('id="plans-title">The best of each plan', text)

    def test_decision_names_the_cheapest_run_and_the_fewest_gpus(self):
        self.hdpsim("decide", TINY, "--tokens", "1G", "--out", "decided")
        text = self.open("decided/decision.html")
        self.check_tables(text, 1)
        self.assertIn('<p class="lead">1.00G tokens are cheapest with hdp-balance at ', text)
        self.hdpsim("decide", TINY, "--tokens", "100G", "--days", "20", "--out", "searched")
        text = self.open("searched/decision.html")
        self.check_tables(text, 2)  # the answers, and the sizes below the chart
        self.assertEqual(self.charts, 1)
        self.assertIn('<p class="lead">The fewest GPUs for 100G tokens in 20 days are ', text)

    def test_results_stand_beside_the_first(self):
        self.tiny("before", "data.steps=1")
        self.tiny("after", "data.steps=1", "mesh.capacity=16Ki")
        self.hdpsim("compare", "before", "after", "--out", "changed")
        text = self.open("changed/results.html")
        self.check_tables(text, 1)
        self.assertIn('<p class="lead">From before to after step times change by ', text)

    def test_comparison_says_how_far_the_prediction_is_off(self):
        # Steps of milliseconds on this processor: what a page shows of them does not hang on how fast it is.
        (self.folder / "tiny.json").write_text(json.dumps({
            "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
            "num_attention_heads": 1, "vocab_size": 64}))
        (self.folder / "fast.yaml").write_text(
            "name: fast\n"
            "cluster: {preset: laptop-cpu, gpus: 2, node: {gpus: 2}}\n"
            "model: {hf_config: tiny.json}\n"
            "profile: epyc-cpu\n"
            "data: {lengths: {preset: github}, context: 128, tokens_per_step: 256, steps: 2}\n"
            "mesh: {capacity: 64}\n"
            "plans: [static: {cp: 2}, hdp-balance]\n")
        self.hdpsim("execute", "fast.yaml", "--plan", "static", "--plan", "hdp-balance", "--steps", "2", "--repeat", "2",
                    "--out", "real")
        self.hdpsim("compare", "real", "--out", "compared")
        text = self.open("compared/comparison.html")
        self.check_tables(text, 9)  # step times; of two plans instructions, activities, busy ranks, exposed exchanges
        self.assertIn('<p class="lead">The predicted step time is off by at most ', text)

    def test_validation_counts_what_is_predicted(self):
        (self.folder / "set.yaml").write_text(
            "name: small\n"
            "about: two plans of one job\n"
            "source: nobody\n"
            "study:\n"
            "  cluster: {preset: a100-rail-3tier}\n"
            "  model: {preset: llama-7b}\n"
            "  profile: bytescale-implied\n"
            "  plans: [static]\n"
            "columns: [tp, dp, micro_batch, global_batch, sequence, step_time_s, tokens_per_s_per_gpu]\n"
            "rows:\n"
            "  - [1, 8, 2, 16, 4Ki, 2, ~]\n"
            "  - [2, 4, 1, 16, 4Ki, 4, 2048]\n")
        self.hdpsim("validate", "./set.yaml", "--out", "validated")
        text = self.open("validated/validation.html")
        self.assertEqual(self.charts, 2)  # step times and throughput
        self.assertIn('<p class="lead">Of 3 published figures 3 are predicted', text)


if __name__ == "__main__":
    if not os.access(CHROMIUM, os.X_OK):
        print("NOT RUN: there is no Chromium here (Debian: apt-get install chromium)", file=sys.stderr)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
