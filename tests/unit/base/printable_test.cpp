#include "sim/base/printable.h"

#include <string>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("what a terminal would obey becomes a space, and what is no UTF-8 a question mark", "[printable]") {
  CHECK(printable("a\x1b[2J\a\r\n\t\x7f!") == "a [2J     !");
  CHECK(printable("a\u0080\u009b\u009fz") == "a   z");             // C1: CSI is one of them
  CHECK(printable("a\u202eb\u2066c\u2069\u2028d") == "a b c  d");  // directions, and the separator of lines
  CHECK(printable("a\x9b"
                  "b\xff") == "a?b?");  // C1 as a single byte
  CHECK(printable(std::string_view("a\0b", 3)) == "a b");
}

TEST_CASE("every other text is shown as it is", "[printable]") {
  const std::string text = "GB/s µs – 漢字 😀 e\u0301 \u00a0";
  CHECK(printable(text) == text);
  CHECK(printable_lines("one\ntwo\x1b\n") == "one\ntwo \n");
}

TEST_CASE("only the shortest form of a character is UTF-8, and no half of a pair", "[printable]") {
  CHECK(printable("\xc0\x9b") == "??");            // ESC in two bytes
  CHECK(printable("\xe0\x80\x9b") == "???");       // in three
  CHECK(printable("\xf0\x80\x80\x9b") == "????");  // in four
  CHECK(printable("\xed\xa0\x80") == "???");       // half of a surrogate pair
  CHECK(printable("\xf4\x90\x80\x80") == "????");  // beyond the last character
  CHECK(printable("\xe2\x80") == "??");            // cut off
}

}  // namespace
}  // namespace hdpsim
