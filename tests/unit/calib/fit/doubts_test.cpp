#include "calib/fit/fit.h"

#include "tests/support/catch.h"
#include "tests/unit/calib/fit/fit_support.h"

namespace hdpsim::calib {
namespace {

using testing::Measured;

/// Ten sizes a family, each exactly as a law has it.
Samples lawful_samples() {
  Measured exactly(0);
  Samples samples;
  samples.circumstances = testing::round_circumstances();
  for (std::int64_t length = 1024; length <= 10 * 1024; length += 1024) {
    const Attention op{{{length, length, Mask::full, 1}}, 32, 8, 128, Direction::forward};
    samples.attention.push_back({op, exactly(1e-5 + 32e-12 * static_cast<double>(length * length))});
  }
  for (std::int64_t bytes = 1 << 16; bytes < 1 << 26; bytes *= 2) {
    const auto size = static_cast<double>(bytes);
    samples.memory_bound.push_back({"add", bytes, exactly(3e-6 + size / 3e12)});
    samples.messages.push_back({MessageKind::send_recv, LinkKind::nvlink, 2, bytes, exactly(8e-6 + size / 370e9)});
  }
  return samples;
}

Samples doubtful(const Samples& samples) {
  return slower_than_fitted(samples, fit_profile(samples), 0.03);
}

TEST_CASE("nothing is doubtful that follows a law", "[doubts]") {
  const Samples found = doubtful(lawful_samples());
  CHECK(found.attention.empty());
  CHECK(found.memory_bound.empty());
  CHECK(found.messages.empty());
}

TEST_CASE("what took longer than the like of it is doubtful, in every family", "[doubts]") {
  Samples samples = lawful_samples();
  samples.attention[4].timing.median_s *= 1.2;
  samples.memory_bound[5].timing.median_s *= 1.2;
  samples.messages[6].timing.median_s *= 1.2;
  const Samples found = doubtful(samples);
  REQUIRE(found.attention.size() == 1);
  CHECK(found.attention[0].op.blocks[0].queries == samples.attention[4].op.blocks[0].queries);
  REQUIRE(found.memory_bound.size() == 1);
  CHECK(found.memory_bound[0].bytes == samples.memory_bound[5].bytes);
  REQUIRE(found.messages.size() == 1);
  CHECK(found.messages[0].bytes == samples.messages[6].bytes);
}

TEST_CASE("what was faster is not doubtful: nothing makes a kernel faster", "[doubts]") {
  Samples samples = lawful_samples();
  samples.attention[4].timing.median_s *= 0.95;
  for (const AttentionTiming& sample : doubtful(samples).attention) {
    CHECK(sample.op.blocks[0].queries != samples.attention[4].op.blocks[0].queries);
  }
}

}  // namespace
}  // namespace hdpsim::calib
