#!/usr/bin/env bash
# usage: wheel_test.sh SOURCE BUILD_FOLDER PYTHON
#
# Makes a wheel with pip, twice; installs it without a network into a Python that has nothing else, and runs studies
# there, in a working folder that has nothing to do with the source tree.
set -euo pipefail
source=$1
build=$2
python=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

skip() {
  printf 'NOT RUN: %s\n' "$*" >&2
  exit 0
}

can_make_wheels() { "$python" -c 'import setuptools, wheel, pip, ensurepip' 2>"$work/missing.txt"; }
debian=/usr/lib/python3/dist-packages/wheel
if ! can_make_wheels && [[ -d $debian ]]; then  # works with any Python, where that has setuptools
  mkdir "$work/packages"
  ln -s "$debian" "$work/packages/wheel"
  export PYTHONPATH=$work/packages
fi
can_make_wheels || skip "no wheel without setuptools, wheel and pip (Debian: python3-setuptools, -wheel, -pip, -venv): \
$(tail -1 "$work/missing.txt")"

# What setuptools looks for beside pyproject.toml; it writes there, and nowhere else in the source tree.
mkdir "$work/tree"
ln -s "$source"/{pyproject.toml,CMakeLists.txt,sim} "$work/tree"
make_wheel() {
  SOURCE_DATE_EPOCH=1000000000 HDPSIM_CMAKE_BUILD=$build "$python" -m pip wheel --no-build-isolation --no-deps --no-index \
    --disable-pip-version-check --wheel-dir "$1" "$work/tree" >"$work/pip.txt" 2>&1 ||
    fail "pip makes no wheel: $(cat "$work/pip.txt")"
  rm -rf "$work/tree/build"
  ls "$1"/hdpsim-*-manylinux_*.whl
}
wheel=$(make_wheel "$work/one")
cmp "$wheel" "$(make_wheel "$work/two")" || fail "the same files give two wheels"

"$python" -m venv "$work/venv" >"$work/venv.txt" 2>&1 || fail "venv: $(cat "$work/venv.txt")"
cd "$work"
alone=(env -i PATH=/usr/bin:/bin TMPDIR="$work")  # no PYTHONPATH, no library path
"${alone[@]}" venv/bin/python -m pip install --no-index --quiet --disable-pip-version-check "$wheel" >pip.txt 2>&1 ||
  fail "pip refuses the wheel: $(cat pip.txt)"

"${alone[@]}" venv/bin/python -c '
import hdpsim, os, sys
home = os.path.dirname(hdpsim.__file__)
assert home.startswith(sys.argv[1] + "/venv/"), home
result = hdpsim.run(os.path.join(home, "share/hdpsim/configs/studies/tiny.yaml"), overrides={"data.steps": 1}, out="out")
assert len(result.columns()["plan"]) == 6, result
assert {"h100-rail", "laptop-cpu"} <= set(hdpsim.names("clusters"))
assert os.path.exists(os.path.join(home, "torch/adapters/transformers.py")), os.listdir(home)
# Libraries that other packages bring are those of the wheel.
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
for library in os.listdir(home):
    if library.startswith("lib"):
        assert os.path.join(home, library) in mapped, (library, mapped)
assert not any("/x86_64-linux-gnu/libyaml" in path or "/lib/libyaml" in path for path in mapped)
' "$work" >out.txt 2>&1 || fail "the installed module: $(cat out.txt)"
[[ -s out/report.html ]] || fail "the installed module wrote no page"

"${alone[@]}" venv/bin/python -m pip uninstall --yes --quiet --disable-pip-version-check hdpsim >pip.txt 2>&1 || fail "pip: $(cat pip.txt)"
[[ -z $(find venv -path '*hdpsim*' -type f -not -name '*.pyc') ]] || fail "pip leaves files of the wheel behind"
echo "packed, installed alone, run, removed: the wheel is whole"
