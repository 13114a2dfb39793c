#pragma once

#include <span>

#include "sim/engine/timeline.h"

namespace hdpsim {

/// The sends and receives of one worker.
struct ExchangeOverlap {
  double exchange_s = 0;  ///< Time in which at least one was under way.
  double hidden_s = 0;    ///< The part of it in which the worker's compute stream was busy.
};
[[nodiscard]] ExchangeOverlap exchange_overlap(std::span<const InstructionRecord> records);

}  // namespace hdpsim
