#include "sim/explore/session_lines.h"

#include "sim/study/override.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("the place of a value or of its key leads back to its path", "[value_path]") {
  Diagnostics none;
  const Value study =
      parse_document("s.yaml", "data:\n  context: 1Mi\nplans: [static, {hdp-naive: {offload: auto}}]\n", none);
  CHECK(path_of_place(study, {"s.yaml", 2, 12}) == "data.context");
  CHECK(path_of_place(study, {"s.yaml", 2, 3}) == "data.context");
  CHECK(path_of_place(study, {"s.yaml", 1, 1}) == "data");
  CHECK(path_of_place(study, {"s.yaml", 3, 9}) == "plans.0");
  CHECK(path_of_place(study, {"s.yaml", 3, 39}) == "plans.1.hdp-naive.offload");
  CHECK(path_of_place(study, {"s.yaml", 9, 9}).empty());
  CHECK(path_of_place(study, {"other.yaml", 2, 12}).empty());
}

TEST_CASE("what was set has its path, with parents that were made for it", "[value_path]") {
  Diagnostics none;
  Value study = parse_document("s.yaml", "mesh: {tp: 2}\n", none);
  apply_overrides(study, {"mesh.pp=4", "cluster.node.nics.bandwidth=50 GB/s"}, none);
  CHECK(path_of_place(study, study.find("mesh")->find("pp")->position) == "mesh.pp");
  const Value& node = *study.find("cluster")->find("node");
  CHECK(path_of_place(study, node.find("nics")->find("bandwidth")->position) == "cluster.node.nics.bandwidth");
}

}  // namespace
}  // namespace hdpsim
