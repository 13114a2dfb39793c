#!/usr/bin/env python3
"""Every rule of scripts/check_layers fires on a small tree with one breach, and stays silent on the right form beside it."""

import re
import subprocess
import sys

from pretended_tree import ROOT, PretendedTree

tree = PretendedTree("check_layers")
rules = tree.script["Rules"]()


def file(path, *lines):
    """Adds a file to the tree; a header gets its pragma."""
    tree.write(path, *(["#pragma once"] if path.endswith(".h") else []), *lines)


def one_file(path, code, *messages):
    """A file with these lines, and the messages of line 1."""
    file(path, *code.split("\n"))
    tree.expect(f"{path}: {code}", *(f"{path}:1: {message}" for message in messages))


def order_of_layers():
    order = [layer for layer in rules.may_include if layer.startswith("sim/")]
    names = [layer.removeprefix("sim/") for layer in order]
    tree.check("every layer of the simulator is in the table", sorted(names),
               sorted(path.name for path in (ROOT / "sim").iterdir() if path.is_dir()))
    readme = re.findall(r"^\| `([a-z]*)` \|", (ROOT / "sim/README.md").read_text(), re.MULTILINE)
    tree.check("the table of sim/README.md has the same order", readme[:len(names)], names)
    for at, layer in enumerate(order):
        used = [folder.rstrip("/") for folder in rules.may_include[layer] if folder.startswith("sim/")]
        tree.check(f"{layer} includes only layers above it", [folder for folder in used if folder not in order[:at + 1]], [])
        refused = []
        for line, other in enumerate(order, 1):
            file(f"{other}/x.h")
            if other not in used:
                refused.append(f"{layer}/user.cpp:{line}: {layer} may not include {other}/x.h")
        file(f"{layer}/user.cpp", *(f'#include "{other}/x.h"' for other in order))
        tree.expect(f"{layer} includes all layers", *refused)


def includes():
    def refused(path, header, layer):
        one_file(path, f'#include "{header}"', f"{layer} may not include {header}")

    refused("sim/plan/impl/hdp.cpp", "sim/program/program.h", "sim/plan")  # a choice below impl/ belongs to its layer
    for folder in ("kernels", "calib"):
        refused("sim/engine/a.cpp", f"{folder}/cpu/a.h", "sim/engine")
        one_file("sim/app/a.cpp", f'#include "{folder}/cpu/a.h"')
    refused("kernels/cpu/a.cpp", "sim/base/units.h", "kernels/cpu")
    one_file("kernels/cpu/a.cpp", '#include "kernels/spec/a.h"')
    refused("kernels/exec/a.cpp", "sim/engine/engine.h", "kernels/exec")
    one_file("kernels/exec/a.cpp", '#include "sim/program/program.h"')
    refused("calib/measure/a.cpp", "sim/cost/cost_model.h", "calib/measure")
    one_file("calib/measure/a.cpp", '#include "kernels/cpu/a.h"\n#include "sim/profile/profile.h"')

    nowhere = "not in a folder that scripts/check_layers knows"
    one_file("sim/extra/a.cpp", "", nowhere)
    one_file("sim/a.cpp", "", nowhere)
    one_file("sim/base/a.cpp", '#include "units.h"', 'include "units.h" by its path from the root')

    file("sim/base/a.h", '#include "sim/base/b.h"')
    file("sim/base/b.h", '#include "sim/base/c.h"')
    file("sim/base/c.h", "", '#include "sim/base/b.h"')
    tree.expect("a cycle of includes", "sim/base/c.h:3: include cycle: sim/base/b.h sim/base/c.h sim/base/b.h")


def homes_of_packages():
    for header, home, elsewhere in (
            ("yaml-cpp/yaml.h", "sim/document/a.cpp", "sim/study/a.cpp"),
            ("pugixml.hpp", "sim/cluster/a.cpp", "sim/study/a.cpp"),
            ("CLI/CLI.hpp", "sim/app/command_line.cpp", "sim/app/a.cpp"),
            ("nlohmann/json.hpp", "sim/report/a.cpp", "sim/plan/a.cpp"),
            ("httplib.h", "sim/explore/server/a.cpp", "sim/explore/a.cpp"),
            ("toml++/toml.h", "sim/import/toml/a.cpp", "sim/import/a.cpp"),
            ("Eigen/Dense", "calib/fit/a.cpp", "sim/cost/a.cpp"),
            ("catch2/catch.hpp", "tests/support/catch_main.cpp", "tests/unit/base/a.cpp"),
            ("benchmark/benchmark.h", "tests/bench/a.cpp", "sim/base/a.cpp"),
            ("cuda_runtime.h", "kernels/cuda/a.cu", "kernels/cpu/a.cpp"),
            ("cblas.h", "kernels/cpu/a.cpp", "kernels/cuda/a.cu"),
            ("nccl.h", "kernels/cuda/a.cpp", "kernels/transport/a.cpp"),
            ("mpi.h", "kernels/transport/a.cpp", "sim/engine/a.cpp")):
        homes = next(homes for begin, homes in rules.homes.items() if header.startswith(begin))
        one_file(home, f"#include <{header}>")
        one_file(elsewhere, f"#include <{header}>", f"<{header}> belongs in {' '.join(homes)} only")
    for header in ("fmt/format.h", "sys/stat.h", "unistd.h", "fcntl.h", "signal.h"):
        one_file("sim/base/a.cpp", f"#include <{header}>")
    one_file("sim/base/a.cpp", "#include <boost/graph.hpp>",
             "<boost/graph.hpp> has no home: give its package a line in scripts/check_layers")


