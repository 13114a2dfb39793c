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
      words += fmt::format("{}{}", words.empty() ? "" : "|", word.text + (word.is_known() ? "" : "?" + word.unset()));
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
  CHECK(commands("L=(8 16)\nrun ${L[1]} \"${L[0]}\" ${L[2]}") == Commands{"run|16|8|?$L"});
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
  CHECK(commands("[ a = a ] && A=1 || A=2\n[ a = b ] && B=1 || B=2\nrun $A $B") == Commands{"run|1|2"});
  CHECK(commands("if [[ -z $X || a = b ]] && ! [ 1 -eq 2 ]; then run; fi") == Commands{"run"});
  CHECK(commands("[ a = a ] && A=1\n[ a = b ] && A=2\n[ a = b ] || B=3\nrun $A $B") == Commands{"run|1|3"});
}

// The notes of a script.
std::vector<std::string> told(const std::string& text, const Variables& variables = {}) {
  std::vector<std::string> all;
  for (const ImportNote& note : read_script(text, variables).script.notes) all.push_back(note.text);
  return all;
}

TEST_CASE("a value that hangs on the machine is not known, unless all branches leave the same", "[import]") {
  const ReadScript result = read_script("A=1\nif [ -f x ]; then\n  A=2\nfi\nrun $A");
  const ShellText& word = result.script.commands.back().words.at(1);
  CHECK(word.unset() == "$A");
  CHECK(word.unknowns.front().holder == "A");
  CHECK(word.unknowns.front().why == "it depends on the condition in line 2");
  CHECK(commands("if nvidia-smi; then A=8; else A=4; fi\nrun $A").back() == "run|?$A");
  CHECK(commands("A=1\n[ -f x ] && A=2\nrun $A").back() == "run|?$A");
  CHECK(commands("A=1\ngrep -q x y && A=2\nrun $A").back() == "run|?$A");
  CHECK(commands("if [ -f x ]; then A=8; else A=8; fi\nrun $A").back() == "run|8");
  CHECK(commands("A=1\nif [ -f x ]; then A=2; exit 1; fi\nrun $A").back() == "run|1");  // it did not exit
  CHECK(commands("A=1\n[ -f x ] || exit 1\nrun $A") == Commands{"run|1"});
  CHECK(commands("A=\nif [ -f x ]; then A=16; fi\nrun ${A:-1}").back() == "run|?$A");
}

TEST_CASE("words that only one branch adds are left out, and told", "[import]") {
  CHECK(commands("A=\"--a 1\"\nif [ -f x ]; then A=\"$A --load x\"; fi\nrun $A").back() == "run|--a|1");
  CHECK(told("L=(--a)\nif [ -f x ]; then\n  L+=(--load x)\nfi\nrun ${L[@]}") ==
        Commands{"the condition depends on the machine: what depends on it, up to line 4, is ignored"});
  CHECK(told("if [ -n \"$KEY\" ]; then ARGS+=(--x); fi\n") ==
        Commands{"$KEY has no value here: what depends on it, up to line 1, is ignored"});
}

TEST_CASE("commands of all branches that may run are there", "[import]") {
  CHECK(commands("if [ -f x ]; then run a; else run b; fi") == Commands{"run|a", "run|b"});
}

TEST_CASE("a case takes the clause of its word, and one of a word that has no value may be any", "[import]") {
  const std::string sizes =
      "case $M in\n  7B) L=32 ;;\n  13*|14?) L=40 ;;\n  [a-c]x) L=1 ;;\n  *) exit 1 ;;\nesac\nrun $L\n";
  CHECK(commands("M=7B\n" + sizes) == Commands{"run|32"});
  CHECK(commands("M=13B\n" + sizes) == Commands{"run|40"});
  CHECK(commands("M=14B\n" + sizes) == Commands{"run|40"});
  CHECK(commands("M=bx\n" + sizes) == Commands{"run|1"});
  CHECK(commands(sizes) == Commands{"run|?$L"});
  CHECK(commands(sizes, {{"M", "7B"}}) == Commands{"run|32"});
}

TEST_CASE("a case in a case, and loops that end in branches, are followed to their ends", "[import]") {
  CHECK(commands("case a in\n  a) case b in b) A=1 ;; esac ;;\n  *) A=2 ;;\nesac\ncase c in a) A=3 ;; esac\nrun $A") ==
        Commands{"run|1"});
  CHECK(commands("for i in 1 2; do if [ $i = 1 ]; then break; fi; while [ -f x ]; do sleep 1; done; run $i; done\n"
                 "run end") == Commands{"run|end"});
}

