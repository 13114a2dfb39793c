#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The priced programs of a step's passes. Passes that are alike and follow each other have one: in a batch of equal
/// sequences every chunk is lowered and priced once in each direction.
class PassPrices {
 public:
  /// Both outlive this object.
  PassPrices(const Program& program, const Machine& machine);
  /// O(spans) if the pass is like the last one of its chunk and direction, otherwise the cost of price().
  [[nodiscard]] std::shared_ptr<const PricedProgram> of(PassId id);

 private:
  struct Last {
    std::optional<PassId> id;
    std::shared_ptr<const PricedProgram> priced;
  };

  const Program& program_;
  const Machine& machine_;
  std::vector<Last> last_;  // by a pass's place among those of its micro-batch
};

}  // namespace hdpsim
