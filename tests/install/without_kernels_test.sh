#!/usr/bin/env bash
# usage: without_kernels_test.sh HDPSIM STUDY
#
# The program as ./scripts/quickstart builds it: studies run, and commands that need kernels say what builds them.
set -euo pipefail
hdpsim=$1
study=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  failures=$((failures + 1))
}

"$hdpsim" study "$study" --set data.steps=1 >out.txt 2>&1 || fail "study: $(cat out.txt)"
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
