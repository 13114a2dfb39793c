#include "sim/decide/size_search.h"

#include <fmt/format.h>

#include <algorithm>

namespace hdpsim {
namespace {

class SizeSearch {
 public:
  SizeSearch(const SizeRange& sizes, double days, const std::function<std::optional<double>(std::int64_t)>& days_at)
      : offset_(sizes.start % sizes.unit),
        unit_(sizes.unit),
        first_(sizes.start / sizes.unit),
        last_((sizes.most - offset_) / sizes.unit),
        days_(days),
        days_at_(days_at) {}

  SizeAnswer answer() {
    if (is_enough(first_)) {
      const std::int64_t too_few = halved_down();
      return bisected(too_few, enough_);
    }
    if (std::string why = doubled_up(); !why.empty()) return {{}, std::move(why)};
    return bisected(too_few_, enough_);
  }

 private:
  [[nodiscard]] std::int64_t size(std::int64_t index) const { return offset_ + index * unit_; }

  // Remembers what it has found.
  bool is_enough(std::int64_t index) {
    found_ = days_at_(size(index));
    const bool enough = found_ && *found_ <= days_;
    (enough ? enough_ : too_few_) = index;
    return enough;
  }

  // The largest index that is known to be too few; below the first size: -1, or 0 where that is no size.
  std::int64_t halved_down() {
    const std::int64_t none = offset_ > 0 ? -1 : 0;
    while (enough_ > none + 1) {
      if (!is_enough(std::max(enough_ / 2, none + 1))) return too_few_;
    }
    return none;
  }

  // Why no size is enough; empty if one is.
  std::string doubled_up() {
    std::optional<double> best = found_;
    std::int64_t best_size = size(first_);
    int idle = 0;
    for (std::int64_t index = first_; index < last_;) {
      index = std::min(std::max<std::int64_t>(2 * index, 1), last_);
      if (is_enough(index)) return "";
      if (!found_) continue;
      idle = !best || *found_ < (1 - least_gain) * *best ? 0 : idle + 1;
      if (!best || *found_ < *best) {
        best = found_;
        best_size = size(index);
      }
      if (idle == 2) {
        return fmt::format(
            "{} GPUs take {} days, and two doublings gain less than {:.0f}% each: steps do not get "
            "shorter any more",
            best_size, days_text(*best), 100 * least_gain);
      }
    }
    if (!best) return fmt::format("it trains on no size that was tried, up to {} GPUs", size(last_));
    return fmt::format("up to {} GPUs the least are {} days, of {} GPUs", size(last_), days_text(*best), best_size);
  }

  SizeAnswer bisected(std::int64_t too_few, std::int64_t enough) {
    while (enough - too_few > 1) {
      const std::int64_t middle = too_few + (enough - too_few) / 2;
      (is_enough(middle) ? enough : too_few) = middle;
    }
    return {size(enough), {}};
  }

  std::int64_t offset_, unit_, first_, last_;
  double days_;
  const std::function<std::optional<double>(std::int64_t)>& days_at_;
  std::optional<double> found_{};
  std::int64_t enough_ = 0, too_few_ = 0;
};

}  // namespace

std::string days_text(double days) {
  return days < 999.5 ? fmt::format("{:.3g}", days) : fmt::format("{:.0f}", days);
}

SizeAnswer smallest_size(const SizeRange& sizes, double days,
                         const std::function<std::optional<double>(std::int64_t)>& days_at) {
  return SizeSearch(sizes, days, days_at).answer();
}

}  // namespace hdpsim
