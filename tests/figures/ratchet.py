#!/usr/bin/env python3
"""usage: ratchet.py SOURCE_FOLDER HDPSIM [--write [REASON]]

The errors of every kind of quantity of every validation set against configs/validation/errors.csv, which holds those that were accepted, and the
same figures in both tables of configs/validation/README.md: that of the sets, and that of what they were before and are
now. What that page states of the models of ByteScale rests on the same rows. `a` is the error of a micro-batch's time, `rest` and `ours`
are what a step takes besides, in micro-batches, as published and as predicted (sim/validate/step_lines.h). The errors by
kind of run, from which studies take their intervals (configs/trust.yaml), and the tables of README.md and
configs/validation/README.md that show them, are held to what it finds, too. One with
other errors ends with exit code 1, better ones included: what is gained must be written down so that it cannot be lost
again. With --write all files are written; where one got worse (its median or its worst error, or that of `a`, by 0.1
percentage points or more, or fewer predicted rows), that needs a reason, which the file keeps.
"""

import csv
import io
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import figures

source = pathlib.Path(sys.argv[1]).resolve()
program = pathlib.Path(sys.argv[2]).resolve()
accepted_path = source / "configs/validation/errors.csv"
page_path = source / "configs/validation/README.md"
front_path = source / "README.md"
trust_path = source / "configs/trust.yaml"

ERRORS = ("median", "mean", "worst", "bias")
COLUMNS = ("set", "quantity", "rows", "predicted", "fitted", *ERRORS, "ranking", "a", "rest", "ours", "reason")


def read(path):
    with path.open(newline="") as file:
        return {(row["set"], row["quantity"]): row for row in csv.DictReader(file)}


