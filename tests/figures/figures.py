#!/usr/bin/env python3
"""usage: figures.py SOURCE_FOLDER HDPSIM [--write]

The figures that README.md and the pages of configs/studies and configs/validation state are those that the commands
beside them print. Each statement is a text with `{}` for every figure, and beside it the figures, computed from what a
command has written. Studies whose best static mesh no page states are compared with nothing, which saves the search
for it. Every shipped study that no statement rests on runs for a step of its first point. Statements on the rows of
`hdpsim validate` are with ratchet.py, which has them.
Where a page says something else, the text that would be right is printed and the exit code is 1; with --write the
figures are replaced in place. A row of figures in a table of configs/studies that no command is held to fails,
too. Figures of processors (times of the simulation itself, calibrations) are no part of this.
"""

import csv
import io
import json
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

# A page, and where in it the search begins: rows of tables are alike in many places.
FRONT = ("README.md", "# hdpsim")
TRUST = ("README.md", "## How far to trust it")
BYTESCALE = ("configs/validation/README.md", "# Speed-ups of ByteScale")
EXAMPLES = ("configs/studies/README.md", "## Examples")
REFERENCE = ("configs/studies/REFERENCE.md", "# What a study can say")
ANSWERS = ("configs/studies/ANSWERS.md", "# Answers of the shipped studies")
COMMANDS = ("configs/studies/COMMANDS.md", "# What else is done with a study")
PAGES_OF_FIGURES = (EXAMPLES, COMMANDS, REFERENCE, ANSWERS)
TUNE = ("configs/studies/REFERENCE.md", "## Tune")
REPLAY = ("configs/studies/REFERENCE.md", "## Replay")
TASKS = ("configs/studies/REFERENCE.md", "## Tasks that share modules")
PRODUCTION = ("configs/studies/REFERENCE.md", "## Production runs")
CUTS = ("configs/studies/REFERENCE.md", "Step times of `static` in `tiny.yaml`")


def answer(study):
    """The answer that rests on this study, among questions and answers."""
    return "configs/studies/ANSWERS.md", f"?** (`{study}`"


source = pathlib.Path(sys.argv[1]).resolve()
program = str(pathlib.Path(sys.argv[2]).resolve())

temporary = tempfile.TemporaryDirectory()
workplace = pathlib.Path(temporary.name)
(workplace / "configs").symlink_to(source / "configs")


ran = set()  # studies


def hdpsim(arguments):
    """What `hdpsim ARGUMENTS` prints, run in a folder of its own that has the project's configs."""
    words = shlex.split(arguments)
    ran.update(word for word in words if word.startswith("configs/studies/"))
    done = subprocess.run([program, "--data-dir", str(source), *words], cwd=workplace, text=True, capture_output=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"hdpsim {arguments}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


ALONE = "--set compare_to=null"


class Runs:
    """The rows of runs.csv, by point of the sweep and plan."""

    def __init__(self, arguments):
        self.rows = {}
        for row in csv.DictReader(io.StringIO(hdpsim(f"study {arguments} --format csv"))):
            self.rows[int(row["point"]), row["plan"]] = row

    def __call__(self, figure, point, plan):
        return float(self.rows[point, plan][figure])

    def step(self, point, plan):
        return self("step_time_mean_s", point, plan)

    def speedup(self, point, plan):
        return self("speedup_mean", point, plan)

    def lead(self, point, plan, baseline="static"):
        """The speed-up as the program states it, of a token: plans may hold tokens back. Also of plans that do not fit."""
        return self("tokens_per_s", point, plan) / self("tokens_per_s", point, baseline)

    def best_static(self, point, plan):
        """How the best static mesh shares a sequence: "all_gather, dispatch"."""
        row = self.rows[point, plan]
        cut = row["best_static_cut"]
        return row["best_static_sharing"] + ("" if cut == "per_document" else f", {cut}")


def links(folder, plan, point=0):
    """(name, utilisation by the main job, by others) of the links of a run, the busiest first."""
    rows = csv.DictReader((workplace / folder / "links.csv").open())
    return [(row["link"], float(row["utilisation"]), float(row["other_utilisation"])) for row in rows
            if row["plan"] == plan and int(row["point"]) == point]


# ---- How a figure is written

def digits(number, count=3):
    """So many significant digits, with the zeros at the end: 47.4, 391, 1,060."""
    exponent = int(f"{number:.{count - 1}e}".split("e")[1])
    return f"{round(number, count - 1 - exponent):,.{max(0, count - 1 - exponent)}f}"


def percent(share):
    return f"{100 * share:.0f}"


def difference(ours, theirs):
    return f"{100 * (ours / theirs - 1):+.0f}"


# ---- The statements: page, text, figures

def main_study():
    """The published grid of ByteScale: README shows one point, the page of validation all beside what was published."""
    path = "configs/studies/bytescale-7b.yaml"
    table = hdpsim(f"study {path} --set sweep.data.lengths.preset=[byted] --set sweep.data.context=[2Mi]")
    head = re.search(r"plan .*", table).group()
    block = re.search(r"( *static .*\n *hdp-naive .*\n *hdp-balance .*\n *static \(.*)\n", table).group(1)
    yield FRONT, f"{head}\ndata.lengths.preset byted, data.context 2Mi\n{{}}\n```", [block.strip()]

    runs = Runs(path)
    cells = list(published())
    differences = []
    for point, (data, context, step, naive, balance) in enumerate(cells):
        name = {"github": "GitHub", "byted": "Byted"}[data]
        static = runs.step(point, "static")
        ours = [runs.speedup(point, "hdp-naive"), runs.speedup(point, "hdp-balance")]
        differences += [100 * (ours[0] / naive - 1), 100 * (ours[1] / balance - 1)]
        yield BYTESCALE, (f"| {name} | {context} | {{}} / {step:.0f} | {{}} / {naive:.2f} ({{}} %) "
                      f"| {{}} / {balance:.2f} ({{}} %) | {{}} ({{}}) |"), \
            [f"{static:.0f}", f"{ours[0]:.2f}", difference(ours[0], naive), f"{ours[1]:.2f}",
             difference(ours[1], balance), f"{runs('over_best_static_mean', point, 'hdp-balance'):.2f}",
             runs.best_static(point, "hdp-balance")]
    ordered = all(runs.step(point, "static") > runs.step(point, "hdp-naive") > runs.step(point, "hdp-balance")
                  for point in range(len(cells)))
    yield TRUST, "| {} to {} %; {} ordering of the plans agrees |", \
        [f"{min(differences):+.0f}", f"{max(differences):+.0f}", "every" if ordered else "not every"]



def published():
    """The published grid of LLaMA-7B: lengths, context, seconds of the static step, both speed-ups."""
    text = (source / "configs/validation/bytescale.yaml").read_text()
    for data, context, rate, naive, balance in re.findall(
            r"- \[7b \w+ \w+, +llama-7b, .* (\w+), +(\w+), +([0-9.]+), +[0-9.]+, ([0-9.]+), ([0-9.]+), ~", text):
        yield data, context, 2**25 / 1024 / float(rate), float(naive), float(balance)


def accepted_errors():
    """The errors of the validation sets, which the ratchet holds against `hdpsim validate`."""
    with (source / "configs/validation/errors.csv").open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["rows"]))
    *others, largest = rows
    memory = [row["median"] for row in others if row["quantity"].startswith("memory")]
    loaders = [row["median"] for row in others if row["quantity"].startswith("loader_memory")]
    medians = sorted(float(row["median"]) for row in others if row["median"] and "memory" not in row["quantity"])
    yield TRUST, ("| {} published figures in {} sets, V100 to B200 | median error of a set {} to {} %, of memory "
                  "{} %, of what loaders of data save of it {} %;"), \
        [str(sum(int(row["rows"]) for row in rows)), str(len({row["set"] for row in rows})), f"{medians[0]:.1f}",
         f"{medians[-1]:.1f}", max(memory, key=float), max(loaders, key=float)]
    yield TRUST, "in the largest set ({} figures, small models on 2 to 8 A100) {} % |", \
        [largest["rows"], largest["median"]]


