"""usage: torch_calibrate_test.py HDPSIM SOURCE_FOLDER

hdpsim.torch.calibrate on two processes over gloo: what it writes becomes a profile with which a study runs; what is
there is not measured again; a rank that dies ends the other one; wrong input ends with exit code 2. Needs PyTorch with
gloo.
"""

import contextlib
import io
import json
import multiprocessing
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import torch_needed  # noqa: F401  before torch
import torch

from hdpsim.torch import watch
from hdpsim.torch.calibrate import clock, command, device, grid, kernels, session, traffic

hdpsim, source = sys.argv[1], pathlib.Path(sys.argv[2])
RANKS = 2
SIZES = "--hidden 64 --inner 128 --heads 2 --kv-heads 1 --head-dim 32 --longest 512".split()


def rank_main(rank, port, arguments, change, told):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS), LOCAL_WORLD_SIZE=str(RANKS),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    change(rank)
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        code = command.main(arguments)
    told.put((rank, code, errors.getvalue()))
    told.close()
    told.join_thread()


def launched(*arguments, change=lambda rank: None):
    """{rank: (exit code, what it said on standard error)} of those that lived. Forked: imports take seconds."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    fork = multiprocessing.get_context("fork")
    told = fork.Queue()
    ranks = [fork.Process(target=rank_main, args=(rank, port, [*SIZES, *arguments], change, told))
             for rank in range(RANKS)]
    for rank in ranks:
        rank.start()
    answers = {}
    for rank in ranks:
        rank.join(timeout=120)
        assert rank.exitcode is not None, "a rank hangs"
    while not told.empty():
        rank, code, errors = told.get()
        answers[rank] = (code, errors)
    return answers


def a_launch_writes_samples(folder):
    answers = launched("--quick", "--time-limit", "2s", "--out", str(folder / "a.jsonl"))
    assert [answers[rank][0] for rank in range(RANKS)] == [0, 0], answers
    header, *lines = [json.loads(line) for line in (folder / "a.jsonl").read_text().splitlines()]
    assert header["schema"] == "hdpsim.samples/1" and header["world"] == RANKS and header["launch_s"] > 0
    assert torch.__version__ in header["kernels"]["gemm"]
    assert len(lines) >= session.LEAST
    families = {line["subject"]["family"] for line in lines}
    assert families == {"gemm", "attention", "memory_bound", "messages"}, families
    for line in lines:
        assert 0 < line["p10_s"] <= line["median_s"] <= line["p90_s"] and line["runs"] >= 3, line
    check_schema([header, *lines])


def the_commands_of_the_page_work(folder):
    """The sh block of the section, each command shortened: from kernels of PyTorch to the answer of a study."""
    page = (source / "configs/studies/TORCH.md").read_text()
    section = page[page.index("\n## A profile of your kernels\n"):]
    commands = section[section.index("```sh\n") + 6:].split("```")[0].strip().splitlines()
    (folder / "configs").symlink_to(source / "configs")
    shorter = {"python3": "--time-limit 1s", "calibrate": "", "study": "--set data.steps=1 --format json"}
    said = []
    for line in commands:
        program, *arguments = line.split(" #")[0].split()
        arguments += shorter["python3" if program == "python3" else arguments[0]].split()
        done = subprocess.run([{"python3": sys.executable, "hdpsim": hdpsim}[program], *arguments], cwd=folder,
                              capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stderr)
        said.append(done.stdout)
    assert "measurements in mine.samples.jsonl" in said[0], said[0]
    assert "measured through PyTorch: " in said[1] and "kept of epyc-cpu: " in said[1], said[1]
    assert all(run["step_time_s"]["mean"] > 0 for run in json.loads(said[2])["runs"])
    assert len(said) == 3


def check_schema(lines):
    try:
        import jsonschema
    except ImportError:
        print("NOT RUN: the schema of samples (Debian: python3-jsonschema)")
        return
    schema = json.loads((source / "configs/schemas/samples.schema.json").read_text())
    for line in lines:
        jsonschema.validate(line, schema)


def what_is_there_is_not_measured_again(folder):
    path = folder / "a.jsonl"
    before = b"".join(path.read_bytes().splitlines(keepends=True)[:25])  # the header, and 24 measurements
    path.write_bytes(before + b'{"subject": {"family": "gemm", "m": 1')  # as a process leaves it that is killed
    answers = launched("--quick", "--time-limit", "1s", "--resume", "--out", str(path))
    assert answers[0][0] == 0, answers
    after = path.read_bytes()
    assert after.startswith(before)
    lines = [json.loads(line) for line in after.splitlines()[1:]]
    assert len(lines) >= session.LEAST
    measured = [(json.dumps(line["subject"], sort_keys=True), line["round"]) for line in lines]
    assert len(measured) == len(set(measured))

    with contextlib.redirect_stderr(io.StringIO()) as errors:  # one process, without a launch
        assert command.main([*SIZES, "--quick", "--resume", "--dtype", "bf16", "--out", str(path)]) == command.WRONG
    for difference in ("element_bytes: 4 in the file, 2 now", "world: 2 in the file, 1 now"):
        assert difference in errors.getvalue(), errors.getvalue()
    assert path.read_bytes() == after


def a_rank_that_dies_ends_the_others(folder):
    def dies(rank):
        attempt, count = session._attempt, [0]
        watch.LINGER_S = 0.1

        def attempt_or_die(measurer, subject):
            count[0] += 1
            if rank == 1 and count[0] == 4:
                os._exit(9)
            return attempt(measurer, subject)

        session._attempt = attempt_or_die

    answers = launched("--quick", "--patience", "15s", "--out", str(folder / "b.jsonl"), change=dies)
    assert set(answers) == {0} and answers[0][0] == command.STUCK, answers
    assert "rank 1: round 0, " in answers[0][1], answers[0][1]
    kept = (folder / "b.jsonl").read_text().splitlines()
    assert len(kept) == 1 + 3 and all(json.loads(line) for line in kept)


def a_kernel_that_fails_on_one_rank_is_told_and_left_out(folder):
    def fails(rank):
        time = session.Measurer.time

        def time_or_fail(self, subject):
            if rank == 1 and subject.get("kernel") == "rope":
                raise RuntimeError("no such kernel")
            return time(self, subject)

        session.Measurer.time, session.LEAST = time_or_fail, 12

    answers = launched("--quick", "--time-limit", "1s", "--out", str(folder / "c.jsonl"), change=fails)
    assert answers[0][0] == 0, answers
    assert "not measured: memory_bound kernel=rope" in answers[0][1] and "rank 1: no such kernel" in answers[0][1]
    assert '"rope"' not in (folder / "c.jsonl").read_text()


def work_is_what_its_subject_says():
    sizes = kernels.Sizes(64, 128, 4, 2, 16, 100)
    own = kernels.Kernels(torch.device("cpu"), torch.float32, sizes)
    assert own.work(grid.product(3, 5, 7))().shape == (3, 5)
    for backward in (False, True):
        out = own.work(grid.launch(sizes, backward, [[8, 4, False, 2], [3, 9, False, 1]]))()
        assert out[0].shape == (19, 4, 16)
        assert not backward or out[1].shape == (17, 2, 16)
    for kernel in own.memory_bound_kernels():
        own.work({"family": "memory_bound", "kernel": kernel, "bytes": 10 * own.bytes_of_row(kernel)})()
    assert own.work({"family": "memory_bound", "kernel": "add", "bytes": 10 * 3 * 64 * 4})().shape == (10, 64)


def times_are_those_of_the_work():
    stopping = clock.Stopping(sampling_s=0.01, least_runs=3, most_runs=5)
    timing = clock.Clock(torch.device("cpu"), stopping).time(lambda: clock.time.sleep(0.02))
    assert timing.runs == 3 and 0.02 <= timing.p10 <= timing.median <= timing.p90, timing
    line = clock.summary([3.0, 1.0, 2.0]).as_line()
    assert (line["median_s"], line["runs"]) == (2.0, 3) and abs(line["p10_s"] - 1.2) < 1e-12, line


def ranks_form_teams_within_nodes_and_between():
    def shape(world, per_node):
        return [(len(team.ranks), team.link) for team in traffic.teams(world, per_node)]

    assert shape(1, 1) == []
    assert shape(8, 8) == [(2, "node"), (4, "node"), (8, "node")]
    assert shape(16, 8) == [(2, "node"), (4, "node"), (8, "node"), (2, "network"), (16, "network")]
    assert shape(3, 1) == [(2, "network"), (3, "network")]
    assert traffic.teams(16, 8)[3].ranks == [0, 8]


def sizes_come_from_models_and_studies():
    llama = grid.sizes_of_model("llama-7b")
    assert (llama.hidden, llama.heads, llama.kv_heads, llama.dim, llama.vocabulary) == (4096, 32, 8, 128, 32000)
    assert grid.model_of_study(str(source / "configs/studies/tiny.yaml")) == "llama-7b"
    for wrong in ("no-such-model", "none.json"):
        try:
            grid.sizes_of_model(wrong)
            raise AssertionError(wrong)
        except grid.WrongInput as error:
            assert wrong in str(error)
    assert device.device_word("NVIDIA H100 80GB HBM3", 85 * 10**9) == "H100-80GB"
    assert device.device_word("NVIDIA A100-SXM4-40GB", 42 * 10**9) == "A100-40GB"
    assert device.device_word("NVIDIA GeForce RTX 4090", 25 * 10**9) == "RTX4090-24GB"
    assert device.device_word("AMD Instinct MI300X", 206 * 10**9) == "MI300X-192GB"


work_is_what_its_subject_says()
times_are_those_of_the_work()
ranks_form_teams_within_nodes_and_between()
sizes_come_from_models_and_studies()
with tempfile.TemporaryDirectory() as made:
    for test in (a_launch_writes_samples, the_commands_of_the_page_work, what_is_there_is_not_measured_again,
                 a_rank_that_dies_ends_the_others, a_kernel_that_fails_on_one_rank_is_told_and_left_out):
        begin = time.monotonic()
        test(pathlib.Path(made))
        print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
print("samples of PyTorch: written, resumed, fitted, simulated")
