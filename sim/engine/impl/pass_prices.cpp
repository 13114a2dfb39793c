#include "sim/engine/impl/pass_prices.h"

#include <algorithm>

namespace hdpsim {

PassPrices::PassPrices(const Program& program, const Machine& machine)
    : program_(program),
      machine_(machine),
      last_(program.pipeline().passes() / std::max<std::size_t>(1, program.plan().micro_batches.size())) {}

std::shared_ptr<const PricedProgram> PassPrices::of(PassId id) {
  Last& last = last_[id.index() % last_.size()];
  if (!last.id || !program_.are_alike(*last.id, id)) {
    last.priced = std::make_shared<const PricedProgram>(price(program_, id, machine_));
  }
  last.id = id;
  return last.priced;
}

}  // namespace hdpsim