def tiny():
    path = f"configs/studies/tiny.yaml {ALONE}"
    warm = Runs(path)
    slow = Runs(f"{path} --set sweep={{}} --set 'cluster.links={{node 1 nic 3: 0.1}}' --out degraded")
    (first, busy, _), (_, busy_next, _) = links("degraded", "hdp-naive")[:2]
    yield EXAMPLES, ("A NIC at a tenth of its rate makes the naive step of `tiny.yaml` take {} s instead of {} s. "
                     "`links.csv` names it: `{}` is {} % busy in `hdp-naive`, the next link {} %."), \
        [digits(slow.step(0, "hdp-naive")), digits(warm.step(1, "hdp-naive")), first, percent(busy), percent(busy_next)]
    yield EXAMPLES, "whose rings hardly leave their nodes, takes {} s instead of {} s,", \
        [digits(slow.step(0, "hdp-balance")), digits(warm.step(1, "hdp-balance"))]
    cold = Runs(f"{path} --set mesh.connections=cold")
    groups = Runs(f"{path} --set mesh.connections=cold --set mesh.groups=communicators")
    yield EXAMPLES, ("the naive step of 128Ki takes {} s instead of {} s, and {} s if every new group makes a "
                     "communicator of its own"), \
        [digits(runs.step(1, "hdp-naive")) for runs in (cold, warm, groups)]


def two_jobs():
    runs = Runs(f"configs/studies/two-jobs.yaml {ALONE} --out two-jobs")
    times = {plan: (digits(runs.step(0, plan)), digits(runs.step(1, plan)))
             for plan in ("static", "hdp-naive", "hdp-balance")}
    yield EXAMPLES, ("Beside a job with a static mesh the step of `static` takes {} s (alone {} s), that of "
                     "`hdp-naive` {} s (alone {} s), that of `hdp-balance` {} s (alone {} s)."), \
        [times[plan][point] for plan in times for point in (1, 0)]
    name, own, other = links("two-jobs", "static", 1)[0]
    yield EXAMPLES, "`{}` is {} % busy with the static job's rings and {} % with the other job's", \
        [name, percent(own), percent(other)]


def straggler():
    runs = Runs(f"configs/studies/straggler.yaml {ALONE}")
    plans = ("static", "hdp-naive", "hdp-balance")
    longer = {(plan, point): runs.step(point, plan) / runs.step(0, plan) - 1 for plan in plans for point in range(1, 4)}
    yield EXAMPLES, "makes the balanced step of a 7B study {} % longer and the static mesh's {} %;", \
        [percent(longer["hdp-balance", 2]), percent(longer["static", 2])]
    for plan in plans:
        yield answer("straggler"), f"| `{plan}` | {{}} s | {{}} s, +{{}} % | {{}} s, +{{}} % | {{}} s, +{{}} % |", \
            [digits(runs.step(0, plan))] + [text for point in range(1, 4)
                                            for text in (digits(runs.step(point, plan)), percent(longer[plan, point]))]
    yield answer("straggler"), "| `hdp-balance` that knows of it | {} s | {} s | {} s | {} s |", \
        [digits(runs.step(point, "hdp-balance")) for point in range(4, 8)]


