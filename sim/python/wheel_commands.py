"""What setuptools does to make a wheel: CMake builds the module and says which files belong to it (wheel.cmake).

HDPSIM_CMAKE_BUILD (an absolute path) names a configured build folder to take the module from; otherwise scripts/build
configures and builds one for the Python that runs this, and installs the packages that are missing.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

root = Path.cwd()  # where pyproject.toml is: PEP 517
version = re.search(r"project\(hdpsim VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text())[1]


def run(*command: str) -> None:
    """The Python packages that pip keeps apart for this process are none of the build's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if subprocess.run(command, cwd=root, env=environment).returncode != 0:
        raise SetupError(f"the module was not built: {' '.join(command)} failed; what it said stands above (pip -v)")


def built_folder() -> str:
    if given := os.environ.get("HDPSIM_CMAKE_BUILD"):
        run("cmake", "--build", given, "--target", "hdpsim_python")
        return given
    python = os.path.realpath(sys.executable)  # stays where a virtual environment is removed
    run("scripts/build", "--python", python, "hdpsim_python")
    return str(Path(os.environ.get("HDPSIM_BUILD_DIR", "build")) / "release")


class BuildWithCMake(build_py):
    def run(self) -> None:
        if getattr(self, "editable_mode", False):
            raise SetupError("hdpsim cannot be installed as editable: leave out -e, or build the module with "
                             "scripts/build hdpsim_python for PYTHONPATH=build/release/python")
        run("cmake", "--install", built_folder(), "--component", "wheel", "--strip", "--prefix",
            os.path.abspath(self.build_lib))


class PlatformWheel(bdist_wheel):
    """A wheel with a compiled module, for machines with this C library or a later one."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.distribution.has_ext_modules = lambda: True
        library, release = platform.libc_ver()
        if library == "glibc":
            major, minor = release.split(".")[:2]
            self.plat_name = f"manylinux_{major}_{minor}_{platform.machine()}"
