#include "sim/engine/impl/pass_prices.h"

#include <algorithm>
#include <iterator>

namespace hdpsim {

PassPrices::PassPrices(const Program& program, const Machine& machine, PassForms* forms)
    : program_(program),
      machine_(machine),
      forms_(forms != nullptr ? *forms : own_forms_),
      last_(program.pipeline().passes() / std::max<std::size_t>(1, program.plan().micro_batches.size())) {
  forms_.begin_step(program.context(), machine);
}

std::shared_ptr<const PricedProgram> PassPrices::of(PassId id, const std::vector<Hop>& hops) {
  if (const std::optional<PassClass> of = program_.class_of(id)) return forms_.price(*of, program_, id, hops);
  std::array<Known, kept>& last = last_[id.index() % last_.size()];
  auto known = std::find_if(last.begin(), last.end(),
                            [&](const Known& other) { return other.id && program_.are_alike(*other.id, id); });
  if (known == last.end()) {
    known = std::prev(last.end());
    known->priced = std::make_shared<const PricedProgram>(price(program_, id, hops, machine_));
  }
  known->id = id;
  std::rotate(last.begin(), known, std::next(known));
  return last.front().priced;
}

std::optional<SerialPass> PassPrices::serial(PassId id) {
  const MicroBatch& micro_batch = program_.pipeline().micro_batch(id);
  if (micro_batch.group.size() != 1 || micro_batch.offloads()) return std::nullopt;
  const std::optional<PassClass> of = program_.class_of(id);
  return of ? forms_.serial(*of, program_, id) : std::nullopt;
}

}  // namespace hdpsim
