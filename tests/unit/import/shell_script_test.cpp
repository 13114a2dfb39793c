#include "sim/import/shell_script.h"

#include <fmt/format.h>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Variables = std::map<std::string, std::string>;

/// A script that has been read.
struct ReadScript {
  ShellScript script;
  Diagnostics problems;
};

ReadScript read_script(const std::string& text, const Variables& variables = {}) {
  ReadScript read_script;
  read_script.script = read_shell_script("run.sh", text, variables, read_script.problems);
  return read_script;
}

// The words of each command between bars, words that are not known as what they are made of.
std::vector<std::string> commands(const std::string& text, const Variables& variables = {}) {
  const ReadScript result = read_script(text, variables);
  CAPTURE(result.problems.text());
  CHECK(result.problems.empty());
  std::vector<std::string> all;
  for (const ShellCommand& command : result.script.commands) {
    std::string words;
    for (const ShellText& word : command.words) {
      words += fmt::format("{}{}", words.empty() ? "" : "|", word.text + (word.unset.empty() ? "" : "?" + word.unset));
    }
    all.push_back(words);
  }
  return all;
}

using Commands = std::vector<std::string>;

TEST_CASE("variables stand in words and in quotes, and are split outside of quotes alone", "[import]") {
  CHECK(commands("A='one two'\nrun $A \"$A\" '$A' ${A}s x\"$A\"y") ==
        Commands{"run|one|two|one two|$A|one|twos|xone twoy"});
  CHECK(commands("A=1; B=$A$A; run $B") == Commands{"run|11"});
  CHECK(commands("A=\"--a 1 \\\n  --b\"\nrun $A") == Commands{"run|--a|1|--b"});
  CHECK(commands("export N=8\nrun \\\n --n $N # not this\n") == Commands{"run|--n|8"});
}

TEST_CASE("arrays give a word an item in quotes, and are split without", "[import]") {
  CHECK(commands("L=(--a 1 # no\n  \"--b 2\")\nL+=(--c)\nrun ${L[@]}") == Commands{"run|--a|1|--b|2|--c"});
  CHECK(commands("L=(\"--b 2\" --c)\nrun \"${L[@]}\"") == Commands{"run|--b 2|--c"});
  CHECK(commands("L=()\nrun ${L[@]} \"${L[@]}\" end") == Commands{"run|end"});
  CHECK(commands("A=1\nA+=2\nrun $A") == Commands{"run|12"});
}

TEST_CASE("arithmetic is computed, and what cannot be is not known", "[import]") {
  CHECK(commands("G=8\nN=4\nrun $((G*$N)) $(( (G + 2) * 3 - 30 / 4 ))") == Commands{"run|32|23"});
  CHECK(commands("run $((9223372036854775807 + 1)) $((1/0)) $((X+1))") ==
        Commands{"run|?$((9223372036854775807 + 1))|?$((1/0))|?$((X+1))"});
  CHECK(commands("run $((020))") == Commands{"run|?$((020))"});  // octal
  std::string doubled = "A0=1\n";                                // 2^31 terms
  for (int i = 1; i <= 31; ++i) doubled += fmt::format("A{}='A{}+A{}'\n", i, i - 1, i - 1);
  CHECK(commands(doubled + "run $((A31))") == Commands{"run|?$((A31))"});
}

TEST_CASE("defaults count where nothing is set, and are told", "[import]") {
  const ReadScript result = read_script("A=\nB=2\nrun ${A:-a} ${A-a} ${B:-b} ${C:-$B} ${1:-first}\n");
  CHECK(commands("A=\nB=2\nrun ${A:-a} ${A-a} ${B:-b} ${C:-$B} ${1:-first}\n") == Commands{"run|a|2|2|first"});
  REQUIRE(result.script.notes.size() == 1);
  CHECK(result.script.notes.front().text == "defaults count for what run.sh does not set: 1 (first), A (a), C (2)");
  CHECK(commands("run ${C:=7} $C ${C:+set} ${D:+set}") == Commands{"run|7|7|set"});
}

