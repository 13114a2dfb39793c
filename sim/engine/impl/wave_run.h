#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sim/engine/impl/loop_schedule.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The times of a pass before its first all-to-all of an expert group and after its last one, when it runs by itself.
/// In between it goes from layer to layer together with the other passes of its wave.
struct Margins {
  Duration lead;
  Duration tail;
  Duration experts;  ///< In between: the experts' products of all layers on a device of nominal speed.
};
/// The margins on workers of this speed; no value for a pass without an all-to-all.
[[nodiscard]] std::optional<Margins> margins(const PricedProgram& priced, double speed, const TransferTime& transfer);

/// The passes of a wave in the fluid fidelity. They begin the first all-to-all together, when the last of them has
/// reached it, and leave the last all-to-all together. In between, each layer takes the time of the slowest pass.
class WaveRun {
 public:
  /// A pass whose ring shares links begins. It goes from layer to layer together with the other passes of this kind.
  void begin_shared(Instant begun, const Margins& margins) {
    met_shared_ = std::max(met_shared_, begun + margins.lead);
  }
  /// Adds a pass: when it began, and when it would have ended by itself or, if `shared`, together with only those
  /// passes whose rings share links.
  void add(Instant begun, Instant ended, const Margins& margins, bool shared) {
    const Instant met = shared ? met_shared_ : begun + margins.lead;
    met_ = std::max(met_, met);
    together_ = std::max(together_, (ended - met) - margins.tail);
    ++passes_;
  }
  [[nodiscard]] std::size_t passes() const { return passes_; }
  /// The end of a pass, once all passes have been added; never earlier than it would have ended by itself.
  [[nodiscard]] Instant end(const Margins& margins) const { return met_ + together_ + margins.tail; }

 private:
  Instant met_;
  Instant met_shared_;
  Duration together_;
  std::size_t passes_ = 0;
};

}  // namespace hdpsim
