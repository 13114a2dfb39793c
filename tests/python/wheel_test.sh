#!/usr/bin/env bash
# usage: wheel_test.sh CMAKE BUILD_FOLDER PYTHON VERSION MAKE_WHEEL
#
# Packs the module as a wheel, twice; installs it without a network into a Python that has nothing else, and runs
# studies there, in a working folder that has nothing to do with the source tree.
set -euo pipefail
cmake=$1
build=$2
python=$3
version=$4
make_wheel=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

"$cmake" --install "$build" --component wheel --strip --prefix "$work/staged" >/dev/null
wheel=$("$python" "$make_wheel" "$version" "$work/staged" "$work/one")
cmp "$wheel" "$("$python" "$make_wheel" "$version" "$work/staged" "$work/two")" || fail "the same files give two wheels"

if ! "$python" -m venv "$work/venv" >"$work/venv.txt" 2>&1; then
  echo "NOT RUN: the wheel is not installed without venv (Debian: python3-venv): $(tail -1 "$work/venv.txt")" >&2
  exit 0
fi
cd "$work"
rm -r staged
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