TEST_CASE("what the script does not set is not known, and neither is what commands print", "[import]") {
  CHECK(commands("run --data $1 --n $(nproc --all) `x` ${Y%.*} $NONE") ==
        Commands{"run|--data|?$1|--n|?$(nproc --all)|?`x`|?${Y%.*}|?$NONE"});
}

TEST_CASE("a value from outside goes before what the script assigns", "[import]") {
  CHECK(commands("N=1\nrun $N", {{"N", "16"}}) == Commands{"run|16"});
}

TEST_CASE("a branch runs if its condition is known to hold", "[import]") {
  CHECK(commands("D=fp8\nif [[ \"$D\" == fp8 ]]; then A=1; else A=2; fi\nrun $A") == Commands{"run|1"});
  CHECK(commands("N=3\nif [ $N -eq 2 ]; then A=1; elif [ $N -gt 2 ]; then A=2; else A=3; fi; run $A") ==
        Commands{"run|2"});
  CHECK(commands("if [[ -z $X || a = b ]] && ! [ 1 -eq 2 ]; then run; fi") == Commands{"run"});
  CHECK(commands("[ a = a ] && A=1\n[ a = b ] && A=2\n[ a = b ] || B=3\nrun $A $B") == Commands{"run|1|3"});
}

TEST_CASE("what hangs on the machine is left out, and told where it could matter", "[import]") {
  const ReadScript result =
      read_script("A=1\nif [ -f x ]; then\n  A=2\nfi\nif [ ! -f y ]; then echo none; exit 1; fi\nrun $A");
  CHECK(result.script.commands.size() == 1);
  REQUIRE(result.script.notes.size() == 1);
  CHECK(result.script.notes.front().position.line == 2);
  CHECK(result.script.notes.front().text ==
        "the condition depends on the machine: what hangs on it, up to line 4, is left out");
  const ReadScript unset = read_script("if [ -n \"$KEY\" ]; then ARGS+=(--x); fi\n");
  REQUIRE(unset.script.notes.size() == 1);
  CHECK(unset.script.notes.front().text == "$KEY has no value here: what hangs on it, up to line 1, is left out");
}

TEST_CASE("loops, cases and functions are not followed, and that is told if they could matter", "[import]") {
  const ReadScript result = read_script(
      "for i in 1 2; do\n  A=$i\ndone\nwhile read x; do echo $x; done\ncase $B in\n  1|2) C=3 ;;\n  *) C=4 ;;\nesac\n"
      "f() { run --a; }\nfunction g {\n  echo\n}\nrun after\n");
  CHECK(result.problems.empty());
  REQUIRE(result.script.commands.size() == 1);
  CHECK(result.script.commands[0].words.at(1).text == "after");
  std::vector<std::string> told;
  for (const ImportNote& note : result.script.notes) told.push_back(note.text);
  CHECK(told == Commands{"a loop up to line 3 is not followed", "a loop up to line 4 is not followed",
                         "a case up to line 8 is not followed", "a function up to line 9 is not followed"});
  CHECK(commands("function g() {\n  run\n}\nrun after") == Commands{"run|after"});
}

TEST_CASE("what a command of the shell sets is not known afterwards, and that is told", "[import]") {
  for (const std::string command : {"((G*=2))", "((G = 16))", "((++G))", "let G=16", "let G*=2", "read G <<< 16",
                                    "printf -v G %d 16", "mapfile G < x"}) {
    CAPTURE(command);
    const ReadScript result = read_script("G=8\n" + command + "\nrun $G\n");
    CHECK(result.script.commands.back().words.at(1).text == "");
    CHECK(result.script.commands.back().words.at(1).unset == "$G");
    REQUIRE(result.script.notes.size() == 1);
    CHECK(result.script.notes.front().position.line == 2);
    CHECK(result.script.notes.front().text.ends_with("is not followed: --var NAME=VALUE gives what it sets"));
  }
  CHECK(read_script("G=8\n((G > 4)) && run --a\n").script.notes.size() == 1);  // what hangs on it
  CHECK(commands("G=8\nunset G\nrun ${G:-16}").back() == "run|16");
  CHECK(read_script("eval G=16\n").script.notes.size() == 1);
}