def placement():
    runs = Runs("configs/studies/placement.yaml")
    chosen = ("`random_fit`", "`gpu_packing`", "`topology_aware`", "`arnold`, alpha 0")
    after, beside = ([runs.step(first + i, "static") for i in range(len(chosen))] for first in (0, len(chosen)))
    yield answer("placement"), "are the fastest, by {} % over the best other choice.", [f"{100 * (min(beside[:-1]) / beside[-1] - 1):.1f}"]
    yield answer("placement"), "the same choice is {} % slower than packing,", [f"{100 * (after[-1] / after[1] - 1):.1f}"]
    for i, name in enumerate(chosen):
        spread = [f"{runs(f'{groups}_pods_mean', i, 'static'):.1f}" for groups in ("data_parallel", "pipeline")]
        yield answer("placement"), f"| {name} | {{}} pods | {{}} pods | {{}} ms | {{}} ms |", \
            [*spread, digits(1000 * after[i]), digits(1000 * beside[i])]


def production():
    runs = {run["plan"]: run for run in json.loads(hdpsim("replay configs/studies/production.yaml --format json"))["runs"]}
    parts = {"products and attention": ("linear", "attention"), "waiting for other stages": ("bubble",),
             "other waiting and communication": (), "devices that are slow": ("stragglers", "answers"),
             "checkpoints": ("checkpoints",), "steps that failures undid, and restarts": ("lost", "restarts")}
    named = {name for names in parts.values() for name in names}
    for title, names in parts.items():
        shares = [sum(hours for name, hours in run["hours_spent"].items() if (name in names if names else name not in named))
                  / run["hours"] for run in runs.values()]
        yield PRODUCTION, f"| {title} | {{}} % | {{}} % |", [f"{100 * share:.1f}" for share in shares]
    tokens = [runs[plan]["tokens_per_gpu_hour"] for plan in ("hdp-balance", "static")]
    yield PRODUCTION, "`hdp-balance` trains {} times the tokens of `static`.", [f"{tokens[0] / tokens[1]:.2f}"]


def malleus():
    for answer in ("none", "drop", "relayout", "replace"):
        run = json.loads(hdpsim(f"replay configs/studies/malleus.yaml --set production.stragglers.answer={answer} --format json"))["runs"][0]
        lost = run["hours_spent"]["stragglers"] + run["hours_spent"]["answers"]
        yield PRODUCTION, f"| `{answer}` | {{}}k | {{}} % |", \
            [f"{run['tokens_per_gpu_hour'] / 1000:.0f}", f"{100 * lost / run['hours']:.1f}"]
    hdpsim("replay configs/studies/malleus.yaml --out malleus")
    with (workplace / "malleus/events.csv").open(newline="") as file:
        events = list(csv.DictReader(file))
    slow = [float(event["slowdown"]) for event in events if event["event"] == "slow"]
    stops = [float(event["stopped_s"]) for event in events if event["event"] == "replanned"]
    yield PRODUCTION, "{} GPUs become {} to {} times slower", [str(len(slow)), f"{min(slow):.1f}", f"{max(slow):.1f}"]
    yield PRODUCTION, "and stops for {} to {} s", [f"{min(stops):.1f}", f"{max(stops):.1f}"]


def tasks_of(arguments):
    """The cases that `hdpsim tasks` compares, each with its rows by policy."""
    cases = json.loads(hdpsim(f"tasks configs/tasks/{arguments} --format json"))["cases"]
    return [(case["case"], {row["policy"]: row for row in case["rows"]}) for case in cases]


def tasks():
    clip = [rows for _, rows in tasks_of("clip.yaml")]
    for policy in clip[0]:
        yield TASKS, f"| `{policy}` | {{}} ms | {{}} ms | {{}} ms |", [digits(1e3 * rows[policy]["step_s"]) for rows in clip]
    yield TASKS, "With 64 samples `spindle` is {} times as fast as `sequential`, with 1,024 {} times, and it needs {} GB a GPU there,", \
        [f"{clip[0]['spindle']['speedup']:.2f}", f"{clip[2]['spindle']['speedup']:.2f}", digits(clip[2]["spindle"]["memory_gb"])]
    yield from published_tasks()


def published_tasks():
    titles = {"clip": "CLIP, {} tasks", "ofasys": "OFASys, {} tasks", "qwen-val": "QWen-VAL, 3 tasks"}
    found, rows = [], {}
    for job, title in titles.items():
        cases = tasks_of(f"spindle-{job}.yaml")
        found += cases
        for label, policies in cases:
            rows.setdefault(title.format(label.split()[0]), []).append(policies["spindle"])
    for title, cells in rows.items():
        three = f"| {title} | {{}} ({{}}) | {{}} ({{}}) | {{}} ({{}}) | |"
        two = f"| {title} | | | {{}} ({{}}) | {{}} ({{}}) |"
        yield TASKS, three if len(cells) == 3 else two, \
            [f"{value:.2f}" for cell in cells for value in (cell["speedup"], cell["published"])]
    spindle = [policies["spindle"] for _, policies in found]
    errors = [abs(row["speedup"] / row["published"] - 1) for row in spindle]
    yield TASKS, "The median error is {} %, the worst {} %.", [percent(statistics.median(errors)), percent(max(errors))]
    best = [max(policies[policy]["speedup"] for _, policies in found) for policy in ("optimus", "distmm")]
    yield TASKS, "`optimus` reaches {} (published at most 1.44), as fast as waves on OFASys, and `distmm` {} (1.20).", [f"{value:.2f}" for value in best]
    bound = [row["over_bound"] for row in spindle]
    yield TASKS, "Waves take {} to {} times the bound", [f"{min(bound):.2f}", f"{max(bound):.2f}"]
    sent = [max(policies[policy]["message_share"] for _, policies in found) for policy in ("spindle", "spindle-consecutive")]
    yield TASKS, "Local placement sends for up to {} % of a step (published 6 %), consecutive placement for up to {} %", \
        [percent(share) for share in sent]
    slow = tasks_of("spindle-clip.yaml --set 'cluster.node.nics={count: 2, bandwidth: 200 Gbit/s}'")
    several = [policies["spindle"] for label, policies in slow if not label.endswith(" 8")]
    gradients = [row["gradient_share"] for row in several]
    speedups = [row["speedup"] for row in several]
    yield TASKS, "These take up to {} % of a step", [percent(max(row["gradient_share"] for row in spindle))]
    yield TASKS, "gradients would take {} to {} % of the steps of CLIP on 16 and 32 GPUs, and speed-ups there would be {} to {}.", \
        [percent(min(gradients)), percent(max(gradients)), f"{min(speedups):.2f}", f"{max(speedups):.2f}"]


