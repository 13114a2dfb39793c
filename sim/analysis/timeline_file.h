#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/engine/timeline.h"

namespace hdpsim {

/// The schema of timeline files.
inline constexpr char timeline_schema[] = "hdpsim.timeline/1";

/// What a timeline file says of its timeline.
struct TimelineTitle {
  std::string source;  ///< "predicted" or "measured".
  std::string plan;    ///< The policy.
  std::int64_t step = 0;
  /// Of a prediction: the share of a core that kernels have on average, if ranks have to share cores. All together they
  /// then take 1 / core_share of what they take on cores of their own.
  double core_share = 1;
  std::int64_t stages = 1;  ///< Of each HDP rank's pipeline: the timeline's ranks are workers, rank x stages + stage.
  /// Of a measurement: the step time that is predicted with kernels as fast as they were beside this run, if they were
  /// timed then.
  std::optional<Duration> at_pace = {};
  friend bool operator==(const TimelineTitle&, const TimelineTitle&) = default;
};

/// Which instruction of a step a record is of: no other record of its timeline has the same.
[[nodiscard]] inline auto instruction_id(const InstructionRecord& record) {
  return std::tuple(record.rank, record.micro_batch, record.chunk, record.kind, record.block, record.iteration,
                    record.instruction);
}

/// A timeline as JSON lines, the same for predictions and measurements, so that they join by instruction. The first
/// line says what it is ("core_share" and "stages" if they are not 1, "at_pace_s" if it is known) and how many of the
/// others follow; times are seconds since the start of the step, exact to the picosecond:
///   {"schema": "hdpsim.timeline/1", "source": "measured", "plan": "hdp-balance", "step": 0, "step_time_s": 0.25,
///    "ranks": 2, "micro_batches": 1, "instructions": 1}
///   {"rank": 0, "breakdown_s": {"attention": 0.1, ...}}                  one a worker; its parts sum to step_time_s;
///                                                                        "processor_s" beside it: see TimelineFile
///   {"micro_batch": 0, "begin_s": 0.01, "end_s": 0.2}                    one a micro-batch of the plan
///   [0, 0, 2, 11, 3, "attention", "compute", 0.01, 0.02]                 one an instruction that a rank ran: HDP rank,
///                                                                        micro-batch, block, iteration, instruction,
///                                                                        opcode, stream, begin, end
///   [0, 0, 2, 11, 3, "attention", "compute", 0.01, 0.02, 1, "forward", 1]   the same in a pipeline: chunk and kind of
///                                                                        the pass, and the rank's stage that ran it
[[nodiscard]] std::string timeline_text(const TimelineTitle& title, const Timeline& timeline,
                                        const std::vector<Breakdown>& processor = {});

/// A time in seconds as it stands in the file: "1.000000000001", without zeros at its end.
[[nodiscard]] std::string exact_seconds(Duration time);

struct TimelineFile {
  TimelineTitle title;
  Timeline timeline;  ///< Without evidence, link bytes and events, which the file does not hold.
  /// By worker: what it measured less the time in which its thread had no core. Empty if the file does not say.
  std::vector<Breakdown> processor;
};

/// Reads the first line of a timeline alone. InputError if it is none.
[[nodiscard]] TimelineTitle read_timeline_title(const std::string& file, const std::string& line);

/// Reads what timeline_text() has written. InputError with the lines that are wrong, or contradict each other: times
/// that run backwards or out of the step, parts that do not sum to it, ranks and micro-batches that the first line does
/// not know, an instruction that stands there twice. `file` is the name that it carries.
[[nodiscard]] TimelineFile read_timeline(const std::string& file, const std::string& text);
/// The same from a file, line by line. MachineError if it cannot be read.
[[nodiscard]] TimelineFile load_timeline(const std::filesystem::path& path);

}  // namespace hdpsim
