#!/usr/bin/env python3
# usage: notebook_test.py NOTEBOOK
#
# Runs the cells of a notebook one after the other, as Jupyter does: in one namespace, and the last expression of a cell
# is shown, by its _repr_html_ where it has one. Jupyter itself takes forty packages.
import ast
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

notebook = json.loads(Path(sys.argv[1]).read_text())


def shown(source, name, namespace):
    """What a cell shows; empty if its last statement is no expression."""
    body = ast.parse(source, name).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), name, "exec"), namespace)
    if last is None:
        return ""
    value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    return value._repr_html_() if hasattr(value, "_repr_html_") else "" if value is None else repr(value)


class Notebook(unittest.TestCase):
    def test_it_is_a_notebook_without_what_one_machine_has_shown(self):
        self.assertEqual(notebook["nbformat"], 4)
        for cell in notebook["cells"]:
            self.assertIn(cell["cell_type"], ("code", "markdown"))
            if cell["cell_type"] == "code":
                self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None))

    def test_every_cell_runs_and_the_charts_are_shown(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        namespace = {"__name__": "__main__"}
        codes = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        told = [shown(code, f"cell {number}", namespace) for number, code in enumerate(codes, 1)]
        self.assertTrue(any(text.startswith("<iframe") for text in told))
        self.assertTrue(any("hdp-balance" in text for text in told))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
