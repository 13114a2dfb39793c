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

/// The title of a timeline file.
struct TimelineTitle {
  std::string source;  ///< "predicted" or "measured".
  std::string plan;    ///< The policy that planned the step.
  std::int64_t step = 0;
  /// In a prediction: the mean share of a core that kernels have if ranks have to share cores. All together they then
  /// take 1 / core_share of their time on cores of their own.
  double core_share = 1;
  /// Stages of each HDP rank's pipeline: the timeline's ranks are workers, rank x stages + stage.
  std::int64_t stages = 1;
  /// In a measurement: the step time predicted with kernels at the speed measured alongside this run, if they were
  /// timed then.
  std::optional<Duration> at_pace = {};
  friend bool operator==(const TimelineTitle&, const TimelineTitle&) = default;
};

/// Identifies the instruction of a record: no other record of its timeline has the same id.
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
///                                                                        with "processor_s": see TimelineFile
///   {"micro_batch": 0, "begin_s": 0.01, "end_s": 0.2}                    one a micro-batch of the plan
///   [0, 0, 2, 11, 3, "attention", "compute", 0.01, 0.02]                 one an instruction that a rank ran: HDP rank,
///                                                                        micro-batch, block, iteration, instruction,
///                                                                        opcode, stream, begin, end
///   [0, 0, 2, 11, 3, "attention", "compute", 0.01, 0.02, 1, "forward", 1]   the same in a pipeline: chunk and kind of
///                                                                        the pass, and the rank's stage that ran it
[[nodiscard]] std::string timeline_text(const TimelineTitle& title, const Timeline& timeline,
                                        const std::vector<Breakdown>& processor = {});

/// A time in seconds as the file writes it: "1.000000000001", without trailing zeros.
[[nodiscard]] std::string exact_seconds(Duration time);

struct TimelineFile {
  TimelineTitle title;
  Timeline timeline;  ///< Without evidence, link bytes and events, which the file does not hold.
  /// The measured breakdown of each worker without the time in which its thread had no core. Empty if the file does not
  /// say.
  std::vector<Breakdown> processor;
};

/// Reads only the first line of a timeline. InputError if it is not one.
[[nodiscard]] TimelineTitle read_timeline_title(const std::string& file, const std::string& line);

/// Whether the first line of a timeline says that it has no instructions, as those of runtimes that know none. False
/// for a line that is no first line at all.
[[nodiscard]] bool states_no_instructions(const std::string& line);

/// Reads what timeline_text() has written. InputError with the lines that are wrong or contradict each other: times
/// that run backwards or out of the step, parts that do not sum to it, ranks and micro-batches that the first line does
/// not count, an instruction that occurs twice. `file` is the name that messages carry.
[[nodiscard]] TimelineFile read_timeline(const std::string& file, const std::string& text);
/// The same from a file, line by line. MachineError if it cannot be read.
[[nodiscard]] TimelineFile load_timeline(const std::filesystem::path& path);

}  // namespace hdpsim
