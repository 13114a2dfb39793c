#pragma once

#include <string>
#include <vector>

#include "sim/analysis/metrics.h"

namespace hdpsim {

// How sure a run is, in words (Confidence).

/// "13.9-18.2 s": both ends in the unit of the upper one.
[[nodiscard]] std::string seconds_range_text(const FactorRange& seconds);
/// "1.12-1.45x".
[[nodiscard]] std::string speedup_range_text(const FactorRange& speedup);

/// What is said of the memory of a run that ran before its other figures: "does not fit (91% sure): 87 GB of 80 GB on a
/// device", "memory at risk (fits: 71%)", "fits: 88%". Empty where it fits and that is 95 % sure.
[[nodiscard]] std::string memory_verdict_text(const Run& run);

/// "with 90% a step of hdp-balance takes 13.9-18.2 s, its speed-up over static is 1.12-1.45x, and it fits the memory of
/// a device with 99%, by the errors of published runs (dense, nvidia, A100-80GB: 257 steps in 5 sets)."
[[nodiscard]] std::string confidence_sentence(const Run& run);

/// What the intervals of these runs rest on, a sentence without a full stop for each kind of run: "90%: nine of ten
/// published steps would lie there, by the errors of 257 of 5 sets (dense, nvidia, A100-80GB)". Empty without
/// intervals.
[[nodiscard]] std::vector<std::string> confidence_notes(const std::vector<Run>& runs);

}  // namespace hdpsim
