"""The command line of hdpsim.torch.calibrate."""

from __future__ import annotations

import argparse
import os
import re
import socket
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing

from ..versions import Unsupported
from ..watch import Stuck, Watch
from . import device as devices
from . import grid
from .clock import Stopping, clock_of, host_issue_seconds, launch_seconds
from .grid import WrongInput
from .kernels import Kernels, Sizes
from .samples import SampleFile
from .session import Limits, Measurer, Result, Speed, Together, measure, say
from .traffic import Copies, Messages

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
WRONG, REFUSED, STUCK = 2, 3, 70  # exit codes, as hdpsim's


def seconds(text: str) -> float:
    found = re.fullmatch(r"([0-9.]+) *(s|min|h)?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is no time: write 90s or 8min")
    return float(found.group(1)) * {None: 1, "s": 1, "min": 60, "h": 3600}[found.group(2)]


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hdpsim.torch.calibrate", description="Measure PyTorch's kernels, and write "
                                     "samples for hdpsim calibrate --from-samples.")
    parser.add_argument("--out", type=Path, default=Path("torch.samples.jsonl"), help="the file of samples")
    parser.add_argument("--resume", action="store_true", help="go on with the file: what it has is not measured again")
    parser.add_argument("--time-limit", type=seconds, metavar="TIME",
                        help="measure no longer, but for the first of each family (default: 8min, with --quick 90s)")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, two rounds")
    parser.add_argument("--processes", type=int, metavar="COUNT",
                        help="start so many ranks on this machine, without torchrun")
    parser.add_argument("--backend", choices=["auto", "cuda", "cpu"], default="auto")
    parser.add_argument("--dtype", choices=list(TYPES), help="of elements (default: bf16, on a CPU fp32)")
    parser.add_argument("--attention", default="auto",
                        help="the runtime's kernel: auto, flash_attn, varlen_attn, aten, plain")
    parser.add_argument("--device-name", help="the name that clusters use: H100-80GB (default: of PyTorch's name)")
    sizes = parser.add_argument_group("whose layers are measured")
    sizes.add_argument("--model", help="a shipped model, or a config.json")
    sizes.add_argument("--study", help="the model of this study")
    for name in ("hidden", "inner", "heads", "kv-heads", "head-dim", "vocabulary"):
        sizes.add_argument(f"--{name}", type=int, metavar="COUNT")
    parser.add_argument("--longest", type=int, default=131072, metavar="TOKENS", help="longest document of attention")
    parser.add_argument("--seed", type=int, default=1, help="of the order of later rounds")
    parser.add_argument("--patience", type=seconds, default=120, metavar="TIME",
                        help="how long a rank waits for another one before all end (default: 120s)")
    return parser.parse_args(arguments)


def sizes_of(asked: argparse.Namespace, device: torch.device) -> Sizes:
    if asked.model and asked.study:
        raise WrongInput("--model and --study name the model twice: leave one out")
    model = grid.model_of_study(asked.study) if asked.study else asked.model
    sizes = grid.sizes_of_model(model) if model else grid.USUAL[device.type]
    stated = {"hidden": asked.hidden, "inner": asked.inner, "heads": asked.heads, "kv_heads": asked.kv_heads,
              "dim": asked.head_dim, "vocabulary": asked.vocabulary}
    sizes = Sizes(**{**vars(sizes), **{key: value for key, value in stated.items() if value is not None}})
    if min(sizes.hidden, sizes.inner, sizes.heads, sizes.kv_heads, sizes.dim) < 1 or sizes.heads % sizes.kv_heads:
        raise WrongInput(f"impossible sizes: {sizes}")
    return sizes


class Launch:
    """This process among the ranks that torchrun, or --processes, has started."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.per_node = int(os.environ.get("LOCAL_WORLD_SIZE", self.world))
        on_gpu = asked.backend == "cuda" or (asked.backend == "auto" and torch.cuda.is_available())
        if on_gpu and not torch.cuda.is_available():
            raise Unsupported("--backend cuda: PyTorch finds no GPU here")
        self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if on_gpu else torch.device("cpu")
        if on_gpu:
            torch.cuda.set_device(self.device)
        self.backend: str | None = None
        self.watch: Watch | None = None
        self.limit = timedelta(seconds=asked.patience)
        control = None
        if self.world > 1:
            self.backend = "nccl" if on_gpu else "gloo"
            dist.init_process_group(self.backend, timeout=self.limit)
            control = dist.new_group(backend="gloo", timeout=self.limit)
            self.watch = Watch(dist.group.WORLD, self.rank, self.world, asked.patience)
        self.together = Together(self.rank, self.world, self.watch, control)

    def close(self) -> None:
        if self.watch is not None:
            self.watch.close()
            dist.destroy_process_group()


def run(asked: argparse.Namespace) -> Result:
    """Measures on this rank, together with all others. Rank 0's result says what came of it."""
    begin = time.monotonic()
    launch = Launch(asked)
    try:
        return _measure(asked, launch, begin)
    except BaseException as error:
        if launch.watch is not None:
            launch.watch.failed(error)
        raise
    finally:
        launch.close()


