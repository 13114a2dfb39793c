#include "tests/unit/cost/cost_support.h"

namespace hdpsim {
namespace {

TEST_CASE("a family that takes longer takes longer alone, and its evidence stays", "[cost]") {
  const std::string name = GENERATE(as<std::string>{}, "bytescale-implied", "epyc-cpu", "cpu-datasheet");
  DeviceProfile profile = testing::shipped_profile(name);
  const auto nominal = make_cost_model(profile);
  profile.factors[CostFamily::gemm] = 1.5;
  profile.factors[CostFamily::attention_backward] = 3;
  const auto slower = make_cost_model(profile);
  const auto ratio = [](const Estimate& after, const Estimate& before) {
    CHECK(after.evidence == before.evidence);
    return after.time.seconds() / before.time.seconds();
  };
  const Attention forward = testing::launch_of({2048, 2048, Mask::causal, 1});
  const Attention backward = testing::launch_of({2048, 2048, Mask::causal, 1}, Direction::backward);
  CHECK(ratio(slower->gemm({4096, 4096, 1024}), nominal->gemm({4096, 4096, 1024})) == Approx(1.5));
  CHECK(ratio(slower->attention(forward), nominal->attention(forward)) == Approx(1));
  CHECK(ratio(slower->attention(backward), nominal->attention(backward)) == Approx(3));
}

}  // namespace
}  // namespace hdpsim
