#!/usr/bin/env python3
"""Times attention of PyTorch (scaled_dot_product_attention with cuDNN and with FlashAttention-2) on the first GPU.

usage: scripts/sdpa_bench.py [--quick] [--out FILE] [--against FILE]

The shapes are those of hdpsim_gpu_bench: 64 query heads, 8 key-value heads, bf16, one document. --against reads what that
program wrote and adds the ratios of its speed to PyTorch's. FLOPs are 4 heads dim area forward and 2.5 times that backward.
Exit code 0; 3 where there is no PyTorch or no GPU for it.
"""

import argparse
import json
import os
import statistics
import sys

HEADS, KV_HEADS = 64, 8
# Backward of PyTorch's tensors with one gradient each; what is compared runs for milliseconds, so that its launches hide.
RUNS_BUDGET_S, FEWEST_RUNS, MOST_RUNS = 0.15, 5, 100
GATE_CYCLES = 20_000_000  # about 10 ms: the launches of all runs are queued meanwhile

# Least ratio of our speed to PyTorch's that the project aims at, from 4096 tokens on.
GOALS = {
    ("cudnn", "forward", "full", 128): 0.90,
    ("cudnn", "forward", "causal", 128): 0.85,
    ("cudnn", "forward", "full", 64): 0.85,
    ("cudnn", "forward", "causal", 64): 0.85,
    ("cudnn", "backward", "full", 128): 0.75,
    ("cudnn", "backward", "causal", 128): 0.75,
    ("flash", "forward", "full", 128): 0.85,
    ("flash", "forward", "causal", 128): 0.85,
}


def timed(torch, work):
    """Seconds of each of several runs, queued behind a kernel that spins, by events of the device."""
    for _ in range(2):
        work()
    torch.cuda.synchronize()
    runs = FEWEST_RUNS
    for attempt in range(2):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
        torch.cuda._sleep(GATE_CYCLES)
        events[0].record()
        for event in events[1:]:
            work()
            event.record()
        torch.cuda.synchronize()
        seconds = [a.elapsed_time(b) * 1e-3 for a, b in zip(events, events[1:])]
        runs = max(FEWEST_RUNS, min(MOST_RUNS, int(RUNS_BUDGET_S / statistics.median(seconds))))
    return seconds


def measure(torch, backend_name, backend, dim, length, causal):
    """Forward and backward of one shape. Query groups by enable_gqa, or by copied keys and values where that is refused."""
    from torch.nn.attention import sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention as attention

    def tensor(heads):
        memory = torch.randn(1, length, heads, dim, device="cuda", dtype=torch.bfloat16)
        return memory.transpose(1, 2).requires_grad_()

    q, k, v = tensor(HEADS), tensor(KV_HEADS), tensor(KV_HEADS)
    d_o = torch.randn(1, length, HEADS, dim, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    grouped = True
    with sdpa_kernel(backend):
        try:
            attention(q, k, v, is_causal=causal, enable_gqa=True)
        except (RuntimeError, TypeError):
            grouped = False
            k, v = tensor(HEADS), tensor(HEADS)
        options = {"is_causal": causal, "enable_gqa": True} if grouped else {"is_causal": causal}
        with torch.no_grad():
            forward = timed(torch, lambda: attention(q, k, v, **options))
        o = attention(q, k, v, **options)
        backward = timed(torch, lambda: torch.autograd.grad(o, (q, k, v), d_o, retain_graph=True))

    area = length * (length + 1) / 2 if causal else length * length
    flops = 4 * HEADS * dim * area
    for name, seconds, work in (("forward", forward, flops), ("backward", backward, 2.5 * flops)):
        ordered = sorted(seconds)
        yield {
            "kernel": "attention",
            "backend": backend_name,
            "pass": name,
            "mask": "causal" if causal else "full",
            "dim": dim,
            "heads": HEADS,
            "kv_heads": KV_HEADS if grouped else HEADS,
            "length": length,
            "median_s": statistics.median(ordered),
            "p10_s": ordered[round(0.1 * (len(ordered) - 1))],
            "p90_s": ordered[round(0.9 * (len(ordered) - 1))],
            "runs": len(ordered),
            "flops": work / statistics.median(ordered),
        }


def ratios(results, ours):
    """Our speed over PyTorch's for every shape that both measured: the best path over cuDNN, the portable one over flash."""
    def key(result):
        return tuple(result.get(name) for name in ("pass", "mask", "dim", "length"))

    paths = {"cudnn": "best", "flash": "portable"}
    for theirs in results:
        for mine in ours["results"]:
            if mine.get("kernel") != "attention" or "mean_document" in mine or "keys" in mine:
                continue
            if mine["path"] != paths[theirs["backend"]] or key(mine) != key(theirs):
                continue
            goal = GOALS.get((theirs["backend"], mine["pass"], mine["mask"], mine["dim"]))
            value = mine["flops"] / theirs["flops"]
            entry = {
                "name": "{path}_{pass}_{mask}_d{dim}_{length}_of_".format(**mine) + theirs["backend"],
                "value": value,
            }
            if goal is not None and mine["length"] >= 4096:
                entry |= {"goal": goal, "met": value >= goal}
            yield entry


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4096 and 8192 tokens only")
    parser.add_argument("--out", default="sdpa.json")
    parser.add_argument("--against", help="what hdpsim_gpu_bench wrote")
    options = parser.parse_args()
    try:
        import torch
        from torch.nn.attention import SDPBackend
    except ImportError as error:
        print(f"error: no PyTorch: {error}", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("error: PyTorch sees no GPU", file=sys.stderr)
        return 3

    report = {
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "results": [],
        "ratios": [],
        "errors": [],
    }
    def write():
        with open(options.out + ".part", "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
            file.write("\n")
        os.replace(options.out + ".part", options.out)

    lengths = (4096, 8192) if options.quick else (2048, 4096, 8192, 16384)
    for backend_name, backend in (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION)):
        for dim in (128, 64):
            for length in lengths:
                for causal in (True, False):
                    try:
                        for result in measure(torch, backend_name, backend, dim, length, causal):
                            report["results"].append(result)
                            print("{backend} {pass} {mask} d{dim} {length}: ".format(**result)
                                  + f"{result['median_s'] * 1e3:.3f} ms, {result['flops'] * 1e-12:.0f} TFLOP/s", flush=True)
                    except RuntimeError as error:
                        where = f"{backend_name} d{dim} {length} {'causal' if causal else 'full'}"
                        report["errors"].append({"part": where, "message": str(error)})
                        print(f"error: {where}: {error}", file=sys.stderr)
                    write()
    if options.against:
        with open(options.against, encoding="utf-8") as file:
            report["ratios"] = list(ratios(report["results"], json.load(file)))
        for entry in report["ratios"]:
            goal = f" (goal {entry['goal']:.2f}: {'met' if entry['met'] else 'MISSED'})" if "goal" in entry else ""
            print(f"{entry['name']}: {entry['value']:.3f}{goal}")
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