def _measure(asked: argparse.Namespace, launch: Launch, begin: float) -> Result:
    device, together = launch.device, launch.together
    dtype = TYPES[asked.dtype or ("bf16" if device.type == "cuda" else "fp32")]
    kernels = Kernels(device, dtype, sizes_of(asked, device), asked.attention)
    stopping = Stopping(0.02, 3, 30) if asked.quick else Stopping()
    clock = clock_of(device, stopping)
    head = devices.header(kernels, launch.backend, launch.world, launch.per_node)
    if asked.device_name:
        head["device"] = asked.device_name
    flops, bandwidth = 5e14, 2e12
    if device.type == "cpu":
        head.update(devices.measured_peaks(clock, kernels))
        flops, bandwidth = head["peak_flops"], head["memory_bandwidth"]
    head["launch_s"] = launch_seconds(clock)
    if device.type == "cuda":  # on a CPU the host's time is part of every kernel's
        head["host_issue_s"] = host_issue_seconds(clock)
    messages = None
    if launch.world > 1:
        messages = Messages(launch.rank, launch.world, launch.per_node, clock, launch.limit)
        messages.probe()
    copies = Copies(clock, 256 << 20) if device.type == "cuda" else None
    measurer = Measurer(clock, kernels, together, messages, copies)

    # What is wrong with the file is rank 0's to find, and all ranks end with it.
    file, problem = None, ""
    if launch.rank == 0:
        try:
            file = SampleFile(asked.out, head, asked.resume)
        except (WrongInput, OSError) as error:
            problem = str(error)
    problem = together.from_first(problem)
    if problem:
        raise WrongInput(problem)
    limit_s = asked.time_limit or (90 if asked.quick else 480)
    limits = Limits(end=begin + limit_s, rounds=2 if asked.quick else 6, most_s=limit_s / (400 if asked.quick else 200),
                    memory_bytes=head["memory_bytes"] / (8 * launch.per_node if device.type == "cpu" else 4))
    subjects = _subjects(asked, kernels, messages, measurer) if launch.rank == 0 else []
    result = measure(subjects, measurer, file, limits, Speed(flops, bandwidth), asked.seed, _teller())
    if file is not None:
        file.close()
    return result


def _subjects(asked: argparse.Namespace, kernels: Kernels, messages: Messages | None, measurer: Measurer) -> list[dict]:
    on_gpu = kernels.device.type == "cuda"
    leveled = grid.products(kernels.sizes, on_gpu) + grid.attention(kernels.sizes, asked.longest)
    leveled += grid.memory_bound(kernels.memory_bound_kernels(), kernels.bytes_of_row, 1 << (31 if on_gpu else 27))
    if messages is not None:
        sizes = grid.message_sizes(asked.quick, 1 << (29 if on_gpu else 25))
        leveled += [(0, subject) for subject in messages.subjects(sizes)]
    if measurer.copies is not None:
        leveled += [(0, subject) for subject in measurer.copies.subjects([1 << power for power in range(14, 29, 2)])]
        leveled += [(1, subject) for subject in measurer.interference.subjects()]
    return grid.in_order(leveled)


def _teller():
    """Says what is measured, once in a while: lines for a log."""
    last = [time.monotonic()]

    def tell(text: str) -> None:
        if time.monotonic() - last[0] > 5:
            last[0] = time.monotonic()
            say(text)

    return tell


def _report(asked: argparse.Namespace, result: Result) -> None:
    for subject, why in list(result.failed.items())[:5]:
        say(f"not measured: {subject}: {why}")
    if len(result.failed) > 5:
        say(f"not measured: {len(result.failed) - 5} more")
    if result.left_out:
        say(f"there was no time for {result.left_out} measurements: --resume goes on with them")
    before = f" ({result.there} were there)" if result.there else ""
    print(f"{result.measured} measurements{before} in {asked.out}\n"
          f"hdpsim calibrate --from-samples {asked.out} --like PROFILE --out mine.yaml", flush=True)


def _as_rank(rank: int, world: int, port: int, arguments: list[str] | None) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    code = main(arguments)
    if code:
        os._exit(code)


def _processes(asked: argparse.Namespace, arguments: list[str] | None) -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        torch.multiprocessing.spawn(_as_rank, (asked.processes, port, arguments), nprocs=asked.processes)
    except torch.multiprocessing.ProcessExitedException as error:  # what it said is on standard error
        return error.exit_code if error.exit_code > 0 else STUCK
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Measures as the command line says (of this process, or `arguments`). The exit code."""
    asked = options(arguments)
    launched = "WORLD_SIZE" in os.environ
    if asked.processes and asked.processes > 1 and not launched:
        return _processes(asked, arguments if arguments is not None else sys.argv[1:])
    first = int(os.environ.get("RANK", 0)) == 0
    try:
        result = run(asked)
    except (WrongInput, Unsupported, OSError) as error:
        if first:
            say(f"error: {error}")
        return WRONG if isinstance(error, (WrongInput, ValueError)) else REFUSED
    except Stuck as error:
        say(str(error))
        return STUCK
    except KeyboardInterrupt:
        if first:
            say(f"stopped; the same command with --resume goes on with what is in {asked.out}")
        return 130
    if first:
        _report(asked, result)
    return 0
