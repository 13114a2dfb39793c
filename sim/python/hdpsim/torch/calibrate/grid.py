"""What is measured: subjects by importance, and the model from whose layers the sizes come."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import hdpsim

from .kernels import Sizes

Subject = dict
USUAL = {"cuda": Sizes(4096, 14336, 32, 8, 128), "cpu": Sizes(256, 704, 4, 2, 64)}


class WrongInput(ValueError):
    """What the user asks for cannot be. The text says what to do."""


def sizes_of_model(name: str) -> Sizes:
    """Of a shipped model (`hdpsim list models`), or of a config.json as Hugging Face has them."""
    path = Path(name) if name.endswith(".json") else _shipped_model(name)
    try:
        config = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise WrongInput(f"--model {name}: {error}") from error
    config = config.get("text_config", config)
    missing = [key for key in ("hidden_size", "intermediate_size", "num_attention_heads") if key not in config]
    if missing:
        raise WrongInput(f"--model {name}: it has no {', '.join(missing)}: say --hidden, --inner, --heads, --kv-heads "
                         "and --head-dim")
    heads = config["num_attention_heads"]
    return Sizes(config["hidden_size"], config["intermediate_size"], heads, config.get("num_key_value_heads") or heads,
                 config.get("head_dim") or config["hidden_size"] // heads, config.get("vocab_size", 0))


def _shipped_model(name: str) -> Path:
    for folder in Path(hdpsim.__file__).resolve().parents:
        for models in (folder / "share/hdpsim/configs/models", folder / "configs/models"):
            if (models / f"{name}.json").is_file():
                return models / f"{name}.json"
            if models.is_dir() and (models / "llama-7b.json").is_file():
                raise WrongInput(f"--model {name}: there is no such model: hdpsim list models, or a config.json")
    raise WrongInput(f"--model {name}: the shipped models are not installed: name a config.json")


def model_of_study(path: str) -> str:
    """The name or the file of a study's model."""
    try:
        study = hdpsim.run(path, overrides={"data.steps": 1, "plans": ["static"], "sweep": {}}).study
    except hdpsim.InputError as error:
        raise WrongInput(f"--study {path}: {error}") from error
    section = re.search(r"^model:\n((?: .*\n)+)", study, re.MULTILINE)
    named = section and re.search(r"^  (preset|hf_config): *\"?([^\"\n]+)\"?$", section.group(1), re.MULTILINE)
    if not named:
        raise WrongInput(f"--study {path}: its model is neither shipped nor a config.json: say --model or --hidden ...")
    if named.group(1) == "preset" or Path(named.group(2)).is_file():
        return named.group(2)
    return str(Path(path).parent / named.group(2))


Leveled = tuple[int, Subject]


def products(sizes: Sizes, on_gpu: bool) -> list[Leveled]:
    """Those of the layers' weights, forward and both of backward, by tokens; then a grid of other shapes."""
    heads = (sizes.heads + 2 * sizes.kv_heads) * sizes.dim
    weights = [(heads, sizes.hidden), (sizes.hidden, sizes.heads * sizes.dim), (2 * sizes.inner, sizes.hidden),
               (sizes.hidden, sizes.inner)]
    if sizes.vocabulary:
        weights.append((sizes.vocabulary, sizes.hidden))
    found = []
    for tokens in (512, 1024, 2048, 4096, 8192, 16384) if on_gpu else (64, 128, 256, 512, 1024, 2048, 4096):
        level = 0 if tokens in (128, 512, 1024, 4096, 16384) else 1
        for n, k in weights:
            for shape in ((tokens, n, k), (tokens, k, n), (n, k, tokens)):
                found.append((level, product(*shape)))
    cubes = (128, 512, 2048, 8192) if on_gpu else (64, 192, 512, 1536)
    return found + [(1, product(m, n, k)) for m in cubes for n in cubes for k in cubes]


def product(m: int, n: int, k: int) -> Subject:
    return {"family": "gemm", "m": m, "n": n, "k": k}


def attention(sizes: Sizes, longest: int) -> list[Leveled]:
    """Causal squares, rectangles without a mask as a ring has them, and packed documents of unlike lengths."""
    found = []
    length = 128
    while length <= longest:
        level = 0 if length in (128, 256, 512, 1024, 4096, 16384, 65536) else 1
        for backward in (False, True):
            found.append((level, launch(sizes, backward, [[length, length, True, 1]])))
            found.append((level, launch(sizes, backward, [[length, length, False, 1]])))
            found.append((1, launch(sizes, backward, [[length, length // 2, False, 1]])))
            if length >= 1024:
                found.append((1, launch(sizes, backward, documents(length))))
                found.append((1, launch(sizes, backward, [[length // 8, length // 8, True, 8]])))
        length *= 2
    return found


def launch(sizes: Sizes, backward: bool, blocks: list[list]) -> Subject:
    return {"family": "attention", "backward": backward, "heads": sizes.heads, "kv_heads": sizes.kv_heads,
            "dim": sizes.dim, "blocks": blocks}


def documents(tokens: int) -> list[list]:
    """Causal documents of lognormal lengths, as web text has, which fill `tokens`; always the same."""
    draw = random.Random(tokens)
    blocks = []
    while tokens > 0:
        length = min(tokens, max(1, int(draw.lognormvariate(5.5, 1.0))))
        blocks.append([length, length, True, 1])
        tokens -= length
    return blocks


def memory_bound(kernels: list[str], row_bytes: Callable[[str], int], largest: int) -> list[Leveled]:
    """Sizes up to `largest` bytes, in whole rows of row_bytes(kernel)."""
    found = []
    for step, power in enumerate(range(17, largest.bit_length())):
        for kernel in kernels:
            rows = max(1, (1 << power) // row_bytes(kernel))
            found.append((0 if step % 3 == 0 else 1,
                          {"family": "memory_bound", "kernel": kernel, "bytes": rows * row_bytes(kernel)}))
    return found


def message_sizes(quick: bool, largest: int) -> list[int]:
    powers = range(12, largest.bit_length(), 3 if quick else 2)
    return [1 << power for power in powers]


def operations(subject: Subject) -> tuple[float, float]:
    """FLOPs and bytes, for estimates of how long it takes and how much memory it needs (elements of 4 bytes)."""
    if subject["family"] == "gemm":
        m, n, k = (subject[key] for key in "mnk")
        return 2.0 * m * n * k, 4.0 * (m * k + n * k + m * n)
    if subject["family"] == "attention":
        pairs = sum(q * k * count * (0.5 if causal else 1.0) for q, k, causal, count in subject["blocks"])
        rows = sum((q + k) * count for q, k, _, count in subject["blocks"])
        factor = 2.5 if subject["backward"] else 1.0
        return factor * 4 * subject["heads"] * subject["dim"] * pairs, 24.0 * rows * subject["heads"] * subject["dim"]
    return 0.0, 2.0 * subject.get("bytes", 0)


def _unlike(leveled: list[Leveled]) -> list[Leveled]:
    seen = set()
    found = []
    for level, subject in leveled:
        text = json.dumps(subject)
        if text not in seen:
            seen.add(text)
            found.append((level, subject))
    return found


def in_order(leveled: list[Leveled]) -> list[Subject]:
    """By level; within one, families take turns, so that a time limit leaves something of each."""
    by_turn = []
    counts: dict[tuple[int, str], int] = {}
    for level, subject in _unlike(leveled):
        key = (level, subject["family"])
        counts[key] = counts.get(key, 0) + 1
        by_turn.append((level, counts[key], subject))
    return [subject for _, _, subject in sorted(by_turn, key=lambda item: item[:2])]