def roundpipe():
    runs = Runs("configs/studies/roundpipe.yaml")
    names = ("`1f1b`", "`interleaved`, 4 virtual stages", "`roundpipe-sync`", "`roundpipe`")
    for point, name in enumerate(names):
        shares = [runs(f"{part}_s", point, "static") / runs.step(point, "static") for part in ("bubble", "optimizer")]
        yield answer("roundpipe"), f"| {name} | {{}} | {{}} % | {{}} % |", \
            [f"{runs('tokens_per_s', point, 'static'):.0f}"] + [f"{100 * share:.1f}" for share in shares]


def replay():
    hdpsim("replay configs/studies/replay.yaml --out replay")
    found = json.loads((workplace / "replay/replay.json").read_text())
    plans = {plan["plan"]: plan for plan in found["plans"]}
    means = {name: plan["step_time_s"]["mean"] for name, plan in plans.items()}
    balance, naive = plans["hdp-balance"], plans["hdp-naive"]
    never = "Never" if balance["lead_lost"]["steps"] == 0 else "Sometimes"
    yield REPLAY, "1,000 steps.) {}, if the criterion is 1.4 times the speed of `static` over 20 steps:", [never]
    wait = balance["breakdown_s"]["group_wait"] / means["hdp-balance"]
    yield REPLAY, "`hdp-balance` takes {} s a step (`static` {} s, {} times as long),", \
        [digits(means["hdp-balance"]), digits(means["static"]), f"{means['static'] / means['hdp-balance']:.2f}"]
    yield REPLAY, "is the fastest plan of every step, and waits {} % of the time.", [percent(wait)]
    yield REPLAY, "`hdp-naive` ({} s) falls below 1.4 times in {} stretches of {} steps;", \
        [digits(means["hdp-naive"]), str(naive["lead_lost"]["stretches"]), str(naive["lead_lost"]["steps"])]
    lengths = [stretch["all"]["weighted_length"] / found["lengths"]["weighted_length"] - 1
               for stretch in naive["lead_lost"]["lowest"]]
    slowest = sorted({plan["worst"][0]["step"] for plan in found["plans"]})
    yield REPLAY, "The slowest step of all three is step {},", [" or ".join(str(step) for step in slowest)]
    yield REPLAY, "in the deepest the sequence of a token is {} to {} % longer than on average.", \
        [percent(min(lengths)), percent(max(lengths))]


def tune():
    hdpsim("tune configs/studies/tune.yaml --out tuned")
    found = json.loads((workplace / "tuned/tune.json").read_text())
    candidates, feasible = len(found["candidates"]), found["feasible"]
    simulated = found["closed_form_steps"] + found["full_steps"]
    share = 100 * simulated / (feasible * found["steps"])
    best, second = found["candidates"][:2]
    yield TUNE, ("With tp 1, 8Ki tokens a rank, sharded gradients (`zero: 2`) and `hdp-balance` with offload: {} s a "
                 "step, {} of 80 GB."), \
        [digits(best["step_time_s"]), digits(best["device_peak_gb"])]
    yield TUNE, "`zero: 3` takes {} % longer (step by step {} to {} %) and {} GB.", \
        [f"{100 * (second['step_time_s'] / best['step_time_s'] - 1):.1f}", f"{100 * (second['ratio']['p5'] - 1):+.1f}",
         f"{100 * (second['ratio']['p95'] - 1):+.1f}", f"{second['device_peak_gb']:.0f}"]
    static = next(each for each in found["candidates"] if each["plan"] == "static" and each["best_of_plan"])
    yield TUNE, "The best mesh of `static`, tp 2 with `a2a` and `zero: 2`, takes {} times as long", \
        [f"{static['ratio']['mean']:.2f}"]
    yield TUNE, ("{} of {} candidates can run, {} cannot and say why; {} closed-form and {} full steps are {} % of "
                    "an exhaustive search"), \
        [str(feasible), str(candidates), str(candidates - feasible), str(found["closed_form_steps"]),
         str(found["full_steps"]), f"{share:.1f}"]


def nic_bandwidth():
    runs = Runs(f"configs/studies/nic-bandwidth.yaml {ALONE}")
    for plan in ("static", "hdp-naive", "hdp-balance"):
        yield answer("nic-bandwidth"), f"| `{plan}` | {{}} s | {{}} s | {{}} s | {{}} s | {{}} s |", \
            [digits(runs.step(point, plan)) for point in range(5)]
    yield answer("nic-bandwidth"), "`hdp-balance` loses {} % when NICs have a quarter of what they had", \
        [percent(runs.step(0, "hdp-balance") / runs.step(2, "hdp-balance") - 1)]


def sharing():
    runs = Runs(f"configs/studies/sharing.yaml {ALONE}")
    for plan in ("static", "hdp-naive", "hdp-balance"):
        yield answer("sharing"), f"| `{plan}` | {{}} s | {{}} s | {{}} s |", \
            [digits(runs.step(point, plan)) for point in range(3)]
    lead = [f"{runs.lead(point, 'hdp-balance'):.1f}" for point in range(3)]
    yield answer("sharing"), "`hdp-balance` is {} times as fast as a static mesh of rings,", [lead[0]]
    yield answer("sharing"), "{} times as fast as one that gathers keys, and {} times as fast as one that trades heads.", \
        lead[1:]


