#include "sim/trace/length_source.h"

#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

class DrawnLengths : public LengthSource {
 public:
  DrawnLengths(LengthDistributionPtr distribution, std::uint64_t seed, std::int64_t count)
      : distribution_(std::move(distribution)), random_(seed, "generate"), left_(count) {}

  [[nodiscard]] std::optional<Length> next() override {
    if (left_ == 0) return std::nullopt;
    --left_;
    return Length{distribution_->draw(random_), {}};
  }

 private:
  LengthDistributionPtr distribution_;
  RandomStream random_;
  std::int64_t left_;
};

}  // namespace

std::unique_ptr<LengthSource> make_drawn_lengths(LengthDistributionPtr distribution, std::uint64_t seed,
                                                 std::int64_t count) {
  HDPSIM_CHECK(distribution != nullptr && count >= 0, "count = {}", count);
  return std::make_unique<DrawnLengths>(std::move(distribution), seed, count);
}

}  // namespace hdpsim
