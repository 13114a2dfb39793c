#include "sim/import/impl/megatron_model.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST_CASE("lists of layers are written as in Python", "[import]") {
  CHECK(layer_list("[0]*3+[1]*2", 100) == Numbers{0, 0, 0, 1, 1});
  CHECK(layer_list("([1]*2 + [0])*2", 100) == Numbers{1, 1, 0, 1, 1, 0});
  CHECK(layer_list("[1, 0,1]", 100) == Numbers{1, 0, 1});
  CHECK(layer_list("[]", 100) == Numbers{});
}

TEST_CASE("what is no such list, or too long, is none", "[import]") {
  for (const char* text : {"", "1", "[1", "[1]*", "[1]+", "([1]", "[1]*[1]", "[1]x", "[1]*-1"}) {
    CAPTURE(text);
    CHECK_FALSE(layer_list(text, 100).has_value());
  }
  CHECK(layer_list("[1]*100", 100).has_value());
  CHECK_FALSE(layer_list("[1]*101", 100).has_value());
  CHECK_FALSE(layer_list("(([1]*99)*99)*9999999999", 100).has_value());
  CHECK_FALSE(layer_list(std::string(10'000, '('), 100).has_value());
}

}  // namespace
}  // namespace hdpsim
