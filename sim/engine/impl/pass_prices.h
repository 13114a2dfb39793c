#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "sim/engine/pass_forms.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The priced programs of a step's passes. Passes of a class share a form; of others those that are alike and soon
/// follow each other have one program: in a batch of equal sequences every chunk is lowered and priced a few times in
/// each direction.
class PassPrices {
 public:
  /// All outlive this object. `forms`: those of the job's steps; null: the step has its own.
  PassPrices(const Program& program, const Machine& machine, PassForms* forms);
  /// The price of a pass with these ring_hops(), which the next call may change unless somebody still holds it.
  /// O(spans) if the pass is of a known class or like one of the last few of its chunk and direction, otherwise the
  /// cost of price().
  [[nodiscard]] std::shared_ptr<const PricedProgram> of(PassId id, const std::vector<Hop>& hops);
  /// What a pass of one rank takes on a device of nominal speed, without its program; empty unless its instructions
  /// run one after another and its class is known. O(spans).
  [[nodiscard]] std::optional<SerialPass> serial(PassId id);

 private:
  struct Known {
    std::optional<PassId> id;
    std::shared_ptr<const PricedProgram> priced;
  };
  /// Enough for two copies of the model, each with and without a pass that overlaps with it.
  static constexpr std::size_t kept = 4;

  const Program& program_;
  const Machine& machine_;
  PassForms own_forms_;
  PassForms& forms_;
  std::vector<std::array<Known, kept>> last_;  // by a pass's place among those of its micro-batch; the newest first
};

}  // namespace hdpsim
