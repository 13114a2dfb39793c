#include "sim/plan/plan_document.h"

#include "sim/model/sharing_form.h"

namespace hdpsim {

std::string_view exchange_word(KeyExchange exchange) {
  const std::string_view word = sharing_form(exchange).word();
  return word.empty() ? "servers" : word;  // plans ask for these alone
}

const std::vector<std::string>& exchange_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    for (const KeyExchange exchange : all_key_exchanges()) all.emplace_back(exchange_word(exchange));
    return all;
  }();
  return words;
}

std::optional<KeyExchange> exchange_in(const PlanDocument& document, const MicroBatch& micro_batch) {
  if (micro_batch.group.size() == 1) return std::nullopt;
  if (const auto own = own_exchange(micro_batch)) return own;
  return document.mesh.exchange;
}

bool runs_in_waves(const Plan& plan) {
  constexpr std::size_t nowhere = static_cast<std::size_t>(-1);
  std::vector<std::size_t> places(plan.micro_batches.size(), nowhere);
  const auto update_of = [&](MicroBatchId id) { return plan.micro_batches.at(id.index()).update; };
  for (const std::vector<MicroBatchId>& list : plan.schedule) {
    const std::vector<MicroBatchId>& first = plan.schedule.front();
    if (list.size() != first.size()) return false;
    for (std::size_t k = 0; k < list.size(); ++k) {
      std::size_t& place = places.at(list[k].index());
      if ((place != nowhere && place != k) || update_of(list[k]) != update_of(first[k])) return false;
      place = k;
    }
  }
  return true;
}

}  // namespace hdpsim