def measured():
    """What hdpsim finds now: rows of errors.csv, with errors in percent and one digit behind the point, the file of errors by kind of run,
    what it makes of them, and the rows of validation.csv."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, "--data-dir", source, "validate", "--out", folder], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"hdpsim validate: exit code {done.returncode}\n{done.stderr}")
        found = read(pathlib.Path(folder) / "sets.csv")
        trust = (pathlib.Path(folder) / "trust.yaml").read_text()
        kinds = list(csv.DictReader(io.StringIO((pathlib.Path(folder) / "trust.csv").read_text())))
        cases = list(csv.DictReader(io.StringIO((pathlib.Path(folder) / "validation.csv").read_text())))
    rows = {}
    for name, row in found.items():
        def percent(column):
            return f"{100 * float(row[column]):.1f}" if row[column] else ""

        def rounded(column):
            return f"{float(row[column]):.2f}" if row[column] else ""

        rows[name] = {"set": row["set"], "quantity": row["quantity"], "rows": row["rows"], "predicted": row["predicted"], "fitted": row["fitted"],
                      "median": percent("median_abs_error"), "mean": percent("mean_abs_error"),
                      "worst": percent("worst_abs_error"), "bias": percent("median_error"),
                      "ranking": rounded("kendall_tau"), "a": percent("micro_batch_error"),
                      "rest": rounded("published_rest"), "ours": rounded("predicted_rest")}
    return rows, trust, kinds, cases


# ---- Errors by kind of run

TABLE = re.compile(r"(<!-- errors by kind -->\n).*?(<!-- end -->)", re.DOTALL)
WORDS = {"step_time": "step time", "speedup": "speed-up", "memory": "memory"}


def between(kind):
    return f"{float(kind['least']):.2f} to {float(kind['most']):.2f}"


def full_table(kinds):
    """A line a figure and kind of run, and one for all kinds of a figure, in which sets count alike."""
    text = ("| figure | kind of run | sets | figures | 90 % of published / predicted | of kept-out figures inside |\n"
            "|---|---|---|---|---|---|\n")
    for figure, word in WORDS.items():
        of_figure = [kind for kind in kinds if kind["figure"] == figure]
        for kind in of_figure:
            text += (f"| {word} | {kind['kind']} | {kind['sets']} | {kind['figures']} | {between(kind)} | "
                     f"{100 * float(kind['covered']):.0f} % |\n")
        sets = sum(int(kind["sets"]) for kind in of_figure)
        inside = sum(int(kind["sets"]) * float(kind["covered"]) for kind in of_figure) / max(sets, 1)
        text += (f"| {word} | all | {sets} | {sum(int(kind['figures']) for kind in of_figure)} |  | "
                 f"{100 * inside:.0f} % |\n")
    return text


def short_table(kinds):
    """A line a kind of run that has published steps."""
    by_kind = {(kind["figure"], kind["kind"]): kind for kind in kinds}
    text = "| kind of run | published steps | step time | speed-up of two plans |\n|---|---|---|---|\n"
    for (figure, name), kind in by_kind.items():
        if figure != "step_time":
            continue
        speedup = by_kind.get(("speedup", name))
        text += f"| {name} | {kind['figures']} | {between(kind)} | {between(speedup) if speedup else ''} |\n"
    return text


def pages_with(kinds):
    """The pages that have a table of errors by kind, with what it is now."""
    return {path: TABLE.sub(lambda found, text=text: found.group(1) + text + found.group(2), path.read_text())
            for path, text in ((page_path, full_table(kinds)), (front_path, short_table(kinds)))}


def trust_agrees(trust, kinds):
    agrees = trust_path.exists() and trust_path.read_text() == trust
    if not agrees:
        print("configs/trust.yaml has not the errors that hdpsim validate finds")
    for path, text in pages_with(kinds).items():
        if path.read_text() != text:
            print(f"{path.relative_to(source)} has another table of errors by kind of run than hdpsim validate --summary")
            agrees = False
    return agrees


# ---- Statements on the rows of a set

def models_of_bytescale(rows):
    """What the page of ByteScale states of the errors of each model and figure of its set."""
    rows = [row for row in rows if row["set"] == "bytescale"]
    for model, name, gpus in (("7b", "LLaMA-7B", "1,024"), ("13b", "LLaMA-13B", "2,048"), ("70b", "LLaMA-70B", "8,192")):
        cells = []
        for quantity, plan in (("tokens_per_s_per_gpu", "static"), ("tokens_per_s_per_gpu", "hdp-balance"),
                               ("speedup", "hdp-naive"), ("speedup", "hdp-balance")):
            errors = [abs(100 * (float(row["predicted"]) / float(row["published"]) - 1)) for row in rows
                      if row["case"].startswith(f"{model} ") and row["quantity"] == f"{quantity} {plan}"]
            assert len(errors) == 8, (model, quantity, plan, len(errors))
            cells += [f"{statistics.median(errors):.1f}", f"{max(errors):.1f}"]
        fitted = ", fitted" if model == "7b" else ""
        yield figures.BYTESCALE, f"| {name} | {gpus} | {{}} ({{}}) | {{}} ({{}}){fitted} | {{}} ({{}}) | {{}} ({{}}) |", cells
    ratios = {(row["quantity"], row["case"]): float(row["predicted"]) / float(row["published"]) for row in rows}

    def fast(plan, models, data, contexts):
        """How much too fast the plan is in these cases, in percent."""
        rates = [ratios[f"tokens_per_s_per_gpu {'static' if plan == 'hdp-naive' else plan}", case] *
                 (ratios[f"speedup {plan}", case] if plan == "hdp-naive" else 1)
                 for case in (f"{model} {data} {context}" for model in models for context in contexts)]
        return [round(100 * (rate - 1)) for rate in rates]

    models, shorter = ("7b", "13b", "70b"), ("256Ki", "512Ki", "1Mi")
    longest, others = fast("static", models, "byted", ["2Mi"]), fast("static", models, "byted", shorter)
    github = fast("static", models, "github", [*shorter, "2Mi"])
    yield figures.BYTESCALE, ("**Static on Byted at 2Mi is {} to {} % too fast in all three models**, at shorter contexts {} to "
                      "{} %, where GitHub is\n  within {} %."), \
        [str(each) for each in (min(longest), max(longest), min(others), max(others), max(map(abs, github)))]
    yield figures.BYTESCALE, "Balanced steps of 70B at 1Mi and 2Mi are {} and {} % too slow:", \
        [str(-each) for each in fast("hdp-balance", ["70b"], "github", ["1Mi", "2Mi"])]
    naive = fast("hdp-naive", ["7b", "13b"], "github", ["1Mi", "2Mi"])
    yield figures.BYTESCALE, "**Naive on GitHub at 1Mi and 2Mi is {} to {} % too fast** with 7B and 13B.", \
        [str(min(naive)), str(max(naive))]
    static, naive, balance = (float(row["predicted"]) for row in rows if row["quantity"].startswith("step_time_s "))
    yield figures.BYTESCALE, "are 3.31 and 1.73\n  balanced steps, and {} and {} here;", \
        [f"{static / balance:.2f}", f"{naive / balance:.2f}"]


# ---- Errors of sets

def is_worse(now, before):
    if int(now["predicted"]) < int(before["predicted"]):
        return True
    if before.get("a") and abs(float(now["a"] or 0)) > abs(float(before["a"])):
        return True
    return any(float(now[error] or 0) > float(before[error] or 0) for error in ("median", "worst"))


def text_of(row):
    return (f"{row['predicted']} of {row['rows']} rows, median {row['median']} %, mean {row['mean']} %, "
            f"worst {row['worst']} %, bias {row['bias']} %, ranking {row['ranking'] or '-'}, "
            f"a {row['a'] or '-'} %, rest {row['rest'] or '-'} / {row['ours'] or '-'}")


def write(now, before, reason):
    """The errors of sets, unless a set got worse without a reason."""
    worse = [name for name in now if name in before and is_worse(now[name], before[name])]
    if worse and not reason:
        print(f"these got worse, which needs a reason: {', '.join(map(' '.join, worse))}")
        return False
    for name, row in now.items():
        row["reason"] = reason if name in worse else before.get(name, {}).get("reason", "")
    with accepted_path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(now.values())
    page = page_path.read_text()
    for name, row in now.items():
        page = line_of(name).sub(lambda found, row=row: found.group(1) + cells(row) + found.group(3), page)
        page = line_before(name).sub(lambda found, row=row: found.group(1) + compared(found.group(2), row), page)
    page_path.write_text(page)
    return True


def line_of(name):
    """Of the page's table: the set and the quantity, the figures, what it is."""
    of_set, quantity = map(re.escape, name)
    return re.compile(rf"^(\| `{of_set}` \| `{quantity}` \|)((?:[^|\n]*\|){{9}})([^|\n]*\|)$", re.MULTILINE)


