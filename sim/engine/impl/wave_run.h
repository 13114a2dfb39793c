#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sim/engine/impl/loop_schedule.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// What a pass does before its first all-to-all of an expert group and behind its last one: then it is alone. In
/// between it goes from layer to layer together with the others of its wave.
struct Margins {
  Duration lead;
  Duration tail;
  Duration experts;  ///< In between: of a device of nominal speed, the products between two all-to-alls, all layers.
};
/// On workers of this speed. Nothing for a pass without an all-to-all.
[[nodiscard]] std::optional<Margins> margins(const PricedProgram& priced, double speed, const TransferTime& transfer);

/// Whether the layers of a block have all-to-alls of an expert group.
[[nodiscard]] bool has_all_to_all(const MicroBatchProgram& program, std::size_t block);

/// The passes of a wave in the fluid grain. They meet at the first all-to-all, when the last of them has come there,
/// and leave the last one together; in between each layer takes what it takes the slowest of them.
class WaveRun {
 public:
  /// A pass whose ring shares links begins; it goes from layer to layer with the others that do.
  void begin_shared(Instant begun, const Margins& margins) {
    met_shared_ = std::max(met_shared_, begun + margins.lead);
  }
  /// When a pass began, and when it would have ended by itself, or with those alone whose rings share links.
  void add(Instant begun, Instant ended, const Margins& margins, bool shared) {
    const Instant met = shared ? met_shared_ : begun + margins.lead;
    met_ = std::max(met_, met);
    together_ = std::max(together_, (ended - met) - margins.tail);
    ++passes_;
  }
  [[nodiscard]] std::size_t passes() const { return passes_; }
  /// Of one of them, once all have been added; never before it would have ended by itself.
  [[nodiscard]] Instant end(const Margins& margins) const { return met_ + together_ + margins.tail; }

 private:
  Instant met_;
  Instant met_shared_;
  Duration together_;
  std::size_t passes_ = 0;
};

}  // namespace hdpsim
