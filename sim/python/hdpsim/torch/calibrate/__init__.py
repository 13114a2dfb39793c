"""Measures the kernels of your PyTorch, and writes samples of which `hdpsim calibrate --from-samples` makes a profile.

    torchrun --nproc_per_node 8 -m hdpsim.torch.calibrate --model llama2-70b --out mine.samples.jsonl
    python3 -m hdpsim.torch.calibrate --processes 2 --quick --out mine.samples.jsonl      # without torchrun
    hdpsim calibrate --from-samples mine.samples.jsonl --like h100-published --out mine.yaml

Measured are matrix products, variable-length attention by the kernels that the runtime takes (hdpsim.torch.kernels),
operations that memory bounds, copies to and from page-locked memory, messages within and between nodes, kernels beside
copies and messages, and what the host needs to issue an operation. All ranks measure at the same time, as they compute
in training; rank 0 alone writes, its own times of kernels and the slowest rank's of messages.

What is for GPUs is written after the documentation of PyTorch and has NOT BEEN RUN on one by this project's tests.
"""

from .command import main

__all__ = ["main"]
