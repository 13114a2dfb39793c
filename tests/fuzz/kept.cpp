#include <fmt/format.h>

#include <vector>

#include "kernels/exec/checkpoint.h"
#include "sim/run/run_record.h"
#include "sim/run/runner.h"
#include "sim/tune/tune_report.h"
#include "tests/fuzz/groups.h"
#include "tests/fuzz/sane.h"
#include "tests/fuzz/scratch_files.h"
#include "tests/fuzz/searches.h"

// What the program wrote, changed by somebody else: it is refused, or read as far as it is whole and brought to the end
// that it would have had.

namespace hdpsim::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr char study_text[] = R"(name: kept
cluster: {preset: a100-rail-3tier, gpus: 8}
model: {preset: llama-160m}
profile: bytescale-implied
data: {lengths: {preset: github}, context: 8Ki, tokens_per_step: 32Ki, steps: 3, seed: 1}
mesh: {capacity: 4Ki}
plans: [static, hdp-naive]
tune: {space: {mesh.tp: [1, 2], mesh.pp: [1], mesh.capacity: [4Ki], training.recompute: [none]}}
)";

/// Works in a folder, anew or on what its journal holds, and returns the results as text.
using Work = std::string (*)(const fs::path& folder, bool resume);

std::string studied(const fs::path& folder, bool resume) {
  Journal journal = JournalFolder{folder, resume}.open(runs_title());
  std::string text;
  std::vector<Run> runs = run_study(study_of(study_text), {.journal = &journal}).value();
  for (Run& run : runs) {
    for (StepResult& step : run.result.steps) step.phases = {};  // processor seconds, which are others every time
    text += run_text(run.result);
  }
  return text;
}

std::string replayed(const fs::path& folder, bool resume) {
  (void)replay_sanely(study_text, {folder, resume});
  return text_of(folder / "steps.csv");
}

std::string tuned(const fs::path& folder, bool resume) {
  const auto result = tune_sanely(study_text, {folder, resume});
  return tune_csv(*result, std::nullopt);
}

template <Work work>
std::string written_journal() {
  const fs::path folder = empty_scratch("written");
  (void)work(folder, false);
  return text_of(folder / journal_name);
}

/// Lays the input where the journal was, and continues from it.
template <Work work>
Outcome resumed(std::string_view input) {
  static const std::string expected = work(empty_scratch("whole"), false);
  const fs::path folder = empty_scratch("resumed");
  (void)file_with(fmt::format("resumed/{}", journal_name), input);
  require(work(folder, true) == expected, "resumed", "another result");
  return Outcome::accepted;
}

std::string written_checkpoint() {
  using namespace kernels::exec;
  constexpr std::int64_t parameters = 40;
  const fs::path path = scratch() / "checkpoint";
  CheckpointTitle title;
  title.shape = 2;
  title.parameters = parameters;
  CheckpointWriter writer(path, title);
  const std::vector<float> numbers(static_cast<std::size_t>(parameters) * checkpoint_tensors.size(), 0.25F);
  writer.write(numbers);
  writer.finish();
  return text_of(path);
}

Outcome read_checkpoint(std::string_view input) {
  static const std::string written = written_checkpoint();
  kernels::exec::CheckpointReader reader(file_with("checkpoint", input));
  reader.verify();
  require(input == written, "checkpoint", "a changed one is taken");
  return Outcome::accepted;
}

}  // namespace

std::vector<Target> kept_targets() {
  return {
      {"kept_study", ".jsonl", 3, longest_simulation, {}, resumed<studied>, written_journal<studied>},
      {"kept_replay", ".jsonl", 3, longest_simulation, {}, resumed<replayed>, written_journal<replayed>},
      {"kept_search", ".jsonl", 3, longest_simulation, {}, resumed<tuned>, written_journal<tuned>},
      {"checkpoint", ".bin", 5, longest_reading, {}, read_checkpoint, written_checkpoint},
  };
}

}  // namespace hdpsim::fuzz
