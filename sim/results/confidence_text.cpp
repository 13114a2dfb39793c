#include "sim/results/confidence_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/analysis/memory_verdict.h"
#include "sim/results/result_notes.h"

namespace hdpsim {
namespace {

constexpr double sure_to_fit = 0.95;

// Three significant digits of what is at least 1.
std::string digits(double number) {
  return fmt::format("{:.{}f}", number, number < 9.995 ? 2 : number < 99.95 ? 1 : 0);
}

// Nothing is certain of what was not run.
std::string likelihood(double probability) {
  if (probability > 0.99) return ">99%";
  return probability < 0.01 ? "<1%" : fmt::format("{:.0f}%", 100 * probability);
}

// "257 steps in 5 sets"
std::string published_text(const Confidence& found) {
  return fmt::format("{} {} in {} {}", found.figures, found.figures == 1 ? "step" : "steps", found.sets,
                     found.sets == 1 ? "set" : "sets");
}

std::string note_of(const Confidence& found) {
  const std::string whose = found.errors_of == found.kind
                                ? found.kind
                                : fmt::format("{}; nothing was published that is {}", found.errors_of, found.kind);
  return fmt::format("90%: nine of ten published figures would lie there, by the errors of {} ({})",
                     published_text(found), whose);
}

}  // namespace

std::string seconds_range_text(const FactorRange& seconds) {
  constexpr std::array<std::pair<double, const char*>, 3> units = {{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}}};
  const auto fits = [&](const auto& unit) { return seconds.most >= unit.first; };
  const auto found = std::find_if(units.begin(), units.end(), fits);
  const auto& [size, name] = found == units.end() ? units.back() : *found;
  return fmt::format("{}-{} {}", digits(seconds.least / size), digits(seconds.most / size), name);
}

std::string speedup_range_text(const FactorRange& speedup) {
  return fmt::format("{:.2f}-{:.2f}x", speedup.least, speedup.most);
}

std::string memory_verdict_text(const Run& run) {
  const RunMetrics& metrics = run.metrics;
  const std::optional<double> fits = metrics.confidence ? metrics.confidence->fits : std::nullopt;
  if (!metrics.fits) {
    const bool is_device = metrics.memory.device > run.info.device_memory;
    const std::string how = fits && is_device ? fmt::format(" ({} sure)", likelihood(1 - *fits)) : "";
    return fmt::format("does not fit{}: {}", how, memory_excess(run));
  }
  const bool at_risk = fit_of(run) == MemoryFit::at_risk;
  if (!fits) return at_risk ? "memory at risk" : "";
  if (at_risk) return fmt::format("memory at risk (fits: {})", likelihood(*fits));
  return *fits < sure_to_fit ? fmt::format("fits: {}", likelihood(*fits)) : "";
}

std::string confidence_sentence(const Run& run) {
  if (!run.metrics.confidence) {
    return "how far costs and what is not modelled put it off is not known: no published run is of such a device.";
  }
  const Confidence& found = *run.metrics.confidence;
  const std::string speedup = found.speedup ? fmt::format(", its speed-up over {} is {}", run.metrics.speedup->versus,
                                                          speedup_range_text(*found.speedup))
                                            : "";
  const std::string fits =
      found.fits ? fmt::format(", and it fits the memory of a device with {}", likelihood(*found.fits)) : "";
  return fmt::format("with 90% a step of {} takes {}{}{}, by the errors of published runs ({}: {}).", run.info.plan,
                     seconds_range_text(found.step_time_s), speedup, fits, found.errors_of, published_text(found));
}

std::vector<std::string> confidence_notes(const std::vector<Run>& runs) {
  std::vector<std::string> notes;
  for (const Run& run : runs) {
    if (run.is_refused() || !run.metrics.confidence) continue;
    const std::string note = note_of(*run.metrics.confidence);
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  }
  return notes;
}

}  // namespace hdpsim
