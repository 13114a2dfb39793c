"""A small tree of sources that a script checks, case by case, in one process."""

import pathlib
import runpy
import shutil
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


class PretendedTree:
    """Files are added one by one, then one call says what the script must find in them; the tree is empty again behind it."""

    def __init__(self, script):
        self.script = runpy.run_path(str(ROOT / "scripts" / script))
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.cases = self.failures = 0

    def write(self, path, *lines):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n")

    def expect(self, name, *wanted):
        self.check(name, self.script["check"](self.root), list(wanted))
        for entry in self.root.iterdir():
            shutil.rmtree(entry)

    def check(self, name, found, wanted):
        self.cases += 1
        if found != wanted:
            self.failures += 1
            print(f"FAILED: {name}\n  wanted: {wanted}\n  found: {found}")

    def exit_code(self):
        print(f"{self.cases} cases, {self.failures} failed")
        return 1 if self.failures else 0
