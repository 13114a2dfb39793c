"""The example that people copy trains by two plans: equal losses that fall, times measured and predicted beside.

The command that it prints for its traces compares them: torch_example_test.py HDPSIM
"""

import json
import os
import subprocess
import sys
import tempfile

import torch_needed  # noqa: F401

source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
example = os.path.join(source, "configs", "studies", "torch_llama.py")
traces = tempfile.TemporaryDirectory()
run = subprocess.run([sys.executable, "-B", example, "--steps", "3", "--tokens", "700", "--trace", traces.name],
                     capture_output=True, text=True)
print(run.stdout)
assert run.returncode == 0, run.stderr


def is_ratio(ratio, above, below):
    """Within what printing does: seconds are rounded to 0.001, their ratio to 0.01."""
    return abs(ratio * below - above) <= 0.0005 * (1 + ratio) + 0.005 * (below + 0.0005) + 1e-9


rows = [[float(cell) for cell in line.split()] for line in run.stdout.splitlines() if line.strip()[:1].isdigit()]
assert len(rows) == 3
for step, static, balanced, measured, measured_balanced, ratio, predicted, predicted_balanced, predicted_ratio in rows:
    assert abs(static - balanced) < 1e-3
    assert min(measured, measured_balanced, predicted, predicted_balanced) > 0
    assert is_ratio(ratio, measured, measured_balanced)
    assert is_ratio(predicted_ratio, predicted, predicted_balanced)
assert rows[-1][1] < rows[0][1], "the loss does not fall"

# Every rank ran what the plan gives it, each of the passes computes, and the parts sum to the step.
commands = [line for line in run.stdout.splitlines() if line.startswith("hdpsim compare ")]
assert len(commands) == 2
for command in commands:
    command = command.replace("hdpsim", sys.argv[1], 1)
    people = subprocess.run(command, shell=True, capture_output=True, text=True)
    print(people.stdout)
    assert people.returncode == 0, people.stderr
    assert "4 traces of CPUs" in people.stdout and "another cluster" not in people.stdout
    compared = json.loads(subprocess.run(command + " --format json", shell=True, capture_output=True, text=True).stdout)
    assert compared["step"] == 1 and len(compared["ranks"]) == 4 and compared["notes"] == []
    assert len(compared["passes"]) % 2 == 0 and compared["passes"]
    for one in compared["passes"]:
        seconds = {part["activity"]: part["measured_s"] for part in one["activities"]}
        assert seconds["attention"] > 0 and seconds["products and memory-bound"] > 0
        assert abs(sum(seconds.values()) - one["seconds"]["measured"]) < 1e-9
    for rank in compared["ranks"]:
        for side in "measured", "simulated":
            own = [one["seconds"][side] for one in compared["passes"] if one["rank"] == rank["rank"]]
            between = [part[f"{side}_s"] for part in rank["between_passes"]]
            assert min(between) > -1e-6, rank
            assert abs(sum(own) + sum(between) - rank["step_time_s"][side]) < 1e-9
    assert any(one["activities"][2]["measured_s"] > 0 for one in compared["passes"]), "nobody waits for a message"
traces.cleanup()
