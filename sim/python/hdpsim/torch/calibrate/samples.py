"""The file of samples: hdpsim.samples/1, JSON lines, each written as soon as it is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .clock import Timing
from .grid import WrongInput

SCHEMA = "hdpsim.samples/1"
# What must be the same where a file is continued; the rest of a header may change from run to run.
LASTING = ("device", "device_name", "multiprocessors", "memory_bytes", "element_bytes", "kernels", "software", "world",
           "devices_per_node")


class SampleFile:
    """Rank 0's. With `resume` it goes on with what is in the file, of which a torn last line is cut off."""

    def __init__(self, path: Path, header: dict[str, Any], resume: bool) -> None:
        self.path = path
        self.there: set[tuple[str, int]] = set()
        kept = self._resumed(header) if resume and path.exists() else b""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("r+b" if kept else "wb")
        if kept:
            self._file.truncate(len(kept))
            self._file.seek(len(kept))
        else:
            self._write(header)

    def has(self, subject: dict[str, Any], round_: int) -> bool:
        return (json.dumps(subject, sort_keys=True), round_) in self.there

    def add(self, subject: dict[str, Any], round_: int, timing: Timing) -> None:
        self._write({"subject": subject, "round": round_, **timing.as_line()})
        self.there.add((json.dumps(subject, sort_keys=True), round_))

    def close(self) -> None:
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()

    def _resumed(self, header: dict[str, Any]) -> bytes:
        whole = self.path.read_bytes()
        kept = whole[: whole.rfind(b"\n") + 1]
        try:
            lines = [json.loads(line) for line in kept.splitlines() if line.strip()]
            if not lines or lines[0].get("schema") != SCHEMA:
                raise ValueError(f"its first line is no header of {SCHEMA}")
            self.there = {(json.dumps(line["subject"], sort_keys=True), line["round"]) for line in lines[1:]}
        except (ValueError, KeyError, AttributeError) as error:
            raise WrongInput(f"--resume: {self.path} cannot be continued: {error}") from error
        differences = [f"{key}: {lines[0].get(key)} in the file, {header.get(key)} now" for key in LASTING
                       if lines[0].get(key) != header.get(key)]
        if differences:
            raise WrongInput(f"--resume: {self.path} is of another device or of other kernels:\n  "
                             + "\n  ".join(differences) + "\nleave out --resume, or name another file with --out")
        return kept