TEST_CASE("loops over what is known are run, turn by turn", "[import]") {
  CHECK(commands("for i in 1 2; do\n  run $i\ndone\nrun $i") == Commands{"run|1", "run|2", "run|2"});
  CHECK(commands("for i in a b c; do [ $i = b ] && continue; [ $i = c ] && break; run $i; done") == Commands{"run|a"});
  CHECK(commands("i=0\nwhile [ $i -lt 3 ]; do run $i; i=$((i+1)); done") == Commands{"run|0", "run|1", "run|2"});
  CHECK(commands("i=0\nuntil (( i == 2 )); do run $i; ((i++)); done") == Commands{"run|0", "run|1"});
  CHECK(commands("while true; do run; sleep 1; done\nrun after").size() == 3);  // one turn like any other
  CHECK(commands("N=4\nfor i in $(seq 3); do N=$i; done\nrun $N").back() == "run|?$N");
  CHECK(commands("N=4\nwhile read x; do N=$x; done\nrun $N").back() == "run|?$N");
  CHECK(commands("N=4\nfor ((i=0; i<3; i++)); do N=$i; done\nrun $N").back() == "run|?$N");
}

TEST_CASE("functions run where they are called, with their arguments", "[import]") {
  CHECK(commands("go() {\n  run --a $1 $#\n}\nfunction g {\n  go $2\n}\ngo 1\ng 2 3\nrun ${1:-none}") ==
        Commands{"run|--a|1|1", "run|--a|3|1", "run|none"});
  CHECK(commands("f() { [ $1 = x ] && return; N=$1; }\nf 4\nf x\nrun $N") == Commands{"run|4"});
  CHECK(commands("f() { run; }\n") == Commands{});
  CHECK_FALSE(read_script("f() { f; }\nf\n").problems.empty());
}

TEST_CASE("arguments of the script are those that the user gives", "[import]") {
  CHECK(commands("run $1 $2 ${3:-c}", {{"1", "a"}, {"2", "b"}}) == Commands{"run|a|b|c"});
  CHECK(commands("while [ $# -gt 0 ]; do case $1 in -n) N=$2; shift 2 ;; *) shift ;; esac; done\nrun ${N:-1}") ==
        Commands{"run|1"});
  CHECK(commands("while [ $# -gt 0 ]; do case $1 in -n) N=$2; shift; shift ;; *) shift ;; esac; done\nrun $N",
                 {{"1", "-n"}, {"2", "8"}}) == Commands{"run|8"});
}

TEST_CASE("a value that the user gives and the script does not use is told", "[import]") {
  CHECK(told("N=1\nrun $N\n", {{"N", "2"}}).empty());
  CHECK(told("run\n", {{"M", "2"}}) == Commands{"--var M=VALUE has no effect: run.sh does not use M"});
}

TEST_CASE("texts that other shells read are scripts, with quotes of their own", "[import]") {
  CHECK(commands("C=\"run --f '([0]*1+[1]*3)' --n 4\"\neval $C") == Commands{"run|--f|([0]*1+[1]*3)|--n|4"});
  CHECK(commands("eval \"A=4\"\nrun $A") == Commands{"run|4"});
  CHECK(commands("N=2\nsrun -N 4 bash -c \"run --n $N && echo done\"") ==
        Commands{"srun|-N|4|run|--n|2", "srun|-N|4|echo|done"});
  CHECK(commands("N=2\nsbatch <<EOF\n#SBATCH --nodes=4\nM=3\nrun $N \\$M\nEOF\n").back() == "run|2|3");
  CHECK(commands("cat > job.sh <<'EOF'\nM=3\nrun $M\nEOF\nsbatch job.sh\n").back() == "run|3");
  CHECK(commands("D=$(date)\nC=\"run --save /x/$D --n 4\"\neval $C") == Commands{"run|--save|/x/?$(date)|--n|4"});
}

TEST_CASE("words that quotes make assignments are, behind export", "[import]") {
  CHECK(commands("TP=1\nexport \"TP=4\"\nrun $TP") == Commands{"run|4"});
  CHECK(commands("export 'A=1 2' B=\"3\"\nrun \"$A\" $B") == Commands{"run|1 2|3"});
  CHECK(told("export $(cat .env)\nrun\n") ==
        Commands{"what export sets by $(cat .env) is not known: --var NAME=VALUE gives it"});
}

TEST_CASE("lines of Slurm are directives, and set the variables that Slurm sets", "[import]") {
  const std::string script = "#!/bin/bash\n#SBATCH --nodes=16 -n 128\n#SBATCH --gres gpu:8\nrun $SLURM_NNODES\n";
  CHECK(commands(script) == Commands{"run|16"});
  const auto directives = read_script(script).script.directives;
  CHECK(directives.at("ntasks").text == "128");
  CHECK(directives.at("gres").text == "gpu:8");
  CHECK(commands(script, {{"SLURM_NNODES", "2"}}) == Commands{"run|2"});
}

