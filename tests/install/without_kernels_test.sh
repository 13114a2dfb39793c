#!/usr/bin/env bash
# usage: without_kernels_test.sh HDPSIM HDPSIM_STUDY_ALONE STUDY
#
# The programs as ./scripts/quickstart builds them: studies run, and commands that need kernels say what builds them.
set -euo pipefail
hdpsim=$1
study_alone=$2
study=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  failures=$((failures + 1))
}

"$hdpsim" study "$study" --set data.steps=1 >table.txt 2>out.txt || fail "study: $(cat out.txt)"
"$study_alone" study "$study" --set data.steps=1 >alone.txt 2>out.txt || fail "study alone: $(cat out.txt)"
cmp table.txt alone.txt || fail "the program of a first table prints another one"
"$study_alone" study "$study" --set data.steps=1 --out results >alone.txt 2>out.txt || fail "study --out: $(cat out.txt)"
cmp table.txt alone.txt || fail "the program of a first table prints another one with --out"
[[ ! -e results/report.html ]] || fail "the program of a first table writes the report"
"$hdpsim" study "$study" --set data.steps=1 --out results --resume >alone.txt 2>out.txt || fail "study --resume: $(cat out.txt)"
cmp table.txt alone.txt || fail "the table of resumed runs is another one"
[[ -s results/report.html ]] || fail "no report follows with --resume"
status=0
"$study_alone" study "$study" --set data.steps=1 --set "compare_to={static: tuned}" >out.txt 2>&1 || status=$?
((status == 3)) || fail "a tuned baseline of the program of a first table ended with $status, not with 3"
grep -q '\./scripts/build' out.txt || fail "a tuned baseline does not say what builds it: $(cat out.txt)"
"$hdpsim" comm all_reduce --cluster h100-rail -g 16 -b 1M -e 1M >out.txt 2>&1 || fail "comm: $(cat out.txt)"
for command in "calibrate --quick --out profiles" "execute $study --ranks 2"; do
  status=0
  # shellcheck disable=SC2086  # the words of the command
  "$hdpsim" $command >out.txt 2>&1 || status=$?
  ((status == 3)) || fail "'$command' ended with $status, not with 3: the machine refuses"
  grep -q '\./scripts/build' out.txt || fail "'$command' does not say what builds it: $(cat out.txt)"
  "$hdpsim" "${command%% *}" --help | grep -q '\./scripts/build' || fail "the help of '${command%% *}' does not say it"
done

((failures == 0))
