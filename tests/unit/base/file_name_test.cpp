#include "sim/base/printable.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("a text becomes a part of a file's name that no shell and no folder takes for something else",
          "[file_name]") {
  CHECK(as_file_name("hdp-balance {offload: 0.5}") == "hdp-balance_offload_0.5");
  CHECK(as_file_name("../../etc/passwd") == "etc_passwd");
  CHECK(as_file_name("tp 1  dp 8") == "tp_1_dp_8");
  CHECK(as_file_name("[/]").empty());
}

TEST_CASE("texts whose names would be equal are told apart, and a name is no longer than a folder takes",
          "[file_name]") {
  CHECK(as_file_names({"a b", "a-b", "a/b", "c", "a  b"}) ==
        std::vector<std::string>{"a_b", "a-b", "a_b~2", "c", "a_b~3"});
  CHECK(as_file_name("a_b~2") == "a_b_2");  // so that no text has the name of another one
  CHECK(as_file_name(std::string(1000, 'x')).size() == 160);
}

}  // namespace
}  // namespace hdpsim
