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

std::optional<double> kendall_tau(const std::vector<RankedPair>& values) {
  std::map<std::string, std::vector<const RankedPair*>> groups;
  for (const RankedPair& value : values) groups[value.group].push_back(&value);
  std::int64_t agreement = 0;
  std::int64_t ordered_as_published = 0;
  std::int64_t ordered_as_predicted = 0;
  for (const auto& [group, members] : groups) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const std::int64_t published = sign_of(members[i]->published - members[j]->published);
        const std::int64_t predicted = sign_of(members[i]->predicted - members[j]->predicted);
        agreement += published * predicted;
        ordered_as_published += published != 0;
        ordered_as_predicted += predicted != 0;
      }
    }
  }
  if (ordered_as_published == 0 || ordered_as_predicted == 0) return std::nullopt;
  return static_cast<double>(agreement) /
         std::sqrt(static_cast<double>(ordered_as_published) * static_cast<double>(ordered_as_predicted));
}

std::optional<double> kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  HDPSIM_CHECK(a.size() == b.size(), "rankings of {} and of {} things", a.size(), b.size());
  std::vector<RankedPair> pairs;
  for (std::size_t i = 0; i < a.size(); ++i) pairs.push_back({"", a[i], b[i]});
  return kendall_tau(pairs);
}

}  // namespace hdpsim