NO_EXIT = "no exit() outside sim/app: return diagnostics, or throw"


def bans():
    one_file("sim/study/a.cpp", "void f() { std::exit(2); }", NO_EXIT)
    one_file("kernels/cpu/a.cpp", "  exit (1);", NO_EXIT)
    one_file("sim/app/a.cpp", "int f() { std::exit(2); }")
    one_file("sim/engine/a.cpp", "loop.exit(); process->exit(); on_exit(3);  // exit(2)")
    for code in ("int x = rand();", "std::srand(1);", "std::random_device seed;", "std::mt19937_64 engine;", "#include <random>"):
        one_file("sim/trace/a.cpp", code, "random numbers come from the named streams of sim/base/random.h")
    one_file("sim/trace/a.cpp", "int operand(int); int x = operand(1);")
    one_file("tests/property/a.cpp", "#include <random>")
    for code in ("#include <chrono>", "auto t = std::chrono::steady_clock::now();"):
        one_file("sim/engine/a.cpp", code, "no wall clock in the simulator")
        one_file("sim/run/a.cpp", code)
    one_file("sim/app/a.cpp", "auto t = std::chrono::system_clock::now();")
    one_file("sim/run/a.cpp", "auto t = std::chrono::system_clock::now();",
             "of all clocks only steady_clock: the same input gives the same bytes")
    one_file("tests/unit/base/a_test.cpp", 'auto folder = std::filesystem::temp_directory_path() / "a_test";',
             "a name in a shared folder meets that of another checkout: tests/support/temporary_folder.h makes one of its own")
    one_file("sim/base/a.cpp", 'auto home = std::getenv("HOME");', "no environment variable below sim/app")
    one_file("sim/app/a.cpp", 'auto home = std::getenv("NO_COLOR");')
    one_file("sim/plan/a.cpp", "std::jthread worker;", "no threads below sim/run")
    one_file("sim/plan/a.cpp", "std::this_thread::yield();")
    one_file("sim/run/a.cpp", "#include <thread>\nstd::jthread worker;")
    one_file("sim/app/a.cpp", "std::jthread progress;")
    for code in ('fmt::print(stderr, "x");', "std::cerr << 1;", 'perror("x");'):
        for path in ("kernels/cpu/a.cpp", "sim/app/main.cpp"):
            one_file(path, code, "what is told to people goes through sim/app/terminal.h: "
                                 "nothing that standard error refuses may end a run")
    one_file("sim/app/terminal.cpp", 'write(STDERR_FILENO, "x", 1);')
    one_file("tests/oracle/a.cpp", "std::cerr << 1;")
    for word in ("TODO", "FIXME"):
        one_file("sim/base/a.cpp", f"// {word}: later", "finish it, or say in words what is missing: no TODO, no FIXME")
    tree.write("sim/base/a.h", "// Units.", "#pragma once")
    tree.expect("a header that starts with something else", "sim/base/a.h:1: a header starts with #pragma once")


def types_of_one_name():
    file("sim/model/a.h", "namespace hdpsim {", "struct Part {", "};", "}  // namespace hdpsim")
    file("sim/plan/a.cpp", "namespace hdpsim {", "class Part final", "    : public Whole {", "};", "}  // namespace hdpsim")
    tree.expect("two types of one name",
                "sim/plan/a.cpp:2: hdpsim::Part is defined in sim/model/a.h, too: to the linker they are one type")
    file("sim/model/a.h", "namespace hdpsim {", "struct Part;", "struct Part {", "};", "struct Part::Inner {", "};",
         "}  // namespace hdpsim")
    file("sim/plan/a.cpp", "namespace hdpsim {", "namespace {", "struct Part {", "};", "}  // namespace", "}  // namespace hdpsim",
         "namespace hdpsim::plan {", "enum class Part {", "};", "}  // namespace hdpsim::plan")
    file("tests/unit/a.cpp", "namespace hdpsim {", "struct Part {", "};", "}  // namespace hdpsim")
    tree.expect("types of one name in namespaces of their own")


def comments_and_literals():
    file("sim/engine/a.cpp", "/* exit(1)", "   rand() */ int x = 0;", 'auto page = R"js(', 'exit(1) "', '#include "nothing.h"',
         ')js";', "int million = 1'000'000;", "char quote = '\"'; // getenv(\"", 'auto text = "a \\" exit(1)";')
    tree.expect("comments, raw strings, digit separators and quotes")
    file("sim/engine/a.cpp", "/* a */ exit(1);", 'auto page = R"(', ')"; exit(2);', "int million = 1'000; exit(3);",
         "char quote = '\"'; exit(4);")
    tree.expect("code behind comments and literals", *(f"sim/engine/a.cpp:{line}: {NO_EXIT}" for line in (1, 3, 4, 5)))


def exit_codes():
    def run():
        done = subprocess.run([ROOT / "scripts/check_layers", tree.root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    tree.check("a tree without sources is an error", run(), (2, ""))
    file("sim/plan/a.cpp", "int x;")
    tree.check("a tree that keeps the rules", run(), (0, ""))
    file("sim/plan/a.cpp", "exit(1);")
    tree.check("a tree that does not", run(), (1, f"sim/plan/a.cpp:1: {NO_EXIT}\n"))


for rule in (order_of_layers, includes, homes_of_packages, bans, types_of_one_name, comments_and_literals, exit_codes):
    rule()
sys.exit(tree.exit_code())
