#include "sim/results/advice_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_named = 3;

}  // namespace

std::string changes_text(const Advice& advice) {
  const std::string changes = joined(advice.changes, " ");
  return advice.remarks.empty() ? changes : fmt::format("{} ({})", changes, joined(advice.remarks, ", "));
}

std::string advice_text(const Advice& advice) {
  const std::string gives = advice.gain ? fmt::format("{:+.1f}% of the time of a token", -100 * *advice.gain)
                                        : fmt::format("{} a device", bytes_text(advice.device));
  return fmt::format("{} ({})", changes_text(advice), gives);
}

std::string best_advice(const std::vector<Advice>& all) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(most_named, all.size()); ++i) texts.push_back(advice_text(all[i]));
  return joined(texts, ", or ");
}

}  // namespace hdpsim
