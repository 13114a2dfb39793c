#include "sim/base/diagnostic.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("of countless problems the first hundred by place are told, the others counted", "[diagnostic]") {
  const auto lines_for = [](int count) {
    Diagnostics problems;
    for (int line = count; line > 0; --line) problems.error({"a", line, 1}, "wrong");
    const std::string text = problems.text();
    CHECK(text.starts_with("a:1:1: error: wrong\n"));
    return std::pair(std::count(text.begin(), text.end(), '\n'), text.substr(text.rfind('\n', text.size() - 2) + 1));
  };
  CHECK(lines_for(100) == std::pair(std::ptrdiff_t{100}, std::string("a:100:1: error: wrong\n")));
  CHECK(lines_for(150) == std::pair(std::ptrdiff_t{101}, std::string("error: and 50 more\n")));
  CHECK(lines_for(200'000) == std::pair(std::ptrdiff_t{101}, std::string("error: and 199900 more\n")));
}

TEST_CASE("a problem that would not be kept needs no words, and is counted", "[diagnostic]") {
  constexpr std::size_t found = 5000;
  Diagnostics problems;
  std::size_t worded = 0;
  for (std::size_t i = 0; i < found; ++i) {
    const Position place{"a", static_cast<int>(i) + 10, 1};
    if (!problems.keeps(place)) continue;
    ++worded;
    problems.error(place, "wrong");
  }
  CHECK(worded == Diagnostics::most_kept);
  CHECK(problems.count() == found);
  CHECK(problems.sorted().size() == Diagnostics::most_kept);
  // One at an earlier place takes the place of the last.
  CHECK(problems.keeps({"a", 1, 1}));
  problems.error({"a", 1, 1}, "the first");
  CHECK(problems.sorted().front().message == "the first");
  CHECK(problems.sorted().size() == Diagnostics::most_kept);
  Diagnostics all;
  all.append(problems);
  CHECK(all.count() == found + 1);
  CHECK_THAT(all.text(), Catch::EndsWith("error: and 4901 more\n"));
}

TEST_CASE("names of files and long messages keep to one line of the screen each", "[diagnostic]") {
  Diagnostics problems;
  problems.error({"two\nlines\x1b.yaml", 0, 0}, "wrong");
  CHECK(problems.text() == "two lines .yaml: error: wrong\n");
  Diagnostics enormous;
  enormous.error({}, std::string(1'000'000, 'x'));
  CHECK(enormous.text() == "error: " + std::string(2000, 'x') + " ...\n");
}

TEST_CASE("the input error carries all problems; without any nothing is thrown", "[diagnostic]") {
  Diagnostics problems;
  CHECK_NOTHROW(problems.throw_if_any());
  problems.error({}, "one");
  problems.error({}, "two");
  CHECK_THROWS_WITH(problems.throw_if_any(), "error: one\nerror: two\n");
}

TEST_CASE("a word that is nearly right is suggested, otherwise what is known", "[diagnostic]") {
  CHECK(suggestion("contxt", {"context", "lengths"}) == "did you mean 'context'?");
  CHECK(suggestion("zebra", {"context", "lengths"}) == "known: context, lengths");
  CHECK(suggestion("zebra", {}).empty());
  // The beginning of one name alone is enough, that of several is not.
  CHECK(suggestion("h100", {"h100-rail", "b200-rail"}) == "did you mean 'h100-rail'?");
  CHECK(suggestion("llama", {"llama-7b-chat", "llama-13b-chat"}) == "known: llama-7b-chat, llama-13b-chat");
}

TEST_CASE("a problem that is reported at one place several times is told once", "[diagnostic]") {
  Diagnostics found;
  for (int i = 0; i < 2; ++i) {
    found.error({"a.yaml", 1, 2}, "wrong");
    found.error({"a.yaml", 1, 2}, "wrong in another way");
    found.error({"a.yaml", 2, 2}, "wrong");
  }
  const std::vector<Diagnostic> told = found.sorted();
  REQUIRE(told.size() == 3);
  CHECK(told[1].message == "wrong in another way");
  CHECK(told[2].position.line == 2);
}

TEST_CASE("problems are sorted by file, line and column; those at one place keep their order", "[diagnostic]") {
  Diagnostics problems;
  problems.error({"b.yaml", 1, 1}, "sixth");
  problems.error({"a.yaml", 10, 1}, "fifth");
  problems.error({"a.yaml", 2, 9}, "third");
  problems.error({"a.yaml", 2, 9}, "fourth");
  problems.error({"a.yaml", 2, 1}, "second");
  problems.error({"a.yaml", 0, 0}, "first");
  CHECK(problems.text() ==
        "a.yaml: error: first\n"
        "a.yaml:2:1: error: second\n"
        "a.yaml:2:9: error: third\n"
        "a.yaml:2:9: error: fourth\n"
        "a.yaml:10:1: error: fifth\n"
        "b.yaml:1:1: error: sixth\n");
}

TEST_CASE("problems of several files show each its own line, also after they were put together", "[diagnostic]") {
  Diagnostics problems;
  problems.add_source("study.yaml", "model: x\n");
  problems.error({"study.yaml", 1, 8}, "no such model");
  Diagnostics others;
  others.add_source("cluster.yaml", "nodes: 0\n");
  others.error({"cluster.yaml", 1, 8}, "no nodes", "give at least 1");
  problems.append(others);
  CHECK(problems.text() ==
        "cluster.yaml:1:8: error: no nodes\n"
        "    1 | nodes: 0\n"
        "               ^ give at least 1\n"
        "study.yaml:1:8: error: no such model\n"
        "    1 | model: x\n"
        "               ^\n");
}

TEST_CASE("without the source of a file the help stands alone below the message", "[diagnostic]") {
  Diagnostics problems;
  problems.error({"gone.yaml", 3, 4}, "a problem", "a way out");
  problems.error({"gone.yaml", 5, 6}, "another");
  CHECK(problems.text() ==
        "gone.yaml:3:4: error: a problem\n"
        "        a way out\n"
        "gone.yaml:5:6: error: another\n");
}

TEST_CASE("a tab takes one column and the end of a Windows line none", "[diagnostic]") {
  Diagnostics problems;
  problems.add_source("t.yaml", "a:\t\tb\r\nc\n");
  problems.error({"t.yaml", 1, 5}, "here");
  CHECK(problems.text() ==
        "t.yaml:1:5: error: here\n"
        "    1 | a:  b\n"
        "            ^\n");
}

TEST_CASE("the caret counts characters where the position counts bytes", "[diagnostic]") {
  Diagnostics problems;
  problems.add_source("u.yaml", "µ: \"日本\" x\n");
  // µ takes two bytes, a kanji three: the x is character 9 and byte 9 + 1 + 2 * 2.
  problems.error({"u.yaml", 1, 14}, "here");
  CHECK(problems.text() ==
        "u.yaml:1:14: error: here\n"
        "    1 | µ: \"日本\" x\n"
        "                ^\n");
}

TEST_CASE("of a very long line the part around the caret is shown", "[diagnostic]") {
  Diagnostics problems;
  std::string line(1'000'000, 'a');
  line[499'999] = 'X';
  problems.add_source("long.json", line);
  problems.error({"long.json", 1, 500'000}, "here", "an X");
  // 110 characters, 55 of them before the caret, behind the 8 of "    1 | ".
  CHECK(problems.text() == "long.json:1:500000: error: here\n    1 | " + std::string(55, 'a') + "X" +
                               std::string(54, 'a') + "\n" + std::string(8 + 55, ' ') + "^ an X\n");
}

TEST_CASE("a long line is cut behind a caret near its start", "[diagnostic]") {
  Diagnostics problems;
  problems.add_source("long.json", std::string(111, 'a'));
  problems.error({"long.json", 1, 3}, "here");
  CHECK(problems.text() == "long.json:1:3: error: here\n    1 | " + std::string(110, 'a') + "\n          ^\n");
}

TEST_CASE("a long line is cut between characters, not within one", "[diagnostic]") {
  const auto repeated = [](int count) {
    std::string text;
    for (; count > 0; --count) text += "µ";  // two bytes
    return text;
  };
  Diagnostics problems;
  problems.add_source("long.json", repeated(100));
  problems.error({"long.json", 1, 101}, "here");
  // The caret's character starts at byte 100. 55 bytes before it is byte 45, within a character: the cut moves to 44.
  // From there 110 bytes are 55 characters, and (100 - 44) / 2 = 28 of them stand before the caret.
  CHECK(problems.text() ==
        "long.json:1:101: error: here\n    1 | " + repeated(55) + "\n" + std::string(8 + 28, ' ') + "^\n");
}

TEST_CASE("a place behind the end of a line or of the file still has its caret", "[diagnostic]") {
  Diagnostics problems;
  problems.add_source("s.yaml", "ab\n");
  problems.error({"s.yaml", 1, 5}, "behind the line");
  problems.error({"s.yaml", 7, 2}, "behind the file");
  CHECK(problems.text() ==
        "s.yaml:1:5: error: behind the line\n"
        "    1 | ab\n"
        "            ^\n"
        "s.yaml:7:2: error: behind the file\n"
        "    7 | \n"
        "         ^\n");
}

TEST_CASE("the caret stands below its place where line numbers are wider than five digits", "[diagnostic]") {
  Diagnostics problems;
  std::string text(123'455, '\n');
  problems.add_source("s.yaml", text.append("abc\n"));
  problems.error({"s.yaml", 123'456, 3}, "here");
  CHECK(problems.text() ==
        "s.yaml:123456:3: error: here\n"
        "123456 | abc\n"
        "           ^\n");
}

TEST_CASE("control characters of the user reach neither the layout nor the terminal", "[diagnostic]") {
  Diagnostics problems;
  problems.add_source("s.yaml", "\x1b[31mred\n");
  problems.error({"s.yaml", 1, 1}, "\"a\nb\x1b[0m\" is not a number", "a\x07 bell");
  CHECK(problems.text() ==
        "s.yaml:1:1: error: \"a b [0m\" is not a number\n"
        "    1 |  [31mred\n"
        "        ^ a  bell\n");
}

TEST_CASE("a source that is given again replaces the one before", "[diagnostic]") {
  Diagnostics problems;
  problems.add_source("s.yaml", "old\n");
  problems.add_source("s.yaml", "new\n");
  problems.error({"s.yaml", 1, 1}, "here");
  CHECK(problems.text() == "s.yaml:1:1: error: here\n    1 | new\n        ^\n");
}

TEST_CASE("one problem can be thrown by itself, with or without a place", "[diagnostic]") {
  CHECK(std::string(InputError("no plan", "give one").what()) == "error: no plan\n        give one\n");
  const InputError placed(Position{"s.yaml", 2, 3}, "no plan");
  CHECK(std::string(placed.what()) == "s.yaml:2:3: error: no plan\n");
  CHECK(placed.diagnostics().sorted().size() == 1);
}

TEST_CASE("the closest word is at most a third of its length away, the first of equals", "[diagnostic]") {
  CHECK(closest("bandwith", {"latency", "bandwidth"}) == "bandwidth");  // one letter of nine
  CHECK(closest("abcdef", {"abcxyf"}) == "abcxyf");                     // two of six
  CHECK(closest("abcdef", {"abxyzf"}).empty());                         // three of six
  CHECK(closest("tp", {"cp", "pp"}) == "cp");
  CHECK(closest("steps", {"step", "steps"}) == "steps");
  CHECK(closest("", {"context"}).empty());
  CHECK(closest("context", {}).empty());
}

}  // namespace
}  // namespace hdpsim