def cuts():
    """Ways to cut beside ways to share; what is no combination has no figure."""
    ways = ("p2p", "all_gather", "group_cast")
    alone = f"configs/studies/tiny.yaml {ALONE} --set sweep={{}} --set data.context=128Ki --set plans=[static]"
    for cut, shared in {"per_document": ways, "per_pack": ways, "dispatch": ways[1:], "adaptive": ways[1:2]}.items():
        runs = Runs(f"{alone} --set 'sweep={{mesh.cp_comm_type: [{', '.join(shared)}]}}' --set mesh.cp_cut={cut}")
        cells = [f"{digits(runs.step(shared.index(way), 'static'))} s" if way in shared else "" for way in ways]
        row = " | ".join("{}" if cell else "" for cell in cells).replace("|  |", "| |")
        yield CUTS, f"| `{cut}` | {row} |".replace("|  |", "| |"), [cell for cell in cells if cell]


ARENA = ("static", "static {packing: trl}", "megatron-dp-balanced", "megatron-hybrid-cp",
         "megatron-hybrid-cp {packing: true}", "megatron-dynamic-cp", "flexsp", "flexsp-homogeneous", "hydraulis", "wlb",
         "skrull", "chunkflow", "distca", "distca {as: code}", "zeppelin", "verl", "openrlhf", "skyrl", "areal",
         "prime-rl", "slime", "hdp-naive", "hdp-balance")


def arena():
    """The speed-ups of every policy, in brackets where the plan does not fit, and how far hdp-balance is from the bound."""
    most = []
    for study in ("arena", "arena-fabric"):
        runs = Runs(f"configs/studies/{study}.yaml")
        points = range(9)
        for plan in ARENA:
            cells = []
            for point in points:
                text = f"{runs.lead(point, plan):.2f}"
                cells.append(text if runs.rows[point, plan]["fits"] == "true" else f"({text})")
            title = plan.replace(" {", ": {{").replace("}", "}}")
            yield answer(study), f"| `{title}` | " + " | ".join(["{}"] * 9) + " |", cells
        yield answer(study), "| best static mesh | " + " | ".join(["{}"] * 9) + " |", \
            [f"{1 / runs('over_best_static_mean', point, 'static'):.2f}" for point in points]
        yield answer(study), "| step of `hdp-balance` over the bound | " + " | ".join(["{}"] * 9) + " |", \
            [f"{runs('over_bound', point, 'hdp-balance'):.2f}" for point in points]
        most.append(f"{max(runs.speedup(point, 'hdp-balance') for point in points):.2f}")
        if study == "arena":
            over = [runs("over_bound", point, "hdp-balance") - 1 for point in points]
            first = sum(all(runs.lead(point, "hdp-balance") >= runs.lead(point, plan) for plan in ARENA)
                        for point in points)
            yield answer("arena"), "the fastest at {} of 9 points, {} to {} % above", \
                [str(first), percent(min(over)), percent(max(over))]
    yield answer("arena-fabric"), "is now up to {} times as fast as `static`,\nin place of {} times.", most[::-1]


def offload_or_recompute():
    runs = Runs(f"configs/studies/offload-or-recompute.yaml {ALONE}")
    # Points: a capacity kept, the same recomputed, the next capacity.
    rows = {"kept on the device": ("none", 0), "offloaded (`auto`)": ("auto", 0), "split (`token-wise`)":
            ("token-wise", 0), "recomputed": ("none", 1)}
    for title, (offload, recomputed) in rows.items():
        plan = f"hdp-balance {{offload: {offload}}}"
        cells = []
        for point in range(recomputed, 6, 2):
            fits = runs.rows[point, plan]["fits"] == "true"
            cells.append(f"{digits(runs.step(point, plan))} s" if fits else "does not fit")
        yield answer("offload-or-recompute"), f"| {title} | {{}} | {{}} | {{}} |", cells
    kept, offloaded, again = (runs.step(point, f"hdp-balance {{offload: {offload}}}")
                              for point, offload in ((0, "none"), (0, "auto"), (1, "none")))
    yield answer("offload-or-recompute"), "lets a long sequence use fewer ranks: {} % at a capacity of 8Ki.", \
        [percent(1 - offloaded / kept)]
    yield answer("offload-or-recompute"), "Computing everything again costs {} %,", [percent(again / kept - 1)]
    waiting = runs("group_wait_s", 5, "hdp-balance {offload: none}") / runs.step(5, "hdp-balance {offload: none}")
    yield answer("offload-or-recompute"), "fits on 80 GB ({} % of the time is waiting,", [percent(waiting)]


