#include "sim/results/baseline_note.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text.h"
#include "sim/document/values.h"

namespace hdpsim {
namespace {

// " at 2 of 3 points"; nothing of all points.
std::string at_points(std::ptrdiff_t count, std::ptrdiff_t all) {
  return count == all ? "" : fmt::format(" at {} of {} points", count, all);
}

// The baseline on the study's mesh, which was not tuned, or cannot even run.
std::string untuned_note(const std::vector<Run>& runs, const std::string& baseline) {
  const auto is_baseline = [&](const Run& run) { return run.info.plan == baseline; };
  const auto cannot_run = [&](const Run& run) { return is_baseline(run) && !run.metrics.fits; };
  const auto all = std::count_if(runs.begin(), runs.end(), is_baseline);
  const auto count = std::count_if(runs.begin(), runs.end(), cannot_run);
  if (count == 0) {
    return fmt::format(
        "speed-ups are over {0} on this mesh, which need not be its best: hdpsim tune finds that, compare_to: {{{0}: "
        "tuned}} compares with it",
        baseline);
  }
  return fmt::format("speed-ups{} are over {}, which does not fit: they compare with what cannot run",
                     at_points(count, all), baseline);
}

// Where a baseline is refused on the study's mesh, nothing is compared with it.
std::vector<std::string> untuned_notes(const std::vector<Run>& runs, const std::string& baseline) {
  std::vector<std::string> notes = {untuned_note(runs, baseline)};
  const auto is_refused = [&](const Run& run) { return run.info.plan == baseline && run.is_refused(); };
  const auto count = std::count_if(runs.begin(), runs.end(), is_refused);
  const auto all = std::count_if(runs.begin(), runs.end(), [&](const Run& run) { return run.info.plan == baseline; });
  if (count > 0) {
    notes.push_back(fmt::format("there are no speed-ups{}: {}, which they would be over, is refused",
                                at_points(count, all), baseline));
  }
  return notes;
}

std::string point_text(const RunInfo& info) {
  std::vector<std::string> parts;
  for (const auto& [path, value] : info.coordinates) parts.push_back(fmt::format("{} {}", path, line_of(value)));
  return parts.empty() ? "" : fmt::format(" at {}", joined(parts, ", "));
}

}  // namespace

std::vector<std::string> baseline_notes(const std::vector<Run>& runs) {
  const auto compared =
      std::find_if(runs.begin(), runs.end(), [](const Run& run) { return run.metrics.speedup.has_value(); });
  if (compared == runs.end()) return {};
  if (compared->tuned_baseline == nullptr) return untuned_notes(runs, compared->metrics.speedup->versus);
  std::vector<std::string> notes;
  const Run* last = nullptr;
  for (const Run& run : runs) {
    if (run.is_refused() || run.tuned_baseline.get() == last) continue;
    last = run.tuned_baseline.get();
    notes.push_back(fmt::format("{}{}: {}", last->info.plan, point_text(last->info), last->info.tuned));
  }
  return notes;
}

}  // namespace hdpsim
