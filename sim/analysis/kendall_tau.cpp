#include "sim/analysis/kendall_tau.h"

#include <cmath>
#include <cstdint>
#include <map>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

std::int64_t sign_of(double difference) {
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

std::optional<double> kendall_tau(const std::vector<RankedPair>& values) {
  std::map<std::string, std::vector<const RankedPair*>> groups;
  for (const RankedPair& value : values) groups[value.group].push_back(&value);
  std::int64_t pairs = 0;
  std::int64_t balance = 0;
  for (const auto& [group, members] : groups) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        ++pairs;
        balance += sign_of(members[i]->published - members[j]->published) *
                   sign_of(members[i]->predicted - members[j]->predicted);
      }
    }
  }
  if (pairs == 0) return std::nullopt;
  return static_cast<double>(balance) / static_cast<double>(pairs);
}

}  // namespace hdpsim
