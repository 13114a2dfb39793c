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

// " (p2p)": how the groups of a baseline share a sequence, at each point that differs.
std::string sharings_of(const std::vector<Run>& runs, const std::string& baseline) {
  std::vector<std::string> found;
  for (const Run& run : runs) {
    const std::string text = sharing_text(run.info);
    const bool is_new = std::find(found.begin(), found.end(), text) == found.end();
    if (run.info.plan == baseline && !text.empty() && is_new) found.push_back(text);
  }
  return found.empty() ? "" : fmt::format(" ({})", joined(found, "; "));
}

// What the other speed-ups of a table are over; nothing where there are none, or where the stated ones are the same.
std::string best_static_note(const std::vector<Run>& runs, const std::string& baseline) {
  const auto is_over_another = [](const Run& run) { return run.is_over_another_static(); };
  if (std::none_of(runs.begin(), runs.end(), is_over_another)) return "";
  return fmt::format("over best: over {} with the fastest sharing on the same tp and pp, which is named in brackets",
                     baseline);
}

// The baseline as the study states it, and what may be faster.
std::string stated_note(const std::vector<Run>& runs, const std::string& baseline) {
  const auto is_compared = [](const Run& run) { return run.best_static != nullptr; };
  const std::string tuning = fmt::format("compare_to: {{{}: tuned}} compares with it", baseline);
  if (std::none_of(runs.begin(), runs.end(), is_compared)) {
    return fmt::format("speed-ups are over {} on this mesh, which need not be its best: hdpsim tune finds that, {}",
                       baseline, tuning);
  }
  const std::string stated = baseline + sharings_of(runs, baseline);
  const std::string best = best_static_note(runs, baseline);
  return fmt::format("speed-ups are over {}{}; hdpsim tune finds the best mesh, {}", stated,
                     best.empty() ? ", the fastest sharing on its tp and pp" : " as stated; " + best, tuning);
}

// The baseline on the study's mesh, which was not tuned, or cannot even run.
std::string untuned_note(const std::vector<Run>& runs, const std::string& baseline) {
  const auto is_baseline = [&](const Run& run) { return run.info.plan == baseline; };
  const auto cannot_run = [&](const Run& run) { return is_baseline(run) && !run.metrics.fits; };
  const auto all = std::count_if(runs.begin(), runs.end(), is_baseline);
  const auto count = std::count_if(runs.begin(), runs.end(), cannot_run);
  if (count == 0) return stated_note(runs, baseline);
  const std::string best = best_static_note(runs, baseline);
  return fmt::format("speed-ups{} are over {}, which does not fit: they compare with what cannot run{}",
                     at_points(count, all), baseline, best.empty() ? "" : "; " + best);
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
