#!/usr/bin/env bash
# The set-up of scripts/lib/packages.sh against a pretended machine: what it installs, when it stays away from apt, and
# how it refuses (exit code 3, the packages named).
# shellcheck disable=SC2016  # the code under test expands its own variables
set -euo pipefail
library=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/lib/packages.sh
machine=$(mktemp -d)
trap 'rm -rf "$machine"' EXIT
failures=0
cases=0

# program NAME BODY: a program of the pretended machine. It logs its call before it does what BODY says.
program() {
  printf '#!/bin/bash\necho "%s $*" >>"%s/log"\n%s\n' "$1" "$machine" "$2" >"$machine/bin/$1"
  chmod +x "$machine/bin/$1"
}

# A Debian machine with cmake, where apt knows every package; root.
debian() {
  rm -rf "${machine:?}"/*
  mkdir "$machine/bin"
  local tool
  for tool in bash env grep cut awk sort; do ln -s "$(command -v "$tool")" "$machine/bin/$tool"; done
  echo cmake >"$machine/installed"
  program dpkg-query "grep -qx \"\${@: -1}\" $machine/installed && echo installed"
  program apt-cache 'shift; for p; do echo "  Candidate: 1.0"; done'
  program apt-get "for p; do [[ \$p == -* || \$p == *::* || \$p == *=* || \$p == install ]] || echo \$p >>$machine/installed; done"
  program id 'echo 0'
}

# expect NAME EXIT-CODE CODE: what the code does on the pretended machine; said and logged get what it printed and called.
expect() {
  local name=$1 wanted=$2 status=0
  : >"$machine/log"
  said=$(env -i PATH="$machine/bin" bash -euo pipefail -c "source $library; $3" 2>&1 </dev/null) || status=$?
  logged=$(grep -v -e '^dpkg-query' -e '^id' "$machine/log" || true)
  cases=$((cases + 1))
  [[ $status == "$wanted" ]] || failed "$name" "exit code $status, not $wanted"
}
failed() {
  failures=$((failures + 1))
  printf 'FAILED: %s: %s\n  it said: %s\n  it called: %s\n' "$1" "$2" "$said" "$logged"
}
said_all() {
  local name=$1 text
  shift
  for text; do [[ $said == *"$text"* ]] || failed "$name" "did not say: $text"; done
}

name="what is missing is installed, without questions"
debian
expect "$name" 0 'install_missing cmake g++ catch2'
said_all "$name" "installing with apt-get: g++ catch2"
[[ $logged == *" install --no-install-recommends g++ catch2" && $logged == *"apt-get -q -y"* ]] || failed "$name" "wrong call"
[[ $logged != *" update"* ]] || failed "$name" "updated lists that were good"

name="nothing the second time"
expect "$name" 0 'install_missing cmake g++ catch2'
[[ -z $said && -z $logged ]] || failed "$name" "it did something"

name="lists that do not know a package are updated first"
debian
program apt-cache 'echo "  Candidate: (none)"'
expect "$name" 0 'install_missing g++'
[[ $logged == *" update"*" install "* ]] || failed "$name" "no update before the install"

name="stale lists are updated when the install fails"
debian
program apt-get "case \"\$*\" in *update*) : >$machine/fresh ;; *) [[ -e $machine/fresh ]] ;; esac"
expect "$name" 0 'install_missing g++'

name="no network"
debian
program apt-get 'exit 100'
expect "$name" 3 'install_missing cmake g++ catch2'
said_all "$name" "is there a network?" "    g++ catch2"

name="not Debian"
debian
rm "$machine/bin/apt-get"
expect "$name" 3 'install_missing cmake g++'
said_all "$name" "not a Debian or Ubuntu machine" "    cmake g++" "HDPSIM_NO_INSTALL=1"
expect "$name, packages installed by hand" 0 'HDPSIM_NO_INSTALL=1; install_missing cmake g++'

name="packages that only some tests need, without a network"
debian
program apt-get 'exit 100'
expect "$name" 0 'install_if_possible "tests of torch" catch2'
said_all "$name" "without tests of torch: not installed: catch2"

name="neither root nor sudo"
debian
program id 'echo 1000'
expect "$name" 3 'install_missing g++'
said_all "$name" "neither root rights nor sudo" "    g++"
expect "$name, but nothing is missing" 0 'install_missing cmake'

name="sudo that wants a password where nobody can type one"
program sudo 'exit 1'
expect "$name" 3 'install_missing g++'
said_all "$name" "sudo refused" "    g++"
[[ $logged == "sudo -n true" ]] || failed "$name" "wrong call"

name="through sudo"
program sudo 'shift; "$@"'
expect "$name" 0 'install_missing g++'
[[ $logged == *"sudo -n env DEBIAN_FRONTEND=noninteractive apt-get"* ]] || failed "$name" "wrong call"

name="cmake too old for presets"
debian
program cmake 'echo cmake version 3.21.7'
expect "$name" 3 require_cmake
said_all "$name" "is version 3.21.7, 3.22 or later is needed"
program cmake 'echo cmake version 3.22.0'
expect "cmake just new enough" 0 require_cmake

name="a g++ before 12 gets a later one beside it"
debian
program g++ 'echo 11'
expect "$name" 0 'choose_compiler; echo "CXX is $CXX"'
said_all "$name" "installing with apt-get: g++-12" "CXX is g++-12"
program g++ 'echo 12'
expect "g++ 12 stays" 0 'choose_compiler; echo "CXX is ${CXX:-unset}"'
said_all "g++ 12 stays" "CXX is unset"
program g++ 'echo 11'
expect "the compiler of the user stays" 0 'CXX=clang++; choose_compiler; echo "CXX is $CXX"'
said_all "the compiler of the user stays" "CXX is clang++"

echo "$cases cases, $failures failed"
((failures == 0))