def memo():
    path = f"configs/studies/memo.yaml {ALONE}"
    contexts = (64, 128, 256, 512, 1024)  # Ki; points: split, then all of them recomputed
    gaps = {gap: Runs(f"{path} --set memory.fragmentation={gap}") for gap in (0, 0.047, 0.119)}
    runs = gaps[0]

    def step(point):
        text = f"{digits(runs.step(point, 'hdp-naive'))} s"
        return text if runs.rows[point, "hdp-naive"]["fits"] == "true" else f"({text})"

    def offloaded(point):
        plan = json.loads(hdpsim(f"plan configs/studies/memo.yaml --point {point}"))
        return plan["micro_batches"][0]["offload"]

    def longest(gap):
        """Ki tokens of which a device is full: its memory grows by as much with every token."""
        short, long = (gaps[gap]("device_peak_gb", point, "hdp-naive") for point in (3, 4))
        return contexts[3] + (contexts[4] - contexts[3]) * (80 - short) / (long - short)

    yield answer("memo"), "| split (`token-wise`) | {} | {} | {} | {} | {} |", [step(point) for point in range(5)]
    yield answer("memo"), "| its tokens offloaded | {} % | {} % | {} % | {} % | {} % |", \
        [percent(offloaded(point)) for point in range(5)]
    yield answer("memo"), "| recomputed | {} | {} | {} | {} | {} |", [step(point + 5) for point in range(5)]
    yield answer("memo"), "One of {}Ki tokens, if the allocator leaves no gaps, {}Ki with usual gaps (4.7 %)", \
        [f"{longest(gap):.0f}" for gap in (0, 0.047)]
    yield answer("memo"), "11.9 % of what is allocated, {}Ki: planning memory ahead is worth {} % of the length.", \
        [f"{longest(0.119):.0f}", percent(longest(0) / longest(0.119) - 1)]
    again = [runs.step(point + 5, "hdp-naive") / runs.step(point, "hdp-naive") for point in range(5)]
    yield answer("memo"), "Computing everything again takes {} to {} times as long.", \
        [f"{min(again):.2f}", f"{max(again):.2f}"]
    whole = Runs(f"{path} --set sweep=null --set data.context=64Ki --set mesh.capacity=4Ki "
                 "--set 'plans=[{hdp-naive: {offload: 1.0}}]'")
    yield answer("memo"), "offloading all would take {} % longer at 64Ki.", \
        [percent(whole.step(0, "hdp-naive") / runs.step(0, "hdp-naive") - 1)]
    half = next(float(row["predicted"]) for row in csv.DictReader(io.StringIO(hdpsim("validate memo --format csv")))
                if row["case"] == "7B 1Mi")
    layers, hidden, tokens, peak = 32, 4096, 2**20, 8 * 312e12  # 6 n h s^2 FLOPs are half of attention's squares
    full = half + 6 * layers * hidden * tokens**2 / peak / runs.step(4, "hdp-naive")
    yield answer("memo"), "predicted are {} %; where the whole square counts, {} %,", \
        [f"{100 * half:.1f}", f"{100 * full:.0f}"]


def scaling():
    runs = Runs(f"configs/studies/scaling.yaml {ALONE}")
    titles = {"static": "`static`", "hdp-balance {offload: auto, search: none}": "`hdp-balance: {{search: none}}`",
              "hdp-balance {offload: auto}": "`hdp-balance`"}
    rate = {(plan, point): runs("tokens_per_s", point, plan) / 1e6 for plan in titles for point in range(5)}
    for plan, title in titles.items():
        cells = [f"{rate[plan, point]:.2f}" if rate[plan, point] < 10 else digits(rate[plan, point])
                 for point in range(5)]
        yield answer("scaling"), f"| {title} | {{}} | {{}} | {{}} | {{}} | {{}} |", cells
    kept = rate["hdp-balance {offload: auto}", 2] / 16 / rate["hdp-balance {offload: auto}", 0]
    yield answer("scaling"), "Up to 16,384 GPUs the balanced plan keeps {} % of what each of 1,024 GPUs does.", \
        [percent(kept)]


def context_length():
    runs = Runs(f"configs/studies/context-length.yaml {ALONE}")
    plans = ("static", "hdp-naive", "hdp-balance")
    for plan in plans:
        yield answer("context-length"), f"| `{plan}` | {{}} | {{}} | {{}} | {{}} |", \
            [digits(runs("tokens_per_s", point, plan) / 1e3) for point in range(4)]
    peaks = [percent(runs("mfu", point, "hdp-balance")) for point in range(4)]
    yield answer("context-length"), "though its share of the peak grows from {} to {} %", [peaks[0], peaks[-1]]
    yield answer("context-length"), "from 32Ki to 2Mi its step takes {} times as long, the balanced one {} times.", \
        [digits(runs.step(3, "static") / runs.step(0, "static"), 2),
         digits(runs.step(3, "hdp-balance") / runs.step(0, "hdp-balance"), 2)]


def attention_servers():
    runs = Runs(f"configs/studies/attention-servers.yaml {ALONE}")
    for plan in ("static", "wlb", "hdp-balance", "distca"):
        yield answer("attention-servers"), f"| `{plan}` | " + " | ".join(["{}"] * 4) + " |", \
            [digits(runs.step(point, plan), 3) for point in range(4)]
    waits = [runs("group_wait_s", point, "hdp-balance") / runs.step(point, "hdp-balance") for point in (0, 1)]
    yield answer("attention-servers"), "`hdp-balance` waits {} and {} % of its time", [percent(wait) for wait in waits]


HYBRIDS = {"Llama-3 8B": "all tokens", "Nemotron-H 8B": "Mamba-2", "Qwen3-32B": "all tokens",
           "Gemma-3 27B": "windows", "Qwen3.5-27B": "gated delta nets"}


def hybrids():
    """Points: of every model 64Ki, then 1Mi."""
    runs = Runs(f"configs/studies/hybrids.yaml {ALONE}")
    for model, (title, layers) in enumerate(HYBRIDS.items()):
        cells = []
        for point in (2 * model, 2 * model + 1):
            cells += [digits(runs.step(point, "hdp-balance")), *(f"{runs.lead(point, plan):.2f}"
                                                                 for plan in ("hdp-naive", "hdp-balance"))]
        yield answer("hybrids"), f"| {title} | {layers} | " + " | ".join(["{}"] * 6) + " |", cells


def sparse_attention():
    """Points: of every way to see keys 64Ki, then 1Mi."""
    runs = Runs(f"configs/studies/sparse-attention.yaml {ALONE}")
    for way, title in enumerate(("all (DeepSeek-V3)", "chosen (DeepSeek-V3.2)", "chosen for four layers (GLM-5.2)")):
        cells = []
        for point in (2 * way, 2 * way + 1):
            step = runs.step(point, "hdp-balance")
            cells += [digits(step), f"{runs.lead(point, 'hdp-balance'):.2f}",
                      percent(runs("attention_s", point, "hdp-balance") / step)]
        yield answer("sparse-attention"), f"| {title} | " + " | ".join(["{}"] * 6) + " |", cells
    changes = [runs.step(chosen, "hdp-balance") / runs.step(all_keys, "hdp-balance") - 1
               for all_keys, chosen in ((0, 2), (1, 3))]
    yield answer("sparse-attention"), "takes {} % longer at 64Ki with tp 8, and {} % less at 1Mi", \
        [percent(changes[0]), percent(-changes[1])]


