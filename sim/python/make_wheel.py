#!/usr/bin/env python3
"""usage: make_wheel.py VERSION FOLDER OUT

Packs the package in FOLDER (what `cmake --install --component wheel` writes) as a wheel for the Python that runs this,
and prints its path. The same files give the same bytes. The format: packaging.python.org, "Binary distribution format".
"""

import base64
import hashlib
import os
import platform
import sys
import zipfile
from pathlib import Path

name = "hdpsim"
oldest_date = (1980, 1, 1, 0, 0, 0)  # of a zip file


def platform_tag() -> str:
    """Machines with this C library or a later one; others get an answer from pip instead of a crash."""
    library, version = platform.libc_ver()
    if library != "glibc":
        raise SystemExit(f"error: wheels are made where the C library is glibc, here it is {library or 'unknown'}")
    major, minor = version.split(".")[:2]
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def metadata(version: str) -> str:
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    return (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        "Summary: Predicts step time, throughput and memory of long-context LLM training on GPU clusters\n"
        f"Requires-Python: =={this}.*\n"
        'Provides-Extra: pandas\nRequires-Dist: pandas; extra == "pandas"\n'
        'Provides-Extra: polars\nRequires-Dist: polars; extra == "polars"\n'
    )


def record_line(path: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}\n"


def make_wheel(version: str, folder: Path, out: Path) -> Path:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{python}-{python}-{platform_tag()}"
    information = f"{name}-{version}.dist-info"
    files = {path.relative_to(folder).as_posix(): path.read_bytes()
             for path in sorted(folder.rglob("*")) if path.is_file()}
    files[f"{information}/METADATA"] = metadata(version).encode()
    files[f"{information}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: {name}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    record = "".join(record_line(path, content) for path, content in files.items())
    files[f"{information}/RECORD"] = f"{record}{information}/RECORD,,\n".encode()

    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, oldest_date)
            entry.external_attr = (0o100755 if path.endswith(".so") else 0o100644) << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return wheel


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    print(os.fspath(make_wheel(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
