#!/usr/bin/env bash
# scripts/anywhere and scripts/test against a pretended machine: a row a condition, what a failed test makes of it, what
# is said where the machine allows no mount namespace, and what was not tested.
# shellcheck disable=SC2016  # programs of the pretended machine expand their own variables
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts
machine=$(mktemp -d)
trap 'rm -rf "$machine"' EXIT
failures=0

fail() {
  printf 'FAILED: %s\n  it said: %s\n' "$1" "$said" >&2
  failures=$((failures + 1))
}

# program PATH BODY: a program of the pretended machine.
program() {
  mkdir -p "$(dirname "$machine/$1")"
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$machine/$1"
  chmod +x "$machine/$1"
}

# call SCRIPT ARGUMENT...: said gets what it printed, status its exit code.
call() {
  local script=$1
  shift
  status=0
  said=$(cd / && PATH="$machine/bin:$PATH" TMPDIR="$machine/tmp" "$machine/scripts/$script" "$@" 2>&1 </dev/null) || status=$?
}

mkdir -p "$machine/tmp" "$machine/scripts/lib" "$machine/build/release/Testing/Temporary"
cp "$scripts/anywhere" "$scripts/test" "$machine/scripts/"
cp "$scripts/lib/build_folder.sh" "$machine/scripts/lib/"
echo 'project(x)' >"$machine/CMakeLists.txt"
echo 'subdirs("tests")' >"$machine/build/release/CTestTestfile.cmake"
echo '_Python3_EXECUTABLE:INTERNAL=/nobody/knows/python' >"$machine/build/release/CMakeCache.txt"
program scripts/build 'echo "built: $*" >&2'
# Nothing is mounted: a namespace is the program itself.
program bin/unshare 'while [[ $1 == --* && $1 != --propagation ]]; do shift; done; shift 2; exec "$@"'
program bin/mount 'exit 0'
program bin/setpriv 'while [[ $1 == --* ]]; do shift; done; exec "$@"'
program bin/chown 'exit 0'
program bin/touch 'exit 0'
program bin/ln 'exit 0'
program bin/nvidia-smi 'exit 1'
tests='[[ $* != *" -N "* ]] || { printf "%s\n" "3: Test command: /nobody/knows/python a.py" "  Test #3: a_page" "4: Test command: engine" "  Test #4: engine"; exit; }'
program bin/ctest "$tests"'
echo "called: $*"; echo "3: NOT RUN: a page: no browser"; echo "100% tests passed, 0 tests failed out of 7"
[[ $* != *"-E "* || $* == *"-E ^(a_page)$" ]] || exit 1'

call anywhere spec
[[ $status == 0 ]] || fail "anywhere: exit code $status where all tests pass"
for condition in bare busy user read-only twice; do
  grep -Eq "^$condition +7 +0 +1 +[0-9]+ s" <<<"$said" || fail "anywhere: no row of $condition"
done
if (($(id -u) == 0)); then
  [[ $said == *"without what needs Python: nobody may not run /nobody/knows/python"* ]] || fail "anywhere: no word on Python"
fi
[[ $said == *"built: --preset release all"* ]] || fail "anywhere: nothing was built"
[[ -z $(ls -A "$machine/tmp") ]] || fail "anywhere: it leaves something behind"

program bin/ctest "$tests"'
echo "50% tests passed, 1 tests failed out of 2"; echo "	  4 - engine (Timeout)"; exit 8'
call anywhere
[[ $status == 1 && $said == *"engine (see "*"/busy.log)"* ]] || fail "anywhere: a failed test is not named"
rm -rf "$machine"/tmp/*

program bin/unshare 'echo "unshare failed: Operation not permitted" >&2; exit 1'
program bin/ctest 'echo "100% tests passed, 0 tests failed out of 7"'
call anywhere
[[ $status == 0 && $said == *"not shown: no mount namespace: unshare failed: Operation not permitted"* ]] ||
  fail "anywhere: it does not say why a condition is not shown"
grep -Eq '^busy +7 +0 +0' <<<"$said" || fail "anywhere: busy needs no mount namespace"

# What one program says of several of its cases, and a test that was skipped as a whole.
program bin/ctest '[[ $* != *" -N "* ]] || { echo "Total Tests: 2"; exit; }
echo "called: $*"
cat >build/release/Testing/Temporary/LastTest.log <<LOG
1/2 Testing: spec.study
Command: "sh" "NOT RUN: not this"
NOT RUN: processes die: there is no mpirun here
NOT RUN: processes stop: there is no mpirun here
2/2 Testing: browser_pages
NOT RUN: there is no Chromium here
LOG'
call test -R x
[[ $status == 0 && $said == *"NOT TESTED HERE, 3 in all:
    spec.study: processes die: there is no mpirun here
    spec.study: processes stop: there is no mpirun here
    browser_pages: there is no Chromium here"* ]] || fail "test: what was not tested is not listed"
[[ $said == *"--stop-time "*" -R x"* && $said == *"-LE gpu"* ]] || fail "test: ctest is called otherwise"

program bin/timeout '[[ $1 == 5100 ]] || exit; exit 124'
call test
[[ $status == 124 && $said == "error: the build has not ended within 85 minutes"* ]] || fail "test: a build without end"
rm "$machine/bin/timeout"
program scripts/build 'exit 5'
call test
[[ $status == 5 ]] || fail "test: a build that fails is not the end"

((failures == 0)) || exit 1
echo "anywhere and test: as they should be"