def deepseek_v3():
    """Points: of 1F1B and of DualPipe copies one by one, then tokens once to each node."""
    runs = Runs(f"configs/studies/deepseek-v3.yaml {ALONE}")
    for schedule, (title, first) in {"1f1b": ("1F1B", 0), "dualpipe": ("DualPipe", 2)}.items():
        cells = []
        for point in (first, first + 1):
            step = runs.step(point, "static")
            cells += [digits(step), percent(runs("tp_comm_s", point, "static") / step),
                      percent(runs("bubble_s", point, "static") / step)]
        yield answer("deepseek-v3"), f"| {title} | " + " | ".join(["{}"] * 6) + " |", cells
    yield answer("deepseek-v3"), "where the study gives {}.", [digits(runs.step(3, "static"))]
    yield answer("deepseek-v3"), "DualPipe {} GB of 80 are needed,", [digits(runs("device_peak_gb", 3, "static"))]


def moe():
    runs = Runs(f"configs/studies/moe.yaml {ALONE}")

    def cells(plan, routing):  # Points: even and uneven routing of each mesh.
        return [digits(runs("tokens_per_s", point, plan) / 1e3) for point in range(routing, 6, 2)]

    rows = {"`static`, even routing": ("static", 0), "`hdp-naive`": ("hdp-naive", 0),
            "`hdp-balance`": ("hdp-balance", 0), "`hdp-balance: {{balance: dp}}`": ("hdp-balance {balance: dp}", 0),
            "`static`, `{{zipf: 0.5}}`": ("static", 1), "`hdp-balance`, `{{zipf: 0.5}}`": ("hdp-balance", 1)}
    for title, (plan, routing) in rows.items():
        yield answer("moe"), f"| {title} | {{}} | {{}} | {{}} |", cells(plan, routing)
    gains = [runs("tokens_per_s", point, "hdp-balance") / runs("tokens_per_s", point, "hdp-balance {balance: dp}") - 1
             for point in range(2, 6)]
    yield answer("moe"), "Planning in waves wins {} to {} % over `balance: dp`", \
        [digits(100 * gain, 2) for gain in (min(gains), max(gains))]
    meshes = "[{tp: 4, pp: 1, ep: %s, capacity: 8Ki}, {tp: 2, pp: 1, ep: %s, capacity: 4Ki}]"
    alone = f"configs/studies/moe.yaml {ALONE} --set plans=[hdp-balance]"
    inside = Runs(f"{alone} --set 'sweep={{mesh: {meshes % (4, 2)}}}'")
    yield answer("moe"), "for which there is no memory, it would do {} and {})", \
        [digits(inside("tokens_per_s", point, "hdp-balance") / 1e3) for point in range(2)]
    padded = Runs(f"{alone} --set moe.across=padding --set 'sweep={{mesh: {meshes % (8, 8)}}}'")
    costs = [1 - padded("tokens_per_s", point, "hdp-balance") / runs("tokens_per_s", 2 + 2 * point, "hdp-balance")
             for point in range(2)]
    yield answer("moe"), "costs the balanced plan at most {} %", [digits(100 * max(costs), 1)]
    waits = [runs("group_wait_s", point, "hdp-balance") / runs.step(point, "hdp-balance") for point in (2, 4)]
    yield answer("moe"), "the balanced plan waits {} and {} % of its time", [percent(wait) for wait in waits]
    lost = [1 - runs("tokens_per_s", point + 1, "hdp-balance") / runs("tokens_per_s", point, "hdp-balance")
            for point in (0, 2, 4)]
    yield answer("moe"), "and at most {} % of the rate are gone, wherever the group lies", [percent(max(lost))]


def lsh_moe():
    runs = Runs("configs/studies/lsh-moe.yaml")
    titles = ["no compression", "`dispatch: per_node`", "`rate: 0.2`, for nothing", "`rate: 0.2`, 64 columns", "`rate: 0.2`",
              "cosine of 0.99, two hashes", "cosine of 0.99, six hashes"]
    plain, per_node, _, narrow, whole, two, six = range(len(titles))

    def gain(point):
        return percent(1 - runs.step(point, "static") / runs.step(plain, "static"))

    def rate(hashes):
        printed = hdpsim(f"compress --similarity 0.99 --hashes {hashes} --width 2048 --format json")
        return f"{json.loads(printed)['rates'][0]['rate']:.2f}"

    for row, title in enumerate(titles):
        yield answer("lsh-moe"), f"| {title} | {{}} | {{}} |", \
            [digits(runs.step(row + points, "static")) for points in (0, len(titles))]
    yield answer("lsh-moe"), "takes {} % less with NICs of 400 Gbit/s.", [gain(whole)]
    yield answer("lsh-moe"), "of 64 columns would gain {} %.", [gain(narrow)]
    yield answer("lsh-moe"), "are compressed only to {} by six", [rate(6)]
    yield answer("lsh-moe"), "hashes, which gains {} %, and to {} by two.", [gain(six), rate(2)]
    yield answer("lsh-moe"), "leaves results as they are, and gains\n{} %.", [gain(per_node)]


