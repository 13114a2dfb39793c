#!/usr/bin/env python3
"""How much network does hybrid data parallelism need?

A study in Python, to be read from top to bottom and run cell by cell (`# %%`) where the editor knows how:

    python3 configs/studies/bandwidth.py
"""

# %% A study is a dictionary with the keys of a study file. 32 GPUs, steps of a million tokens, long documents.
import hdpsim

study = {
    "name": "bandwidth",
    "cluster": {"preset": "a100-rail-3tier", "gpus": 32},
    "model": {"preset": "llama-7b"},
    "profile": "bytescale-implied",
    "data": {"lengths": {"preset": "github"}, "context": "128Ki", "tokens_per_step": "1Mi", "steps": 4},
    "mesh": {"tp": 2, "capacity": "8Ki"},
    "plans": [{"static": {"cp": "auto"}}, {"hdp-naive": {"offload": "auto"}}, {"hdp-balance": {"offload": "auto"}}],
}

# %% What is wrong with it? Nothing; a NIC without a unit would be, and the answer says what to write.
assert hdpsim.check(study) == []
for problem in hdpsim.check(study, overrides={"cluster.node.nics.bandwidth": 200}):
    print(problem)

# %% Python is the sweep where values depend on one another. Each run is a moment of four simulated steps a plan.
rates = [25, 50, 100, 200, 400]  # Gbit/s of every NIC
rows = []
for rate in rates:
    result = hdpsim.run(study, overrides={"cluster.node.nics.bandwidth": f"{rate} Gbit/s"})
    columns = result.columns()
    rows.append(dict(zip(columns["plan"], columns["tokens_per_s"])))

# %% Tokens per second. Columns are plain lists, so that any plotting library takes them; `result.frame()` is a pandas
# DataFrame, `result.page("report.html")` the page with the charts.
plans = list(rows[0])
print(f"{'NIC':>8}  " + "  ".join(f"{plan:>12}" for plan in plans))
for rate, row in zip(rates, rows):
    print(f"{rate / 8:>5.1f} GB/s" + "".join(f"  {row[plan]:>12,.0f}" for plan in plans))

# %% What does each plan keep when the network is a sixteenth? A faster network never costs anything, and the plan that
# rings least over it loses least.
for plan in plans:
    assert all(slow[plan] <= fast[plan] * 1.001 for slow, fast in zip(rows, rows[1:]))
    kept = rows[0][plan] / rows[-1][plan]
    print(f"{plan} keeps {kept:.0%} of its rate with {rates[0] / 8} instead of {rates[-1] / 8} GB/s")