TEST_CASE("arithmetic compares, chooses and assigns", "[import]") {
  for (const auto& [command, value] :
       std::vector<std::pair<std::string, std::string>>{{"((G*=2))", "16"},
                                                        {"((G = 16))", "16"},
                                                        {"((++G))", "9"},
                                                        {"let G=16", "16"},
                                                        {"let G*=2", "16"},
                                                        {"((G > 4)) && G=5", "5"},
                                                        {"((G > 8 || G == 3)) || G=6", "6"},
                                                        {"G=$((G > 4 ? G ** 2 : 1))", "64"}}) {
    CAPTURE(command);
    CHECK(commands("G=8\n" + command + "\nrun $G\n").back() == "run|" + value);
  }
  CHECK(commands("G=8\n((G = H))\nrun $G\n").back() == "run|?$G");
}

TEST_CASE("what a command of the shell reads is not known afterwards, and that is told", "[import]") {
  for (const std::string command : {"read G <<< 16", "printf -v G %d 16", "mapfile G < x"}) {
    CAPTURE(command);
    CHECK(commands("G=8\n" + command + "\nrun $G\n").back() == "run|?$G");
    const auto notes = told("G=8\n" + command + "\nrun $G\n");
    REQUIRE(notes.size() == 1);
    CHECK_THAT(notes[0], Catch::EndsWith("is not followed: --var NAME=VALUE gives what it sets"));
  }
  CHECK(commands("G=8\nunset G\nrun ${G:-16}").back() == "run|16");
}

TEST_CASE("what a script may compute is limited", "[import]") {
  std::string sums = "a0=1\n";
  for (int i = 1; i <= 14; ++i) sums += fmt::format("a{}=a{}+a{}\n", i, i - 1, i - 1);
  for (int i = 0; i < 1000; ++i) sums += "X=$((a14))\n";
  const auto problems = read_script(sums).problems.sorted();
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0].message, Catch::StartsWith("the arithmetic of the script has more than"));
  CHECK_FALSE(read_script("i=0\nwhile true; do i=$((i+1)); done\n").problems.empty());
  std::string perhaps;  // each line keeps all that the list had before
  for (int i = 0; i < 20'000; ++i) perhaps += "[ -f x ] && L+=(--a)\nL+=(--b)\n";
  CHECK_FALSE(read_script(perhaps).problems.empty());
}

TEST_CASE("what is set for one command, or in a subshell, ends with it", "[import]") {
  CHECK(commands("G=8\nG=16 H=1 run $G\nrun $G ${H:-none}") == Commands{"run|8", "run|8|none"});
  CHECK(commands("G=8\n(G=16; run $G)\nrun $G") == Commands{"run|16", "run|8"});
  CHECK(commands("A=1 B=$A$A\nrun $B") == Commands{"run|11"});
  CHECK(commands("A=1\nB=2\n(unset A; B+=3; C=4)\nrun $A $B ${C:-none}").back() == "run|1|2|none");
  std::string many;  // what a subshell leaves alone costs nothing
  for (int i = 0; i < 1000; ++i) many += fmt::format("V{}={}\n", i, std::string(100, 'x'));
  for (int i = 0; i < 10'000; ++i) many += "(true)\n";
  CHECK(read_script(many).problems.empty());
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
  CHECK(result.problems.sorted().front().message == "the variables and loops of the script come to more than 4 MB");
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

TEST_CASE("expr computes, and read takes a whole here-document", "[import]") {
  CHECK(commands("N=8\nrun $(expr 64 / $N) $(expr 2 \\* 3)") == Commands{"run|8|6"});
  CHECK(commands("run $(expr index abc b)") == Commands{"run|?$(expr index abc b)"});
  CHECK(commands("X=3\nread -r -d '' words <<EOF\n--a $X\n--b\nEOF\nrun $words\n") == Commands{"run|--a|3|--b"});
}

TEST_CASE("variables in front of a command are its environment", "[import]") {
  Diagnostics problems;
  const ShellScript script = read_shell_script("run.sh", "A=2 B=$A run x\nrun y\n", {}, problems);
  REQUIRE(script.commands.size() == 2);
  CHECK(script.commands[0].environment.at("A").text == "2");
  CHECK(script.commands[1].environment.empty());
  CHECK(script.variables.count("A") == 0);
}

}  // namespace
}  // namespace hdpsim
