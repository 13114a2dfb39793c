#include <fmt/format.h>

#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/trace/batch_source.h"
#include "sim/trace/impl/overlong.h"

namespace hdpsim {
namespace {

// This many dropped documents in a row mean that practically none fits.
constexpr int most_dropped_in_a_row = 1'000'000;

class GeneratedBatches : public BatchSource {
 public:
  GeneratedBatches(LengthDistributionPtr distribution, const BatchOptions& options)
      : distribution_(std::move(distribution)), options_(options) {}

  [[nodiscard]] Batch step(std::int64_t k) const override {
    HDPSIM_CHECK(k >= 0, "step {}", k);
    RandomStream random(options_.seed, "lengths", static_cast<std::uint64_t>(k));
    Batch batch;
    std::int64_t left = options_.tokens_per_step;
    for (std::int64_t document = 0; left > 0; ++document) {
      left -= append_pieces(batch, document, 0, draw(random), left, options_.context);
    }
    return batch;
  }

 private:
  std::int64_t draw(RandomStream& random) const {
    for (int dropped = 0; dropped < most_dropped_in_a_row; ++dropped) {
      const std::int64_t kept = kept_tokens(distribution_->draw(random), options_);
      if (kept > 0) return kept;
    }
    throw InputError(
        fmt::format("none of {} documents fits the context of {} tokens", most_dropped_in_a_row, options_.context),
        "split or truncate long documents, or take a longer context");
  }

  LengthDistributionPtr distribution_;
  BatchOptions options_;
};

}  // namespace

BatchSourcePtr make_batches(LengthDistributionPtr distribution, const BatchOptions& options) {
  HDPSIM_CHECK(distribution != nullptr, "no distribution");
  check(options);
  return std::make_unique<GeneratedBatches>(std::move(distribution), options);
}

}  // namespace hdpsim
