#!/usr/bin/env bash
# Every rule of scripts/check_layers fires on a small tree with one breach, and stays silent on the right form beside it.
set -euo pipefail
checker=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/check_layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0
cases=0

# file PATH LINE...: adds a file to the tree; a header gets its pragma.
file() {
  local path=$1
  shift
  mkdir -p "$tree/$(dirname "$path")"
  [[ $path != *.h ]] || set -- '#pragma once' "$@"
  printf '%s\n' "$@" >"$tree/$path"
}

# expect NAME [LINE...]: the checker prints exactly these lines, and fails when there is one. Empties the tree.
expect() {
  local name=$1 output status=0
  shift
  output=$("$checker" "$tree" 2>&1) || status=$?
  local wanted wanted_status=$(($# > 0))
  wanted=$(printf '%s\n' "$@")
  cases=$((cases + 1))
  if [[ $output != "$wanted" || $status != "$wanted_status" ]]; then
    failures=$((failures + 1))
    printf 'FAILED: %s\n  wanted (exit %s): %s\n  got (exit %s): %s\n' "$name" "$wanted_status" "$wanted" "$status" "$output"
  fi
  rm -rf "${tree:?}"/*
}

# --- the order of the layers, as the checker's own table states it
sources=$(dirname "$checker")/../sim
declare -A may_include
order=()
while read -r kind folder used; do
  [[ $kind == layer && $folder == sim/* ]] || continue
  order+=("${folder#sim/}")
  may_include[${folder#sim/}]=${used//sim\//}
done < <("$checker" --order)

includes_go_up() {
  local seen=' ' layer used
  for layer in "${order[@]}"; do
    for used in ${may_include[$layer]}; do
      [[ $used == kernels || $used == calib || $seen == *" $used "* ]] || return 1
    done
    seen+="$layer "
  done
}

# check NAME CONDITION...: a test of what was read, not of a tree.
check() {
  local name=$1
  shift
  cases=$((cases + 1))
  if ! "$@"; then
    failures=$((failures + 1))
    echo "FAILED: $name"
  fi
}
check "every layer of the simulator is in the table" \
  test "$(printf '%s\n' "${order[@]}" | sort)" = "$(find "$sources" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort)"
check "a layer includes only layers that stand above it" includes_go_up
# shellcheck disable=SC2016  # a pattern
in_readme=$(sed -n 's/^| `\([a-z]*\)` |.*/\1/p' "$sources/README.md" | head -n "${#order[@]}" | xargs)
check "the table of sim/README.md has the same order" test "${order[*]}" = "$in_readme"

for from in "${order[@]}"; do
  includes=()
  refused=()
  for to in "${order[@]}"; do
    file "sim/$to/x.h"
    includes+=("#include \"sim/$to/x.h\"")
    [[ $from == "$to" || " ${may_include[$from]} " == *" $to "* ]] ||
      refused+=("sim/$from/user.cpp:${#includes[@]}: sim/$from may not include sim/$to/x.h")
  done
  file "sim/$from/user.cpp" "${includes[@]}"
  expect "sim/$from includes all layers" "${refused[@]}"
done

file sim/plan/impl/hdp.cpp '#include "sim/program/program.h"'
expect "a choice below impl/ belongs to the layer" "sim/plan/impl/hdp.cpp:1: sim/plan may not include sim/program/program.h"

for folder in kernels calib; do
  file sim/engine/a.cpp "#include \"$folder/cpu/a.h\""
  expect "the simulator knows no $folder" "sim/engine/a.cpp:1: sim/engine may not include $folder/cpu/a.h"
  file sim/app/a.cpp "#include \"$folder/cpu/a.h\""
  expect "the application may include $folder"
done

file kernels/cpu/a.cpp '#include "sim/base/units.h"' '#include "kernels/spec/a.h"'
expect "kernels know nothing of the simulator" "kernels/cpu/a.cpp:1: kernels/cpu may not include sim/base/units.h"
file kernels/exec/a.cpp '#include "sim/program/program.h"' '#include "sim/engine/engine.h"'
expect "the executor knows programs, not the engine" "kernels/exec/a.cpp:2: kernels/exec may not include sim/engine/engine.h"
file calib/measure/a.cpp '#include "kernels/cpu/a.h"' '#include "sim/profile/profile.h"' '#include "sim/cost/cost_model.h"'
expect "calibration writes profiles and knows no cost model" "calib/measure/a.cpp:3: calib/measure may not include sim/cost/cost_model.h"

file sim/extra/a.cpp ''
expect "a layer nobody placed" "sim/extra/a.cpp:1: not in a folder that scripts/check_layers knows"
file sim/a.cpp ''
expect "a source outside the layers" "sim/a.cpp:1: not in a folder that scripts/check_layers knows"
file sim/base/a.cpp '#include "units.h"'
expect "an include by a relative path" 'sim/base/a.cpp:1: include "units.h" by its path from the root'

file sim/base/a.h '#include "sim/base/b.h"'
file sim/base/b.h '#include "sim/base/c.h"'
file sim/base/c.h '' '#include "sim/base/b.h"'
expect "a cycle of includes" "sim/base/c.h:3: include cycle: sim/base/b.h sim/base/c.h sim/base/b.h"

# --- the homes of third-party packages
# home HEADER ALLOWED-FILE FORBIDDEN-FILE HOMES
home() {
  file "$2" "#include <$1>"
  expect "$1 in $2"
  file "$3" "#include <$1>"
  expect "$1 in $3" "$3:1: <$1> belongs in $4 only"
}
home yaml-cpp/yaml.h sim/document/a.cpp sim/study/a.cpp 'sim/document/'
home pugixml.hpp sim/cluster/a.cpp sim/study/a.cpp 'sim/cluster/'
home CLI/CLI.hpp sim/app/command_line.cpp sim/app/a.cpp 'sim/app/command_line.'
home nlohmann/json.hpp sim/report/a.cpp sim/plan/a.cpp 'sim/document/ sim/trace/ sim/run/ sim/results/ sim/report/ sim/replay/ sim/tune/ sim/validate/ sim/compare/ sim/fit/ sim/explore/ sim/import/ sim/profiler/ calib/measure/ tests/'
home httplib.h sim/explore/server/a.cpp sim/explore/a.cpp 'sim/explore/server/'
home toml++/toml.h sim/import/toml/a.cpp sim/import/a.cpp 'sim/import/toml/'
home Eigen/Dense calib/fit/a.cpp sim/cost/a.cpp 'calib/fit/ sim/fit/'
home catch2/catch.hpp tests/support/catch_main.cpp tests/unit/base/a.cpp 'tests/support/catch'
home benchmark/benchmark.h tests/bench/a.cpp sim/base/a.cpp 'tests/bench/'
home cuda_runtime.h kernels/cuda/a.cu kernels/cpu/a.cpp 'kernels/cuda/'
home cblas.h kernels/cpu/a.cpp kernels/cuda/a.cu 'kernels/cpu/'
home nccl.h kernels/cuda/a.cpp kernels/transport/a.cpp 'kernels/cuda/'
home mpi.h kernels/transport/a.cpp sim/engine/a.cpp 'kernels/transport/'
file sim/base/a.cpp '#include <fmt/format.h>' '#include <sys/stat.h>' '#include <unistd.h>' '#include <fcntl.h>' '#include <signal.h>'
expect "fmt and the operating system anywhere"
file sim/base/a.cpp '#include <boost/graph.hpp>'
expect "a package without a home" \
  "sim/base/a.cpp:1: <boost/graph.hpp> has no home: give its package a line in scripts/check_layers"

# --- house rules
exit_message='no exit() outside sim/app: return diagnostics, or throw'
file sim/study/a.cpp 'void f() { std::exit(2); }'
expect "std::exit" "sim/study/a.cpp:1: $exit_message"
file kernels/cpu/a.cpp 'void f() {' '  exit (1);' '}'
expect "exit in a kernel" "kernels/cpu/a.cpp:2: $exit_message"
file sim/app/a.cpp 'int f() { std::exit(2); }'
file sim/engine/a.cpp 'void f() { loop.exit(); process->exit(); on_exit(3); }  // exit(2)' 'auto s = "exit(2)";'
expect "exit in the application, and other things of that name"

random_message='random numbers come from the named streams of sim/base/random.h'
for code in 'int x = rand();' 'void f() { std::srand(1); }' 'std::random_device seed;' 'std::mt19937_64 engine;' '#include <random>'; do
  file sim/trace/a.cpp "$code"
  expect "$code" "sim/trace/a.cpp:1: $random_message"
done
file sim/trace/a.cpp 'int operand(int); int x = operand(1);'
file tests/property/a.cpp '#include <random>'
expect "operand is not rand, and tests may use other generators"

file sim/engine/a.cpp '#include <chrono>' 'auto t = std::chrono::steady_clock::now();'
expect "a wall clock" "sim/engine/a.cpp:1: no wall clock in the simulator" "sim/engine/a.cpp:2: no wall clock in the simulator"
file sim/run/a.cpp '#include <chrono>' 'auto t = std::chrono::steady_clock::now();'
file sim/app/a.cpp '#include <chrono>' 'auto t = std::chrono::system_clock::now();'
expect "studies time themselves, and the application may know the date"
file sim/run/a.cpp 'auto t = std::chrono::system_clock::now();'
expect "the date" "sim/run/a.cpp:1: of all clocks only steady_clock: the same input gives the same bytes"

file tests/unit/base/a_test.cpp 'auto folder = std::filesystem::temp_directory_path() / "a_test";'
expect "a fixed name in a shared folder" \
  "tests/unit/base/a_test.cpp:1: a name in a shared folder meets that of another checkout: tests/support/temporary_folder.h makes one of its own"

file sim/base/a.cpp 'auto home = std::getenv("HOME");'
expect "an environment variable" "sim/base/a.cpp:1: no environment variable below sim/app"
file sim/app/a.cpp 'auto home = std::getenv("NO_COLOR");'
expect "an environment variable in the application"

file sim/plan/a.cpp 'std::jthread worker;'
expect "a thread" "sim/plan/a.cpp:1: no threads below sim/run"
file sim/run/a.cpp '#include <thread>' 'std::jthread worker;'
file sim/app/a.cpp 'std::jthread progress;'
file sim/plan/a.cpp 'std::this_thread::yield();'
expect "threads of a study and of the application"

stderr_message='what is told to people goes through sim/app/terminal.h: nothing that standard error refuses may end a run'
for code in 'void f() { fmt::print(stderr, "x"); }' 'void f() { std::cerr << 1; }' 'void f() { perror("x"); }'; do
  file kernels/cpu/a.cpp "$code"
  file sim/app/main.cpp "$code"
  expect "$code" "kernels/cpu/a.cpp:1: $stderr_message" "sim/app/main.cpp:1: $stderr_message"
done
file sim/app/terminal.cpp 'void tell() { write(STDERR_FILENO, "x", 1); }'
file tests/oracle/a.cpp 'void f() { std::cerr << 1; }'
expect "the one place for standard error, and programs of their own"

# --- one name, one type
file sim/model/a.h 'namespace hdpsim {' 'struct Part {' '};' '}  // namespace hdpsim'
file sim/plan/a.cpp 'namespace hdpsim {' 'class Part final' '    : public Whole {' '};' '}  // namespace hdpsim'
expect "two types of one name" "sim/plan/a.cpp:2: hdpsim::Part is defined in sim/model/a.h, too: to the linker they are one type"
file sim/model/a.h 'namespace hdpsim {' 'struct Part;' 'struct Part {' '};' 'struct Part::Inner {' '};' '}  // namespace hdpsim'
file sim/plan/a.cpp 'namespace hdpsim {' 'namespace {' 'struct Part {' '};' '}  // namespace' '}  // namespace hdpsim' \
  'namespace hdpsim::plan {' 'enum class Part {' '};' '}  // namespace hdpsim::plan'
file tests/unit/a.cpp 'namespace hdpsim {' 'struct Part {' '};' '}  // namespace hdpsim'
expect "types of one name in namespaces of their own"

mkdir -p "$tree/sim/base"
printf '%s\n' '// Units.' '#pragma once' >"$tree/sim/base/a.h"
expect "a header that starts with something else" "sim/base/a.h:1: a header starts with #pragma once"

for word in TODO FIXME; do
  file sim/base/a.cpp '' "// $word: later"
  expect "$word" "sim/base/a.cpp:2: finish it, or say in words what is missing: no TODO, no FIXME"
done

# --- comments and literals are not code
file sim/engine/a.cpp '/* exit(1)' '   rand() */ int x = 0;' 'auto page = R"js(' 'exit(1) "' '#include "nothing.h"' ')js";' \
  "int million = 1'000'000;" "char quote = '\"'; // getenv(\"" 'auto text = "a \" exit(1)";'
expect "comments, raw strings, digit separators and quotes"
file sim/engine/a.cpp '/* a */ exit(1);' 'auto page = R"(' ')"; exit(2);' "int million = 1'000; exit(3);" "char quote = '\"'; exit(4);"
expect "code behind comments and literals" "sim/engine/a.cpp:1: $exit_message" "sim/engine/a.cpp:3: $exit_message" \
  "sim/engine/a.cpp:4: $exit_message" "sim/engine/a.cpp:5: $exit_message"

if "$checker" "$tree" 2>/dev/null; then
  failures=$((failures + 1))
  echo "FAILED: a tree without sources is an error"
fi

echo "$cases cases, $failures failed"
((failures == 0))
