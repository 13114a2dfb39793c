#include <fmt/format.h>

#include "kernels/exec/checkpoint.h"
#include "sim/run/run_store.h"
#include "sim/run/runner.h"
#include "tests/fuzz/groups.h"
#include "tests/fuzz/sane.h"
#include "tests/fuzz/scratch.h"
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
tune: {space: {mesh.tp: [1, 2], mesh.pp: [1], mesh.capacity: [4Ki], mesh.recompute: [none]}}
)";

constexpr char identity[] = "identity";

std::string run_of_study() {
  RunResult result = run_study(study_of(study_text), {})->front().result;
  for (StepResult& step : result.steps) step.phases = {};  // processor seconds, which are others every time
  return run_text(identity, result);
}

Outcome read_run(std::string_view input) {
  static const std::string written = run_of_study();
  const auto result = run_of_text(identity, input);
  if (!result) return Outcome::refused;
  require(run_text(identity, *result) == run_text(identity, *run_of_text(identity, written)), "kept run",
          "a changed one is taken");
  return Outcome::accepted;
}

/// A folder as a finished replay or search leaves it, and the file in it that grew.
struct Finished {
  fs::path folder;
  std::string name;
  [[nodiscard]] std::string text() const { return text_of(folder / name); }
};

Finished replayed() {
  const fs::path folder = empty_scratch("replayed");
  (void)replay_sanely(study_text, folder, false);
  return {folder, "steps.csv"};
}

Finished tuned() {
  const fs::path folder = empty_scratch("tuned");
  (void)tune_sanely(study_text, folder, false);
  return {folder, "search.jsonl"};
}

/// Lays the input where that file was, and goes on with it.
template <class Resume>
Outcome resumed(const Finished& finished, std::string_view input, const Resume& resume) {
  const fs::path folder = empty_scratch("resumed");
  fs::copy(finished.folder, folder, fs::copy_options::recursive);
  const fs::path path = file_with("resumed/" + finished.name, input);
  resume(folder);
  require(text_of(path) == finished.text(), "resumed", fmt::format("another {}", finished.name));
  return Outcome::accepted;
}

std::string steps_of_replay() {
  return replayed().text();
}

std::string lines_of_search() {
  return tuned().text();
}

Outcome resume_replay(std::string_view input) {
  static const Finished finished = replayed();
  return resumed(finished, input, [](const fs::path& folder) { (void)replay_sanely(study_text, folder, true); });
}

Outcome resume_search(std::string_view input) {
  static const Finished finished = tuned();
  return resumed(finished, input, [](const fs::path& folder) { (void)tune_sanely(study_text, folder, true); });
}

std::string written_checkpoint() {
  using namespace kernels::exec;
  constexpr std::int64_t parameters = 40;
  const fs::path path = scratch() / "written";
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
      {"kept_run", ".json", 8, longest_reading, {}, read_run, run_of_study},
      {"kept_replay", ".csv", 3, longest_simulation, {}, resume_replay, steps_of_replay},
      {"kept_search", ".jsonl", 3, longest_simulation, {}, resume_search, lines_of_search},
      {"checkpoint", ".bin", 5, longest_reading, {}, read_checkpoint, written_checkpoint},
  };
}

}  // namespace hdpsim::fuzz