def ablation():
    runs = Runs(f"configs/studies/bytescale-ablation.yaml {ALONE}")
    order = ["static", "hdp-naive {offload: none}", "hdp-naive {offload: auto}", "hdp-balance"]
    remote = [runs.step(1, plan) for plan in order]
    increments = [f"{before / after:.2f}" for before, after in zip(remote, remote[1:])]
    speedups = [f"{remote[0] / step:.2f}" for step in remote[1:]]
    titles = ["dynamic communication | `hdp-naive: {{offload: none}}`",
              "selective offload | `hdp-naive: {{offload: auto}}`",
              "balance | `hdp-balance: {{offload: auto}}`"]
    yield answer("bytescale-ablation"), "| static mesh | `static` | {} s |", [digits(remote[0])]
    for title, step, increment, speedup, (published_increment, published_speedup) in zip(
            titles, remote[1:], increments, speedups, (("1.59", "1.59"), ("1.26", "2.01"), ("1.84", "3.69"))):
        yield answer("bytescale-ablation"), \
            f"| {title} | {{}} s | {{}} | {published_increment} | {{}} | {published_speedup} |", \
            [digits(step), increment, speedup]
    spmd = runs.step(0, "hdp-balance")
    yield answer("bytescale-ablation"), "| remote data loader | the same, `loading` | {} s without | {} |", \
        [digits(spmd), f"{spmd / remote[3]:.2f}"]


def loading():
    runs = Runs(f"configs/studies/loading.yaml {ALONE}")
    memory = {point: digits(runs("loader_gb", point, "hdp-balance")) for point in range(7)}
    node = {point: digits(runs("loader_node_gb", point, "hdp-balance")) for point in range(7)}
    yield answer("loading"), "| of each GPU | {} GB | {} GB | {} GB |", [memory[0], memory[2], node[2]]
    yield answer("loading"), "| of each rank of 4 GPUs | | {} GB | {} GB |", [memory[3], node[3]]
    yield answer("loading"), "| of each source | {} GB | {} GB | {} GB |", [memory[1], memory[4], node[4]]
    yield answer("loading"), "takes {} s and is {} times as fast as that of `static` whoever loads.", \
        [digits(runs.step(4, "hdp-balance")), f"{runs.step(4, 'static') / runs.step(4, 'hdp-balance'):.2f}"]
    stall = {point: 10 * runs("data_wait_s", point, "hdp-balance") for point in (5, 6)}
    yield answer("loading"), "stops everybody for {} s, the 30 s of its restart less", [f"{stall[5]:.1f}"]
    yield answer("loading"), "if it has a shadow, for {} s, with {} GB.", [f"{stall[6]:.1f}", memory[6]]


# ---- Pages against statements

NUMBER = r"[-+]?[0-9](?:[0-9.,]*[0-9])?"


def pattern_of(text, figures):
    """The text with any figures of the same kind, each a group, and with any white space where it has some."""
    pieces = re.split(r"\{\}", text.replace("{{", "\0").replace("}}", "\1"))
    literals = [re.sub(r"(?:\\\s|\s)+", r"\\s+", re.escape(piece.replace("\0", "{").replace("\1", "}")))
                for piece in pieces]
    pattern = literals[0]
    for figure, literal in zip(figures, literals[1:]):
        kind = NUMBER if re.fullmatch(NUMBER, figure) else "[^`]+?" if "\n" in figure else "[^|`]{1,40}?"
        pattern += f"({kind}){literal}"
    return re.compile(pattern)


held = set()  # (page, line) of what a statement was found in


def check(place, text, figures, write):
    """Whether the page states these figures. Puts them there if it is to write."""
    page, start = place
    path = source / page
    content = path.read_text()
    right = text.format(*figures)
    found = pattern_of(text, figures).search(content, content.index(start))
    if found is None:
        print(f"{page} has no such sentence any more; by the program it would be:\n  {right}\n")
        return False
    first = content.count("\n", 0, found.start())
    held.update((page, line) for line in range(first, first + found.group().count("\n") + 1))
    if [group.split() for group in found.groups()] == [figure.split() for figure in figures]:
        return True
    print(f"{page} states\n  {found.group()}\nbut the program gives\n  {right}\n")
    if not write:
        return False
    for group in range(len(figures), 0, -1):
        content = content[:found.start(group)] + figures[group - 1] + content[found.end(group):]
    path.write_text(content)
    return True


FIGURE = re.compile(r"\(?[-+]?[0-9][0-9.,]*\)?( (s|GB|%)\b.*)?")


def rows_without_a_command(page, start):
    """Rows of tables below `start` with two or more figures that no statement holds; headings are none."""
    lines = (source / page).read_text().split("\n")
    rows = []
    for number in range(lines.index(start), len(lines)):
        cells = [cell.strip() for cell in lines[number].strip("|").split("|")] if lines[number].startswith("|") else []
        is_heading = number + 1 < len(lines) and lines[number + 1].startswith("|--")
        figures = sum(FIGURE.fullmatch(cell) is not None for cell in cells)
        if figures >= 2 and not is_heading and (page, number) not in held:
            rows.append(f"{page}:{number + 1}: no command is held to this row of figures: {lines[number]}")
    return rows


def main():
    write = sys.argv[3:] == ["--write"]
    statements = [statement for command in (main_study, accepted_errors, tiny, two_jobs, straggler, placement, production, malleus, tasks, replay, tune,
                                            nic_bandwidth, sharing, cuts, arena, offload_or_recompute, memo, scaling, context_length, hybrids,
                                            sparse_attention, deepseek_v3, attention_servers, moe, lsh_moe, roundpipe, ablation,
                                            loading)
                  for statement in command()]
    for study in sorted((source / "configs/studies").glob("*.yaml")):
        if f"configs/studies/{study.name}" not in ran:
            hdpsim(f"study configs/studies/{study.name} {ALONE} --set data.steps=1 --set sweep=null")
    wrong = [statement for statement in statements if not check(*statement, write)]
    print(f"{len(statements)} statements, {len(wrong)} of them wrong")
    if wrong:
        print("scripts/dev figures puts the right figures into the pages")
    loose = [row for page in PAGES_OF_FIGURES for row in rows_without_a_command(*page)]
    print(*loose, sep="\n")
    return 1 if wrong or loose else 0


if __name__ == "__main__":
    sys.exit(main())
