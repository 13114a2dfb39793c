#include "sim/study/outsize.h"

#include "sim/study/study.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using test::StudyFile;

Outsize outsize_with(const std::vector<std::string>& overrides) {
  return StudyFile(test::good_study).load(overrides).points.at(0).outsize;
}

TEST_CASE("of a study like others no quantity is far from what is usual", "[outsize]") {
  CHECK(outsize_with({}).times < 10);
}

TEST_CASE("the quantity that makes a step long is the one that is named", "[outsize]") {
  // 128 times the usual 2Mi.
  const Outsize context = outsize_with({"data.context=256Mi", "data.tokens_per_step=256Mi", "mesh.capacity=16Mi"});
  CHECK(context.key == "data.context");
  CHECK(context.times == Approx(128));
  CHECK(outsize_with({"cluster.speed={3: 0.01}"}).key == "cluster.speed");
  CHECK(outsize_with({"cluster.speed={3: 0.01}"}).times == Approx(100));
  CHECK(outsize_with({"cluster.node.nics.bandwidth=1 MB/s"}).key == "cluster.node.nics.bandwidth");
  CHECK(outsize_with({"cluster.tiers.tor.latency=1 s"}).key == "cluster.tiers");
  CHECK(outsize_with({"overheads.per_micro_batch=3600 s"}).key == "overheads.per_micro_batch");
  CHECK(outsize_with({"faults=[{device: 3, slowdown: 1000}]"}).key == "faults");
}

TEST_CASE("a problem of a quantity stands at its place and says how far from usual it is", "[outsize]") {
  const Outsize outsize{.position = {"s.yaml", 7, 12}, .key = "data.context", .times = 96};
  const Diagnostic problem = outsize.problem("step 3", "too long");
  CHECK(problem.position.line == 7);
  CHECK(problem.message == "step 3: too long");
  CHECK(problem.help == "'data.context' is 96 times what is usual: is that what was meant?");
}

}  // namespace
}  // namespace hdpsim
