#include "sim/base/diagnostic.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("problems are told by position, each with its line, a caret and the way out", "[diagnostic]") {
  Diagnostics problems;
  problems.add_source("study.yaml", "name: x\nlinks:\n  bandwidth: \"450\"\n");
  problems.error({"study.yaml", 3, 14}, "links.bandwidth: \"450\" has no unit", "did you mean 450 GB/s?");
  problems.error({"study.yaml", 1, 1}, "the name is taken");
  CHECK(problems.text() ==
        "study.yaml:1:1: error: the name is taken\n"
        "    1 | name: x\n"
        "        ^\n"
        "study.yaml:3:14: error: links.bandwidth: \"450\" has no unit\n"
        "    3 |   bandwidth: \"450\"\n"
        "                     ^ did you mean 450 GB/s?\n");
}

TEST_CASE("a problem without a place or a source is told without a caret", "[diagnostic]") {
  Diagnostics problems;
  problems.error({"absent.yaml", 0, 0}, "there is no such file", "look elsewhere");
  problems.error({}, "something else");
  CHECK(problems.text() ==
        "error: something else\n"
        "absent.yaml: error: there is no such file\n"
        "        look elsewhere\n");
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
}

}  // namespace
}  // namespace hdpsim