def line_before(name):
    """Of the table of what was before: the set and the quantity, and five cells of "before → now"."""
    of_set, quantity = map(re.escape, name)
    return re.compile(rf"^(\| `{of_set}` \| `{quantity}` \|)((?:[^|\n]*\|){{5}})$", re.MULTILINE)


def compared(before, row):
    """The cells of line_before() with what is now; an empty cell stays so."""
    now = (f"{row['median']} %", f"{row['worst']} %", f"{float(row['bias'] or 0):+} %",
           f"{float(row['a']):+} %" if row["a"] else "", row["ours"])
    cells_before = [cell.split("→")[0].strip() for cell in before.split("|")[:5]]
    return "".join(f" {old} → {new} |" if old else "  |" for old, new in zip(cells_before, now))


def cells(row):
    errors = [f"{row[error]} %" if row[error] else "" for error in ("median", "mean", "worst")]
    bias = f"{float(row['bias']):+} %" if row["bias"] else ""
    of_micro_batch = f"{float(row['a']):+} %" if row["a"] else ""
    rest = f"{row['rest']} / {row['ours']}" if row["a"] else ""
    return "".join(f" {cell} |" for cell in (row["rows"], row["predicted"], *errors, bias, row["ranking"], of_micro_batch, rest))


def page_agrees(now):
    page = page_path.read_text()
    agrees = True
    for name, row in now.items():
        found = line_of(name).search(page)
        if found is None or found.group(2) != cells(row):
            print(f"configs/validation/README.md should have for {' '.join(name)}:{cells(row)}")
            agrees = False
        beside = line_before(name).search(page)
        if beside is not None and beside.group(2) != compared(beside.group(2), row):
            print(f"configs/validation/README.md should have for {' '.join(name)}:{compared(beside.group(2), row)}")
            agrees = False
    return agrees


def check(now, before):
    same = now.keys() == before.keys()
    if not same:
        print(f"errors.csv has not the same sets: {', '.join(map(' '.join, sorted(now.keys() ^ before.keys())))}")
    for name in now.keys() & before.keys():
        if all(now[name][column] == before[name][column] for column in COLUMNS[:-1]):
            continue
        same = False
        word = "worse" if is_worse(now[name], before[name]) else "not worse, but other than"
        print(f"{' '.join(name)} is {word} accepted\n  accepted: {text_of(before[name])}\n  now:      {text_of(now[name])}")
    return page_agrees(now) and same


def main():
    now, trust, kinds, cases = measured()
    before = read(accepted_path) if accepted_path.exists() else {}
    if sys.argv[3:4] == ["--write"]:
        if not write(now, before, " ".join(sys.argv[4:])):
            return 1
        trust_path.write_text(trust)
        for path, text in pages_with(kinds).items():
            path.write_text(text)
        for statement in models_of_bytescale(cases):
            figures.check(*statement, write=True)
        return 0
    stated = [figures.check(*statement, write=False) for statement in models_of_bytescale(cases)]
    agrees = trust_agrees(trust, kinds) and all(stated)
    if check(now, before) and agrees:
        print(f"{len(now)} quantities of {len({name for name, _ in now})} sets are as good as accepted")
        return 0
    print("scripts/dev ratchet [REASON] writes what is so now, with the reason why a set got worse")
    return 1


if __name__ == "__main__":
    sys.exit(main())
