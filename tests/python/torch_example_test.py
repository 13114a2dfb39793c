"""The example that people copy trains by two plans: equal losses that fall, times measured and predicted beside."""

import os
import subprocess
import sys

import torch_needed  # noqa: F401

source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
example = os.path.join(source, "configs", "studies", "torch_llama.py")
run = subprocess.run([sys.executable, "-B", example, "--steps", "3", "--tokens", "700"], capture_output=True, text=True)
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
