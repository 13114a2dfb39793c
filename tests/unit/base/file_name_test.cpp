#include "sim/base/file_name.h"

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

}  // namespace
}  // namespace hdpsim
