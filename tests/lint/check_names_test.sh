#!/usr/bin/env bash
# scripts/check_names on small trees: what it refuses, and the right form beside it.
set -euo pipefail
checker=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/check_names
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0
cases=0

# source_file PATH LINE...: a source or header of namespace hdpsim whose lines are in an unnamed namespace if it is a source.
source_file() {
  local path=$1
  shift
  mkdir -p "$tree/$(dirname "$path")"
  if [[ $path == *.cpp ]]; then
    printf '%s\n' 'namespace hdpsim {' 'namespace {' "$@" '}  // namespace' '}  // namespace hdpsim' >"$tree/$path"
  else
    printf '%s\n' 'namespace hdpsim {' "$@" '}  // namespace hdpsim' >"$tree/$path"
  fi
}

# expect NAME [LINE...]: the checker prints exactly these lines, and fails when there is one. Empties the tree.
expect() {
  local name=$1 output status=0 wanted
  shift
  output=$("$checker" "$tree" 2>&1) || status=$?
  wanted=$(printf '%s\n' "$@")
  cases=$((cases + 1))
  if [[ $output != "$wanted" || $status != "$(($# > 0))" ]]; then
    failures=$((failures + 1))
    printf 'FAILED: %s\n  wanted: %s\n  got (exit %s): %s\n' "$name" "$wanted" "$status" "$output"
  fi
  rm -rf "${tree:?}"/*
}

for declaration in 'constexpr int most = 3;' 'const std::map<int, int> most{{1, 2}};' 'int most(int a) { return a; }' \
  'template <class T, int n = 3> struct most { T a; };' 'enum class most : int { one };' '[[nodiscard]] int& most();' \
  'const char most[] = "{";'; do
  source_file sim/plan/a.cpp "$declaration"
  source_file sim/plan/impl/b.cpp 'int other() { return 1; }' "$declaration"
  expect "two sources of one layer: $declaration" \
    "sim/plan/impl/b.cpp:4: most is also what sim/plan/a.cpp:3 keeps to itself"
done

source_file sim/plan/a.cpp 'constexpr int most = 3;'
source_file sim/engine/b.cpp 'constexpr int most = 4;'
expect "sources of two layers"

source_file sim/app/a.cpp 'struct Options {};'
source_file sim/app/b.cpp 'struct Options {};'
expect "commands are compiled one by one"

source_file sim/plan/a.cpp 'using Tokens = std::vector<int>;'
source_file sim/plan/b.cpp 'using Tokens = std::vector<int>;'
expect "aliases of one type"
source_file sim/plan/a.cpp 'using Tokens = std::vector<int>;'
source_file sim/plan/b.cpp 'using Tokens = std::vector<long>;'
expect "aliases of two types" "sim/plan/b.cpp:3: Tokens is also what sim/plan/a.cpp:3 keeps to itself"

source_file sim/plan/a.cpp 'void f() { int most = 3; }' 'struct S { int most; };' '// int most;' 'const char* text = "int most;";'
source_file sim/plan/b.cpp 'int most = 3;'
expect "locals, members, comments and literals declare nothing"

for hidden in 'inline constexpr int most = 3;' 'struct most { int a; };' 'int most(int a);'; do
  source_file sim/base/x.h "$hidden"
  source_file sim/plan/a.cpp 'constexpr int most = 3;'
  expect "a constant that hides $hidden" "sim/plan/a.cpp:3: most hides sim/base/x.h:2"
done
source_file sim/base/x.h 'inline constexpr int most = 3;'
source_file sim/plan/a.cpp 'std::string most(double a) { return {}; }'
expect "a function that hides a constant" "sim/plan/a.cpp:3: most hides sim/base/x.h:2"
source_file sim/base/x.h 'std::string most(int a);'
source_file sim/plan/a.cpp 'std::string most(double a) { return {}; }'
expect "functions overload"
source_file sim/base/x.h 'namespace limits {' 'inline constexpr int most = 3;' '}'
source_file sim/plan/a.cpp 'constexpr int most = 3;'
expect "a namespace that no source opens"
source_file sim/base/x.h 'namespace limits {' 'inline constexpr int most = 3;' '}'
source_file sim/plan/a.cpp 'constexpr int most = 3;'
source_file sim/plan/b.cpp 'using namespace limits;' 'int twice = 2 * most;'
expect "a name of a namespace that another source opens" "sim/plan/a.cpp:3: most hides sim/base/x.h:3"
source_file sim/engine/x.h 'inline constexpr int most = 3;'
source_file sim/base/impl/y.h 'inline constexpr int most = 3;'
source_file sim/plan/a.cpp 'constexpr int most = 3;'
expect "headers that the layer cannot include"

echo "$cases cases, $failures failed"
((failures == 0))
