#include "sim/analysis/kendall_tau.h"

#include <cmath>
#include <cstdint>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

int sign_of(double difference) {
  return (difference > 0) - (difference < 0);
}

}  // namespace

std::optional<double> kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  HDPSIM_CHECK(a.size() == b.size(), "rankings of {} and of {} things", a.size(), b.size());
  std::int64_t agreement = 0;
  std::int64_t ordered_by_a = 0;
  std::int64_t ordered_by_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = i + 1; j < a.size(); ++j) {
      const std::int64_t by_a = sign_of(a[j] - a[i]);
      const std::int64_t by_b = sign_of(b[j] - b[i]);
      agreement += by_a * by_b;
      ordered_by_a += by_a != 0;
      ordered_by_b += by_b != 0;
    }
  }
  if (ordered_by_a == 0 || ordered_by_b == 0) return std::nullopt;
  return static_cast<double>(agreement) /
         std::sqrt(static_cast<double>(ordered_by_a) * static_cast<double>(ordered_by_b));
}

}  // namespace hdpsim
