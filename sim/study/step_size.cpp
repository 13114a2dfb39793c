#include "sim/study/step_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/base/machine_limits.h"
#include "sim/base/quantity_text.h"
#include "sim/study/study.h"

namespace hdpsim {
namespace {

// A step of 16 million sequences peaks at 2.3 GB, with its batch, plan and program (sim/README.md, cost of a
// simulation).
constexpr double bytes_a_sequence = 150;

// Planning and simulating a step of 2 to 16 million sequences takes 5 to 6 us of processor time a sequence
// (sim/README.md, cost of a simulation).
constexpr double seconds_a_sequence = 6e-6;
constexpr double sequences_worth_a_note = 1e6;

// Steps that a file names take their size from it, and from how its documents are split.
const Position& deciding_place(const BatchOptions& options, const BatchSource& batches) {
  const std::optional<TraceUse> use = batches.use(1);
  return use && use->order == TraceOrder::steps ? options.context_position : options.tokens_position;
}

}  // namespace

void check_step_size(const BatchOptions& options, const BatchSource& batches, Diagnostics& diagnostics) {
  const double sequences = batches.sequences_per_step();
  const Position& place = deciding_place(options, batches);
  if (sequences > static_cast<double>(most_sequences_of_step)) {
    diagnostics.error(place,
                      fmt::format("a step has about {} sequences: at most {} are simulated", short_number(sequences),
                                  count_text(most_sequences_of_step)),
                      "take fewer 'tokens_per_step', longer sequences or a longer 'context'");
    return;
  }
  require_memory(fmt::format("{}:{}:{}: a step of about {} sequences", place.file, place.line, place.column,
                             short_number(sequences)),
                 sequences * bytes_a_sequence);
}

std::string large_step_note(const Study& study) {
  double most = 0;
  for (const StudyPoint& point : study.points) most = std::max(most, point.batches->sequences_per_step());
  if (most <= sequences_worth_a_note) return {};
  return fmt::format(
      "note: {}: a step of about {} sequences takes about {:.0f} s of processor time, or more, for each plan",
      study.name, short_number(most), std::ceil(most * seconds_a_sequence));
}

}  // namespace hdpsim
