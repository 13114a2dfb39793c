#!/usr/bin/env python3
"""scripts/check_names on small trees: what it refuses, and the right form beside it."""

import sys

from pretended_tree import PretendedTree

tree = PretendedTree("check_names")


def source(path, *lines):
    """A source or header of namespace hdpsim whose lines are in an unnamed namespace if it is a source."""
    if path.endswith(".cpp"):
        lines = ("namespace {", *lines, "}  // namespace")
    tree.write(path, "namespace hdpsim {", *lines, "}  // namespace hdpsim")


def sources(name, files, *wanted):
    """`files`: by path the lines of one."""
    for path, lines in files.items():
        source(path, *lines.split("\n"))
    tree.expect(name, *wanted)


for declaration in ("constexpr int most = 3;", "const std::map<int, int> most{{1, 2}};", "int most(int a) { return a; }",
                    "template <class T, int n = 3> struct most { T a; };", "enum class most : int { one };",
                    "[[nodiscard]] int& most();", 'const char most[] = "{";'):
    sources(f"two sources of one layer: {declaration}",
            {"sim/plan/a.cpp": declaration, "sim/plan/impl/b.cpp": f"int other() {{ return 1; }}\n{declaration}"},
            "sim/plan/impl/b.cpp:4: most is also what sim/plan/a.cpp:3 keeps to itself")
sources("sources of two layers", {"sim/plan/a.cpp": "constexpr int most = 3;", "sim/engine/b.cpp": "constexpr int most = 4;"})
sources("commands are compiled one by one", {"sim/app/a.cpp": "struct Options {};", "sim/app/b.cpp": "struct Options {};"})
TOKENS = "using Tokens = std::vector<int>;"
sources("aliases of one type", {"sim/plan/a.cpp": TOKENS, "sim/plan/b.cpp": TOKENS})
sources("aliases of two types", {"sim/plan/a.cpp": TOKENS, "sim/plan/b.cpp": TOKENS.replace("int", "long")},
        "sim/plan/b.cpp:3: Tokens is also what sim/plan/a.cpp:3 keeps to itself")
sources("locals, members, comments and literals declare nothing",
        {"sim/plan/a.cpp": 'void f() { int most = 3; }\nstruct S { int most; };\n// int most;\nconst char* text = "int most;";',
         "sim/plan/b.cpp": "int most = 3;"})

CONSTANT = "inline constexpr int most = 3;"
OWN = "constexpr int most = 3;"
HIDES = "sim/plan/a.cpp:3: most hides sim/base/x.h:"
for hidden in (CONSTANT, "struct most { int a; };", "int most(int a);"):
    sources(f"a constant that hides {hidden}", {"sim/base/x.h": hidden, "sim/plan/a.cpp": OWN}, HIDES + "2")
FUNCTION = "std::string most(double a) { return {}; }"
sources("a function that hides a constant", {"sim/base/x.h": CONSTANT, "sim/plan/a.cpp": FUNCTION}, HIDES + "2")
sources("functions overload", {"sim/base/x.h": "std::string most(int a);", "sim/plan/a.cpp": FUNCTION})
LIMITS = {"sim/base/x.h": f"namespace limits {{\n{CONSTANT}\n}}", "sim/plan/a.cpp": OWN}
sources("a namespace that no source opens", LIMITS)
sources("a name of a namespace that another source opens",
        {**LIMITS, "sim/plan/b.cpp": "using namespace limits;\nint twice = 2 * most;"}, HIDES + "3")
sources("headers that the layer cannot include",
        {"sim/engine/x.h": CONSTANT, "sim/base/impl/y.h": CONSTANT, "sim/plan/a.cpp": OWN})

sys.exit(tree.exit_code())