TEST_CASE("what is set for one command, or in a subshell, ends with it", "[import]") {
  CHECK(commands("G=8\nG=16 H=1 run $G\nrun $G ${H:-none}") == Commands{"run|8", "run|8|none"});
  CHECK(commands("G=8\n(G=16; run $G)\nrun $G") == Commands{"run|16", "run|8"});
  CHECK(commands("A=1 B=$A$A\nrun $B") == Commands{"run|11"});
  CHECK(commands("A=1\nB=2\n(unset A; B+=3; C=4)\nrun $A $B ${C:-none}").back() == "run|1|2|none");
  std::string many;  // as much text to keep as variables may hold, and more
  for (int i = 0; i < 1000; ++i) many += fmt::format("V{}={}\n", i, std::string(100, 'x'));
  for (int i = 0; i < 10'000; ++i) many += "(true)\n";
  CHECK_FALSE(read_script(many).problems.empty());
  CHECK(commands("export A=1 B=2\nrun $A$B") == Commands{"run|12"});
}

TEST_CASE("redirections and here-documents are no words", "[import]") {
  CHECK(commands("run --a 1 2>&1 >log.txt | tee x\ncat <<EOF >f\nrun --no\n$(EOF\nEOF\nrun b < in &> out &\n") ==
        Commands{"run|--a|1", "tee|x", "cat", "run|b"});
}

TEST_CASE("every word knows where it stands", "[import]") {
  const ReadScript result = read_script("N=96\nL=(\n  --layers $N\n)\nrun ${L[@]}");
  const auto& words = result.script.commands.at(0).words;
  const auto at = [&](std::size_t word) {
    const Position position = result.script.position("run.sh", words.at(word));
    return fmt::format("{}:{}", position.line, position.column);
  };
  CHECK(at(0) == "5:1");
  CHECK(at(1) == "3:3");
  CHECK(at(2) == "1:3");  // where the number is
}

TEST_CASE("what is not closed is an error at its beginning", "[import]") {
  const auto problem = [](const std::string& text) {
    const ReadScript result = read_script(text);
    if (result.problems.empty()) return std::string("none");
    const Diagnostic first = result.problems.sorted().front();
    return fmt::format("{}:{}: {}", first.position.line, first.position.column, first.message);
  };
  CHECK(problem("a\nrun 'x\n") == "2:5: a text without an end: ' is missing");
  CHECK(problem("run \"x") == "1:5: a text without an end: \" is missing");
  CHECK(problem("L=(a\nb") == "1:3: a list without an end: ')' is missing");
  CHECK(problem("run ${A:-b") == "1:5: an expansion without an end: } is missing");
  CHECK(problem("run $(a") == "1:5: a command without an end: ) is missing");
}

TEST_CASE("variables that hold each other without end are refused", "[import]") {
  std::string text = "A=aaaaaaaaaaaaaaaa\n";
  for (int i = 0; i < 40; ++i) text += "A=$A$A\n";
  const ReadScript result = read_script(text + "run $A");
  REQUIRE(result.problems.sorted().size() == 1);
  CHECK(result.problems.sorted().front().message == "the variables expand to more than 4 MB");
}

TEST_CASE("a script that is nested without end is refused", "[import]") {
  for (const std::string& part : {std::string("if "), std::string("( "), std::string("a()"), std::string("{ ")}) {
    std::string text;
    for (int i = 0; i < 10'000; ++i) text += part;
    CAPTURE(part);
    CHECK_FALSE(read_script(text).problems.empty());
  }
  std::string expansions = "run ";
  for (int i = 0; i < 10'000; ++i) expansions += "${A:-";
  CHECK_FALSE(read_script(expansions).problems.empty());
}

}  // namespace
}  // namespace hdpsim
