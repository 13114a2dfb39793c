"""Tests of hdpsim.torch begin with `import torch_needed`: it finds a Python that has PyTorch, or says that none has."""

import os
import sys


def _lacking():
    """What this Python lacks; empty if nothing."""
    try:
        import numpy  # noqa: F401
        import torch.distributed

        import hdpsim  # noqa: F401  built for one version of Python
    except ImportError as error:
        return str(error).splitlines()[0]
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        return "PyTorch without gloo"
    return ""


lacking = _lacking()
if lacking:
    # Distributions install PyTorch for their own Python, where another one may come first on the path.
    others = [python for python in ("/usr/bin/python3",) if os.path.exists(python)]
    if others and "HDPSIM_TORCH_TEST" not in os.environ:
        os.execve(others[0], [others[0], *sys.argv], {**os.environ, "HDPSIM_TORCH_TEST": "1"})
    print(f"NOT RUN: {os.path.basename(sys.argv[0])} (Debian: python3-torch): {lacking}")
    sys.exit(0)
os.environ.setdefault("OMP_NUM_THREADS", "1")
