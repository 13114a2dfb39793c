#include "tests/unit/cost/cost_support.h"

namespace hdpsim {
namespace {

using testing::launch_of;
using testing::round_device;

TEST_CASE("unfused attention is its products and the traffic of softmax and dropout between them", "[cost]") {
  DeviceProfile profile = round_device();
  const auto fused = make_cost_model(profile);
  profile.unfused_attention = true;
  const auto unfused = make_cost_model(profile);
  // 3 documents of 2,048 tokens, 16 heads of 128: 16 x 3 squares of scores.
  const AttentionBlock block{2048, 2048, Mask::causal, 3};
  const std::int64_t batch = 16 * 3;
  const std::int64_t scores = batch * 2048 * 2048;
  const Gemm products{batch * 2048, 2048, 128};
  const Gemm output{128, batch * 2048, 2048};
  const auto traffic = [&](std::int64_t bytes, std::int64_t kernels) {
    return fused->memory_bound({Bytes(bytes * scores), kernels}).time;
  };
  const Duration forward = fused->gemm(products).time + fused->gemm(output).time;
  const Duration backward = fused->gemm(products).time + 3 * fused->gemm(output).time;
  Attention op = launch_of(block);
  // Softmax reads and writes 2 bytes a score, dropout reads 2 and writes 2 and a mask of 1.
  CHECK(unfused->attention(op).time == forward + traffic(4, 1));
  CHECK(unfused->kernels(op) == 3);
  op.dropout = true;
  CHECK(unfused->attention(op).time == forward + traffic(9, 2));
  CHECK(unfused->kernels(op) == 4);
  // Twice as many products; dropout reads 3 bytes and writes 2, softmax reads 4 and writes 2.
  op.direction = Direction::backward;
  CHECK(unfused->attention(op).time == backward + traffic(11, 2));
  op.dropout = false;
  CHECK(unfused->attention(op).time == backward + traffic(6, 1));
}

TEST_CASE("unfused attention saves nothing above the diagonal and leaves everything else as it was", "[cost]") {
  DeviceProfile profile = round_device();
  const auto fused = make_cost_model(profile);
  profile.unfused_attention = true;
  const auto unfused = make_cost_model(profile);
  const auto causal = unfused->attention(launch_of({4096, 4096, Mask::causal, 1}));
  CHECK(causal.time == unfused->attention(launch_of({4096, 4096, Mask::full, 1})).time);
  CHECK(causal.time > fused->attention(launch_of({4096, 4096, Mask::causal, 1})).time);
  CHECK(unfused->gemm({512, 512, 512}).time == fused->gemm({512, 512, 512}).time);
  CHECK(unfused->memory_bound({Bytes(1'000'000), 1}).time == fused->memory_bound({Bytes(1'000'000), 1}).time);
}

}  // namespace
}  // namespace hdpsim
