#include "sim/cost/impl/log_curve.h"

#include <algorithm>
#include <cmath>

namespace hdpsim {
namespace {
constexpr double same_size = 1e-9;  // relative
}  // namespace

void LogCurve::add(double size, double value) {
  const auto after =
      std::find_if(knots_.begin(), knots_.end(), [&](const Knot& knot) { return knot.size >= size * (1 - same_size); });
  if (after != knots_.end() && after->size <= size * (1 + same_size)) {
    after->value = (after->value * after->samples + value) / (after->samples + 1);
    ++after->samples;
  } else {
    knots_.insert(after, {size, std::log2(size), value, 1});
  }
}

double LogCurve::at(double size) const {
  if (size <= knots_.front().size) return knots_.front().value;
  if (size >= knots_.back().size) return knots_.back().value;
  const auto above =
      std::upper_bound(knots_.begin(), knots_.end(), size, [](double s, const Knot& knot) { return s < knot.size; });
  const Knot& high = *above;
  const Knot& low = *(above - 1);
  const double share = (std::log2(size) - low.log_size) / (high.log_size - low.log_size);
  return low.value + share * (high.value - low.value);
}

bool LogCurve::covers(double size) const {
  return !knots_.empty() && size >= knots_.front().size * (1 - same_size) &&
         size <= knots_.back().size * (1 + same_size);
}

}  // namespace hdpsim
