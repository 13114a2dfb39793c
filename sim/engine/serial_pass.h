#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// What a pass without messages takes on its only rank, a device of nominal speed.
struct SerialPass {
  Breakdown times;  ///< Sums to the time of the pass.
  EvidenceTimes evidence{};
  const PassTraffic* traffic = nullptr;  ///< Its collectives; valid until the next pass is asked for.
};

/// A class of passes whose instructions run one after another, all on the compute stream: a pass takes the sum of their
/// times. The class knows all of them but those of its attention, and the host's delays that depend on these.
class SerialForm {
 public:
  /// The form of a program with the times of its class (price_class). Empty if instructions overlap, wait for other
  /// ranks, or run in some iterations only. O(instructions).
  [[nodiscard]] static std::optional<SerialForm> of(const PricedProgram& priced, const Machine& machine);
  /// The pass with these launches of attention: equal to the micro_batch_time() of its own price(). O(blocks of the
  /// launches).
  [[nodiscard]] SerialPass with(const std::vector<Attention>& launches, const Machine& machine) const;

 private:
  /// A block with attention, whose delay by the host depends on the pass.
  struct Loop {
    std::int64_t iterations = 1;
    Duration device{};                     ///< Of kernels and collectives in an iteration, without attention.
    HostCalls calls{};                     ///< Of an iteration, without attention.
    bool is_issued = false;                ///< Whether the host may delay it.
    std::vector<std::uint32_t> attention;  ///< Indices into the launches, in order.

    [[nodiscard]] Duration delay(const Machine& machine) const;
  };

  [[nodiscard]] bool add(const Block& block, const std::vector<Duration>& times, const PricedProgram& priced,
                         const Machine& machine);

  SerialPass others_;        ///< Without attention and what follows from it.
  std::vector<Loop> loops_;  ///< With attention.
};

}  // namespace hdpsim
