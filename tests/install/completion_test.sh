#!/usr/bin/env bash
# usage: completion_test.sh HDPSIM
#
# What bash makes of the completion, and whether zsh and fish read theirs, where they are installed; the manual page in
# the eyes of groff; colours on terminals alone.
set -euo pipefail
hdpsim=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  failures=$((failures + 1))
}

"$hdpsim" completion bash >hdpsim.bash
# shellcheck source=/dev/null
source hdpsim.bash

# completed WORD...: what the last word, as far as it goes, may become.
completed() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  _hdpsim
  printf '%s\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"} | sort | tr '\n' ' '
}

# expect WANTED WORD...
expect() {
  local wanted=$1 found
  shift
  found=$(completed "$@")
  [[ $found == "$wanted " ]] || fail "'$*' becomes '$found', not '$wanted '"
}

touch study.yaml
expect study hdpsim stud
expect "--plans --profile" hdpsim new mine.yaml --p
expect "convert describe fit generate" hdpsim trace ""
expect --resume hdpsim study x.yaml --res
expect "csv json table" hdpsim study x.yaml --format ""
expect study.yaml hdpsim study stud
expect study.yaml hdpsim trace describe stud
expect all_reduce hdpsim comm all_r
expect "bash fish zsh" hdpsim completion ""
expect "clusters frameworks lengths models plans profiles" hdpsim list ""

"$hdpsim" completion zsh >_hdpsim
"$hdpsim" completion fish >hdpsim.fish
for shell in zsh fish; do
  file=$([[ $shell == zsh ]] && echo _hdpsim || echo hdpsim.fish)
  for word in study trace describe validate; do
    grep -q -w "$word" "$file" || fail "$shell: nothing of $word"
  done
  grep -q -e '-l resume\|--resume' "$file" || fail "$shell: nothing of --resume"
  if command -v "$shell" >/dev/null; then
    "$shell" -n "$file" || fail "$shell cannot read its completion"
  fi
done

"$hdpsim" manual >hdpsim.1
for command in study plan check trace calibrate comm execute compare cluster validate explain decide completion; do
  grep -q "^\.SS \"hdpsim $command" hdpsim.1 || fail "the manual page has no $command"
done
if command -v groff >/dev/null; then
  groff -man -Tutf8 -ww hdpsim.1 >page.txt 2>warnings.txt || fail "groff refuses the manual page"
  [[ ! -s warnings.txt ]] || fail "groff: $(head -3 warnings.txt)"
fi

# Colours: on a terminal, unless NO_COLOR says no or the terminal knows none.
echo 'x: 1' >wrong.yaml
if ! command -v script >/dev/null; then
  echo "NOT RUN: colours on a terminal: there is no script here (Debian: bsdutils)" >&2
elif ! script -qec true /dev/null </dev/null >/dev/null 2>&1; then
  echo "NOT RUN: colours on a terminal: there is no pseudo-terminal here (/dev/pts)" >&2
else
  red=$'\e[1;31m'
  on_terminal() { env "$@" script -qec "$hdpsim study wrong.yaml" /dev/null </dev/null || true; }
  [[ $(on_terminal -u NO_COLOR TERM=xterm) == *"$red"* ]] || fail "no colours on a terminal"
  [[ $(on_terminal NO_COLOR=1 TERM=xterm) != *"$red"* ]] || fail "colours in spite of NO_COLOR"
  [[ $(on_terminal -u NO_COLOR TERM=dumb) != *"$red"* ]] || fail "colours on a dumb terminal"
fi
[[ $("$hdpsim" study wrong.yaml 2>&1 || true) != *$'\e['* ]] || fail "colours in a pipe"

((failures == 0)) || exit 1
echo "completions, manual page, colours: as they should be"
