#include "sim/trace/length_source.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/random.h"
#include "sim/document/limits.h"

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

LengthTrace collect(LengthSource& source) {
  LengthTrace trace;
  HalvesTally halves;
  while (const auto length = source.next()) {
    if (std::ssize(trace.tokens) == most_loaded_lengths) {
      throw InputError(fmt::format("there are more than {} lengths", most_loaded_lengths),
                       "hdpsim trace convert --to quantiles makes a distribution of them");
    }
    trace.tokens.push_back(length->tokens);
    halves.add(length->tokens);
    if (length->step) trace.steps.push_back(*length->step);
  }
  trace.column = source.column();
  trace.halves = halves.halves();
  if (!trace.steps.empty() && trace.steps.size() != trace.tokens.size()) {
    throw InputError(fmt::format("{} of {} lengths have a step", trace.steps.size(), trace.tokens.size()));
  }
  return trace;
}

RowOrder make_random_order(std::size_t rows, std::uint64_t seed) {
  HDPSIM_CHECK(rows <= std::numeric_limits<std::uint32_t>::max(), "{} rows", rows);
  std::vector<std::uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0U);
  RandomStream random(seed, "order of documents");
  for (std::size_t left = rows; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(order));
}

}  // namespace hdpsim
