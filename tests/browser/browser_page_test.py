"""usage: browser_page_test.py HDPSIM SOURCE_FOLDER CHROMIUM INDEX.html

The page without a server (scripts/build_page) in headless Chromium, from a file and from a server of static files: its
answers are those of the server of `hdpsim explore`, and it sends nothing. Exit code 77 (skipped) without
the page or without Chromium.
"""
import functools
import http.server
import json
import os
import pathlib
import sys
import tempfile
import threading
import unittest
import urllib.request

from chromium import Chromium
from explorer import Explorer

HDPSIM, SOURCE, CHROMIUM, PAGE = sys.argv[1:5]
SETTLED = "document.documentElement.dataset.answered === 'all' && document.documentElement.dataset.busy === 'no'"
# Of a shipped study: its name, and what is set.
QUESTIONS = [("tiny", []), ("tiny", ["data.context=64Ki", "mesh.tp=2"]), ("straggler", []),
             ("tiny", ["data.lengths={preset: byted}", "uncertainty={samples: 20}"])]


# The C libraries of browsers and of Linux round sin, cos, atan and erfc differently in the last digit; of a result, the
# intervals of `confidence` alone come from these.
LAST_DIGITS = 1e-12


def whole_as_in_javascript(value):
    """JavaScript has one kind of number: 1.0 is 1 there."""
    if isinstance(value, dict):
        return {key: whole_as_in_javascript(each) for key, each in value.items()}
    if isinstance(value, list):
        return [whole_as_in_javascript(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def assert_equal_figures(test, found, known, place=""):
    """Equal, to the last digit and in the same order; `confidence` but for the last digits."""
    test.assertEqual(type(found), type(known), place)
    if isinstance(known, dict):
        test.assertEqual(list(found), list(known), place)
        for key in known:
            assert_equal_figures(test, found[key], known[key], f"{place}.{key}")
    elif isinstance(known, list):
        test.assertEqual(len(found), len(known), place)
        for i, (one, other) in enumerate(zip(found, known)):
            assert_equal_figures(test, one, other, f"{place}.{i}")
    elif isinstance(known, float) and ".confidence." in place:
        test.assertAlmostEqual(found / known if known else 1 + found, 1, delta=LAST_DIGITS, msg=place)
    else:
        test.assertEqual(found, known, place)


class Files(http.server.SimpleHTTPRequestHandler):
    asked = []

    def log_message(self, *_):
        self.asked.append(self.path)


class BrowserPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.downloads = pathlib.Path(cls.folder.name)
        cls.browser = Chromium(CHROMIUM, cls.downloads)
        cls.explorers = {}

    @classmethod
    def tearDownClass(cls):
        for explorer in cls.explorers.values():
            explorer.end()
        cls.browser.__exit__()
        cls.folder.cleanup()

    def explorer(self, study):
        if study not in self.explorers:
            self.explorers[study] = Explorer(HDPSIM, SOURCE, f"{SOURCE}/configs/studies/{study}.yaml")
        return self.explorers[study]

    def open(self, study, fragment=""):
        page = self.browser.open(f"file://{PAGE}?study={study}{fragment}")
        page.wait_for("document.documentElement.dataset.shown === 'yes'")
        return page

    def served(self, study, question):
        """The lines of a server's answer but those of progress, which depend on time."""
        request = urllib.request.Request(self.explorer(study).address + "ask", data=json.dumps(question).encode(),
                                         method="POST")
        with urllib.request.urlopen(request) as answer:
            lines = [json.loads(line) for line in answer if line.strip()]
        return [line for line in whole_as_in_javascript(lines) if line["kind"] != "progress"]

    def answered(self, page, question):
        lines = page.value("(async () => { const lines = []; await hdpsim_program.ask(" + json.dumps(question) +
                           ", (line) => lines.push(line)); return JSON.stringify(lines); })()")
        return [line for line in json.loads(lines) if line["kind"] != "progress"]

    def test_answers_are_those_of_the_server(self):
        for study, settings in QUESTIONS:
            with self.subTest(study=study, settings=settings):
                page = self.open(study)
                question = {"want": "answer", "set": settings}
                lines = self.answered(page, question)
                assert_equal_figures(self, lines, self.served(study, question))
                self.assertTrue(lines[-1]["final"])
                page.close()

    def test_problems_and_the_saved_study_are_those_of_the_server(self):
        page = self.open("tiny")
        for question in ({"want": "answer", "set": ["data.context=long", "mesh.tp=3"]},
                         {"want": "study", "set": ["data.context=64Ki"]}):
            told, known = self.answered(page, question), self.served("tiny", question)
            self.assertEqual(json.dumps(told).replace("/hdpsim/configs", SOURCE + "/configs"), json.dumps(known))
        page.close()

    def test_moved_slider_ends_the_work_for_the_old_setting(self):
        page = self.open("tiny", "#data.steps=1000000")
        page.wait_for("document.getElementById('progress').value > 0")
        page.value("document.documentElement.dataset.answered = 'none'")
        page.type_into("#set-data-steps ~ input", "2")
        page.wait_for(SETTLED)
        self.assertEqual(page.value("latest.result.runs[0].steps"), 2)
        self.assertEqual(page.complaints(), [])
        page.close()

    def test_file_of_lengths_is_read_and_outlives_an_ended_worker(self):
        lengths = self.downloads / "own.csv"
        lengths.write_text("tokens\n100\n2000\n30000\n", encoding="ascii")
        page = self.open("tiny", "#data.steps=1000000")
        page.wait_for("document.getElementById('progress').value > 0")
        page.choose_file("#set-data-lengths-file", lengths)
        page.wait_for("settings.has('data.lengths')")
        page.value("document.documentElement.dataset.answered = 'none'")
        page.type_into("#set-data-steps ~ input", "2")
        page.wait_for(SETTLED)
        runs = self.explorer("tiny").study(f"{SOURCE}/configs/studies/tiny.yaml", "--set", "sweep=null", "--set",
                                           "data.steps=2", "--set", f"data.lengths={{file: {lengths}}}")
        found = json.loads(page.value("JSON.stringify(latest.result.runs)"))
        assert_equal_figures(self, found, whole_as_in_javascript(runs))
        page.close()

    def test_study_of_the_user_is_read(self):
        study = self.downloads / "mine.yaml"
        text = pathlib.Path(SOURCE, "configs/studies/tiny.yaml").read_text(encoding="utf-8")
        study.write_text(text.replace("name: tiny", "name: mine"), encoding="utf-8")
        page = self.browser.open(f"file://{PAGE}")
        page.wait_for("document.getElementById('own') && document.readyState === 'complete'")
        links = page.value("[...document.querySelectorAll('li a')].map((link) => link.textContent)")
        shipped = sorted(path.stem for path in pathlib.Path(SOURCE, "configs/studies").glob("*.yaml"))
        self.assertEqual(links, shipped)
        page.choose_file("#own", study)
        page.wait_for(SETTLED)
        self.assertEqual(page.value("data.name"), "mine")
        self.assertEqual(page.complaints(), [])
        page.close()

    def test_served_as_a_file_it_asks_for_nothing_else_and_may_not(self):
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Files, directory=str(pathlib.Path(PAGE).parent)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        page = self.browser.open(address + "index.html?study=tiny")
        page.wait_for(SETTLED)
        self.assertEqual(page.complaints(), [])
        self.assertEqual(Files.asked, ["/index.html?study=tiny"])
        refused = page.value(f"fetch({json.dumps(address)}).then(() => 'sent', () => 'refused')")
        self.assertEqual(refused, "refused")
        page.close()
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    if not os.access(CHROMIUM, os.X_OK):
        print("NOT RUN: there is no Chromium here (Debian: apt-get install chromium)", file=sys.stderr)
        sys.exit(77)
    if not os.path.exists(PAGE):
        print("NOT RUN: the page without a server is not built here (scripts/build_page)", file=sys.stderr)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
