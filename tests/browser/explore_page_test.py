"""usage: explore_page_test.py HDPSIM SOURCE_FOLDER CHROMIUM [FOLDER FOR PICTURES]

The page of `hdpsim explore` in headless Chromium: settings are changed as a person changes them, and the figures that
the page shows then are those that `hdpsim study` prints of the study that the page saves. Exit code 77 (skipped) without
Chromium.
"""
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

from chromium import Chromium
from explorer import PATIENCE_S, Explorer

HDPSIM, SOURCE, CHROMIUM = sys.argv[1:4]
PICTURES = sys.argv[4] if len(sys.argv) > 4 else None
TINY = SOURCE + "/configs/studies/tiny.yaml"
ALL_STEPS = "document.documentElement.dataset.answered === 'all' && document.documentElement.dataset.busy === 'no'"
RUNS = "latest.result.runs"


class ExplorePage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.downloads = pathlib.Path(cls.folder.name) / "downloads"
        cls.downloads.mkdir()
        cls.browser = Chromium(CHROMIUM, cls.downloads)
        cls.explorer = Explorer(HDPSIM, SOURCE, TINY)

    @classmethod
    def tearDownClass(cls):
        cls.explorer.end()
        cls.browser.__exit__()
        cls.folder.cleanup()

    def setUp(self):
        for left in self.downloads.iterdir():
            left.unlink()

    def open(self, fragment=""):
        page = self.browser.open(self.explorer.address + fragment)
        page.wait_for("document.documentElement.dataset.shown === 'yes'")
        return page

    def settle(self, page):
        page.wait_for(ALL_STEPS)

    def change(self, page, act):
        """Does something that changes a setting, and waits for the figures of all steps."""
        page.value("document.documentElement.dataset.answered = 'none'")
        act()
        self.settle(page)

    def saved(self, page, button, ending):
        page.value(f"document.getElementById('{button}').click()")
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            found = [each for each in self.downloads.iterdir() if each.suffix == ending]
            if found:
                return found[0]
            time.sleep(0.05)
        raise RuntimeError(f"no file {ending}")

    def check_figures(self, page, runs):
        """The figures that are shown are those of `runs`, in the digits of the page."""
        self.assertEqual(page.value(f"JSON.stringify({RUNS})"), page.value(f"JSON.stringify({json.dumps(runs)})"))
        for run in runs:
            shown = f"document.querySelector('[data-plan=\"{run['plan']}\"][data-figure=\"step_time\"]').textContent"
            self.assertEqual(page.value(shown), page.value(f"seconds({run['step_time_s']['mean']!r})"))

    def test_page_shows_every_figure_and_says_nothing_on_the_console(self):
        page = self.open()
        self.settle(page)
        self.assertEqual(page.complaints(), [])
        self.assertEqual(page.value("[...document.querySelectorAll('section:not([hidden]) .chart')]"
                                    ".filter((chart) => chart.dataset.drawn !== 'yes').length"), 0)
        self.check_figures(page, self.explorer.study(TINY, "--set", "sweep=null"))
        for address in page.requests():
            self.assertTrue(address.startswith(self.explorer.address), address)
        page.close()

    def test_moved_slider_gives_the_figures_of_the_saved_study(self):
        page = self.open()
        self.settle(page)
        before = page.value(f"JSON.stringify({RUNS})")
        page.value("document.getElementById('set-data-context').focus()")
        self.change(page, lambda: page.press("ArrowLeft"))
        self.assertEqual(page.value("settings.get('data.context')"), "64Ki")
        self.assertNotEqual(page.value(f"JSON.stringify({RUNS})"), before)
        study = self.saved(page, "save-study", ".yaml")
        self.check_figures(page, self.explorer.study(str(study)))
        self.assertEqual(page.complaints(), [])
        page.close()

    def test_lists_rows_and_fields_change_the_study(self):
        page = self.open()
        self.settle(page)

        def choose(control, value):
            page.value(f"(() => {{ const list = document.getElementById('set-{control}'); list.value = '{value}';"
                       "list.dispatchEvent(new Event('change')); })()")

        self.change(page, lambda: choose("cluster", "h100-rail"))  # with costs that fit its devices
        self.assertEqual(page.value("latest.result.study.profile"), "h100-published")
        self.change(page, lambda: page.type_into("#set-cluster-gpus ~ input", "64"))
        self.change(page, lambda: choose("model", "llama-13b"))
        self.change(page, lambda: choose("data-lengths", "byted"))
        self.change(page, lambda: page.value("[...document.querySelectorAll('.plan')].find((row) => "
                                             "row.textContent.includes('hdp-naive')).querySelector('input').click()"))
        self.assertEqual(page.value(f"{RUNS}.map(({{plan}}) => plan).join()"), "static,hdp-balance")
        page.value("(() => { const key = document.getElementById('any-key'); key.value = 'mesh.zero';"
                   "key.dispatchEvent(new Event('change')); })()")
        self.change(page, lambda: page.type_into("#key-mesh-zero", "2"))
        study = self.saved(page, "save-study", ".yaml")
        self.check_figures(page, self.explorer.study(str(study)))
        # The address has all of it.
        again = self.open("#" + page.value("location.hash.slice(1)"))
        self.settle(again)
        self.assertEqual(again.value(f"JSON.stringify({RUNS})"), page.value(f"JSON.stringify({RUNS})"))
        self.assertEqual(again.value("document.getElementById('key-mesh-zero').value"), "2")
        again.close()
        page.close()

    def test_figures_explain_themselves(self):
        page = self.open()
        self.settle(page)
        for figure in page.value("Object.keys(figures)"):
            page.value(f"document.querySelector('[data-plan=\"hdp-naive\"][data-figure=\"{figure}\"]').click()")
            text = page.value("document.getElementById('explanation').textContent")
            self.assertIn("hdp-naive", text)
            self.assertGreater(len(text), 100)
        page.value("document.querySelector('[data-plan=\"static\"][data-figure=\"step_time\"]').click()")
        text = page.value("document.getElementById('explanation').textContent")
        used = page.value(f"Object.entries({RUNS}[0].breakdown_s).filter(([, time]) => time > 0).map(([name]) => name)")
        for activity in used:
            self.assertIn(activity, text)
        self.assertIn("bytescale-implied", text)
        page.close()

    def test_problems_stand_beside_their_controls_all_at_once(self):
        page = self.open("#data.context=long&mesh.tp=3&data.tokens_per_step=0")
        page.wait_for("!document.getElementById('problems').hidden")
        for control in ("data-context", "mesh-tp", "data-tokens_per_step"):
            self.assertEqual(page.value(f"document.getElementById('set-{control}-problem').hidden"), False, control)
        text = page.value("document.querySelector('#problems pre').textContent")
        told = self.explorer.refusal(TINY, "--set", "data.context=long", "--set", "data.tokens_per_step=0",
                                     "--set", "mesh.tp=3", "--set", "sweep=null")
        self.assertEqual(text.strip(), told.strip())
        self.change(page, lambda: page.value("document.getElementById('reset').click()"))
        self.assertTrue(page.value("document.getElementById('problems').hidden"))
        self.assertEqual(page.value("document.querySelectorAll('.problem:not([hidden])').length"), 0)
        page.close()

    def test_variants_stand_side_by_side(self):
        page = self.open()
        self.settle(page)
        page.value("document.getElementById('pin').click()")
        page.value("document.getElementById('set-data-context').focus()")
        self.change(page, lambda: page.press("ArrowLeft"))
        rows = page.value("[...document.querySelectorAll('#variants-table tbody tr')].map((row) => row.textContent)")
        self.assertEqual(len(rows), 2)
        self.assertIn("context 128Ki", rows[0])
        self.assertIn("context 64Ki", rows[1])
        for row, context in zip(rows, ("128Ki", "64Ki")):
            for run in self.explorer.study(TINY, "--set", "sweep=null", "--set", f"data.context={context}"):
                self.assertIn(page.value(f"seconds({run['step_time_s']['mean']!r})"), row)
        linked = self.open("#" + page.value("location.hash.slice(1)"))
        linked.wait_for("document.querySelectorAll('#variants-table tbody tr').length === 2 && "
                        "!document.querySelector('#variants-table').textContent.includes('…')")
        self.assertEqual(linked.value("document.getElementById('variants-table').textContent"), "".join(
            [page.value("document.getElementById('variants-table').textContent")]))
        linked.close()
        page.close()

    def test_file_of_lengths_is_read(self):
        lengths = self.downloads / "own.csv"
        lengths.write_text("tokens\n100\n2000\n30000\n", encoding="ascii")
        page = self.open()
        self.settle(page)
        self.change(page, lambda: page.choose_file("#set-data-lengths-file", lengths))
        self.assertEqual(page.value("document.getElementById('set-data-lengths').value"), "own.csv")
        study = self.saved(page, "save-study", ".yaml")  # lands beside the lengths
        self.check_figures(page, self.explorer.study(str(study)))
        page.close()

    def test_report_is_a_page_that_stands_alone(self):
        page = self.open()
        self.settle(page)
        report = self.saved(page, "save-report", ".html")
        shown = self.browser.open(f"file://{report}")
        shown.wait_for("document.documentElement.dataset.shown")
        self.assertEqual(shown.value("data.runs.map(({step_time_s}) => step_time_s.mean).join()"),
                         page.value(f"{RUNS}.map(({{step_time_s}}) => step_time_s.mean).join()"))
        shown.close()
        page.close()

    def test_run_can_be_stopped_and_a_closed_page_ends_its_run(self):
        page = self.open("#data.steps=1000000")
        page.wait_for("document.getElementById('progress').value > 0")
        self.assertFalse(page.value("document.getElementById('stop').hidden"))
        page.value("document.getElementById('stop').click()")
        self.wait_until_idle()
        self.assertIn("Stopped", page.value("document.getElementById('state').textContent"))
        page.close()
        other = self.open("#data.steps=999999")
        other.wait_for("document.getElementById('progress').value > 0")
        other.close()
        self.wait_until_idle()

    def wait_until_idle(self):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            before = self.explorer.processor_s()
            time.sleep(0.5)
            if self.explorer.processor_s() - before <= 1:
                return
        self.fail("the server goes on")

    def test_page_fits_a_phone_and_follows_the_colours_of_the_system(self):
        page = self.open()
        grounds = []
        for scheme in ("light", "dark"):
            page.show_as(400, 850, scheme)
            self.settle(page)
            self.assertLessEqual(page.value("document.scrollingElement.scrollWidth"), 400)
            grounds.append(page.value("getComputedStyle(document.body).backgroundColor"))
        self.assertNotEqual(*grounds)
        page.close()

    def test_every_control_has_a_name_and_is_reached_by_keyboard(self):
        page = self.open()
        self.settle(page)
        nameless = page.value(
            "[...document.querySelectorAll('input, select, button')].filter((each) => !each.labels?.length && "
            "!each.ariaLabel && !each.textContent.trim()).map((each) => each.outerHTML)")
        self.assertEqual(nameless, [])
        reached = set()
        page.value("document.body.focus()")
        controls = page.value("document.querySelectorAll('input, select, button, summary, a').length")
        for _ in range(controls):
            page.press("Tab")
            reached.add(page.value("document.activeElement.id"))
        for name in ("set-cluster", "set-data-context", "set-plans-0", "any-key", "pin", "save-study"):
            self.assertIn(name, reached)
        page.close()

    @unittest.skipUnless(PICTURES, "no folder for pictures")
    def test_pictures(self):
        for name, width, scheme, fragment in (("light", 1280, "light", ""), ("dark", 1280, "dark", ""),
                                              ("phone", 400, "light", ""), ("phone-dark", 400, "dark", ""),
                                              ("wrong", 1280, "light", "#mesh.tp=3&data.context=long"),
                                              ("variants", 1280, "light", "#data.context=64Ki&pin=&pin=mesh.tp%3D4")):
            page = self.open(fragment)
            page.show_as(width, 900, scheme)
            time.sleep(3)
            if name in ("light", "phone"):
                page.value("document.querySelectorAll('.figure')[6].click()")
            page.picture(os.path.join(PICTURES, name + ".png"))
            page.close()


if __name__ == "__main__":
    if not os.access(CHROMIUM, os.X_OK):
        print("NOT RUN: there is no Chromium here (Debian: apt-get install chromium)", file=sys.stderr)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
