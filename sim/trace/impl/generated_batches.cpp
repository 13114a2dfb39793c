#include <fmt/format.h>

#include <string>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/trace/batch_source.h"
#include "sim/trace/impl/overlong.h"

namespace hdpsim {
namespace {

// So many dropped documents of a step, and so many for each that fits, mean that practically none fits.
constexpr std::int64_t most_dropped = 1'000'000;
constexpr std::int64_t most_dropped_for_each = 1'000;

class GeneratedBatches : public BatchSource {
 public:
  GeneratedBatches(LengthDistributionPtr distribution, const BatchOptions& options)
      : distribution_(std::move(distribution)), options_(options) {}

  [[nodiscard]] Batch step(std::int64_t k) const override {
    HDPSIM_CHECK(k >= 0, "step {}", k);
    RandomStream random(options_.seed, "lengths", static_cast<std::uint64_t>(k));
    Batch batch;
    std::int64_t left = options_.tokens_per_step;
    std::int64_t dropped = 0;
    for (std::int64_t document = 0; left > 0;) {
      const std::int64_t kept = kept_tokens(distribution_->draw(random), options_);
      if (kept > 0) {
        left -= append_pieces(batch, document++, 0, kept, left, options_.context);
      } else if (++dropped >= most_dropped + most_dropped_for_each * document) {
        refuse(document, dropped + document);
      }
    }
    return batch;
  }

  // By the middle of every 4096th of the documents.
  [[nodiscard]] double sequences_per_step() const override {
    constexpr int parts = 4096;
    double tokens = 0;
    double pieces = 0;
    for (int i = 0; i < parts; ++i) {
      const std::int64_t kept = kept_tokens(distribution_->quantile((i + 0.5) / parts), options_);
      tokens += static_cast<double>(kept);
      pieces += pieces_of(kept, options_.context);
    }
    return tokens > 0 ? pieces * static_cast<double>(options_.tokens_per_step) / tokens : 0;
  }

 private:
  [[noreturn]] void refuse(std::int64_t fit, std::int64_t drawn) const {
    const std::string some = fit == 0 ? "none" : fmt::format("only {}", fit);
    throw InputError(options_.context_position,
                     fmt::format("{} of {} documents fit{} the context of {} tokens", some, drawn, fit > 1 ? "" : "s",
                                 options_.context),
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
