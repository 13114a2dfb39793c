#include "sim/profiler/sample_set.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace hdpsim {

void SampleSet::add(double sample) {
  sum_ += sample;
  if (count_++ % every_ != 0) return;
  if (kept_.size() == most) {
    for (std::size_t i = 0; 2 * i < most; ++i) kept_[i] = kept_[2 * i];
    kept_.resize(most / 2);
    every_ *= 2;
    if ((count_ - 1) % every_ != 0) return;
  }
  kept_.push_back(sample);
}

double SampleSet::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

double SampleSet::quantile(double share) const {
  HDPSIM_CHECK(!kept_.empty(), "a quantile of nothing");
  std::vector<double> sorted = kept_;
  std::sort(sorted.begin(), sorted.end());
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace hdpsim
