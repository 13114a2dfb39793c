#include "sim/results/notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/analysis/memory_verdict.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/values.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_named = 3;

bool is_at_risk(const Run& run) {
  return !run.is_refused() && fit_of(run) == MemoryFit::at_risk;
}

bool is_fuller(const Run* a, const Run* b) {
  return a->metrics.memory.device > b->metrics.memory.device;
}

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

std::string_view what_happens(Overlong fate) {
  switch (fate) {
    case Overlong::split:
      return "are split";
    case Overlong::truncate:
      return "are cut to it";
    case Overlong::drop:
      return "are left out";
  }
  return "";
}

// Which share of the trace the steps have read, or how often they have read it, and in which order.
std::string reading_note(const TraceUse& use) {
  const bool is_shuffled = use.order == TraceOrder::shuffle;
  const std::string again = is_shuffled ? ", each time in the same random order" : "";
  if (use.times_read > 1) {
    return fmt::format("the {} documents of the trace are read {:.3g} times{}", use.documents, use.times_read, again);
  }
  if (use.times_read == 1) {
    return is_shuffled ? fmt::format("the {} documents of the trace are read in random order", use.documents) : "";
  }
  const std::string share = fmt::format("{:.2g}%", 100 * use.times_read);
  switch (use.order) {
    case TraceOrder::shuffle:
      return fmt::format("{} of the trace of {} documents is read, in random order", share, use.documents);
    case TraceOrder::file:
      return fmt::format("the first {} of the trace of {} documents is read", share, use.documents);
    case TraceOrder::steps:
      break;
  }
  return fmt::format("the first {} of the steps of the trace are read", share);
}

}  // namespace

std::string point_text(const RunInfo& info) {
  std::vector<std::string> parts;
  for (const auto& [path, value] : info.coordinates) parts.push_back(fmt::format("{} {}", path, line_of(value)));
  return joined(parts, ", ");
}

std::string plan_at_point(const Run& run) {
  const std::string point = point_text(run.info);
  return point.empty() ? run.info.plan : fmt::format("{} at {}", run.info.plan, point);
}

std::string changes_text(const Advice& advice) {
  const std::string changes = joined(advice.changes, " ");
  return advice.remarks.empty() ? changes : fmt::format("{} ({})", changes, joined(advice.remarks, ", "));
}

std::string advice_text(const Advice& advice) {
  const std::string gives = advice.gain ? fmt::format("{:+.1f}% of the time of a token", -100 * *advice.gain)
                                        : fmt::format("{} a device", bytes_text(advice.device));
  return fmt::format("{} ({})", changes_text(advice), gives);
}

std::string best_advice(const std::vector<Advice>& all) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(most_named, all.size()); ++i) texts.push_back(advice_text(all[i]));
  return joined(texts, ", or ");
}

std::string risk_lines(const std::vector<Run>& runs) {
  std::vector<const Run*> fullest;  // by plan
  for (const Run& run : runs) {
    if (!is_at_risk(run)) continue;
    const auto same = [&](const Run* other) { return other->info.plan == run.info.plan; };
    const auto known = std::find_if(fullest.begin(), fullest.end(), same);
    if (known == fullest.end()) {
      fullest.push_back(&run);
    } else if (is_fuller(&run, *known)) {
      *known = &run;
    }
  }
  std::string text;
  for (const Run* run : fullest) {
    const auto of_plan = [&](const Run& other) { return other.info.plan == run->info.plan; };
    const auto all = std::count_if(runs.begin(), runs.end(), of_plan);
    const auto count =
        std::count_if(runs.begin(), runs.end(), [&](const Run& each) { return of_plan(each) && is_at_risk(each); });
    const std::string where = all == 1 ? ": " : fmt::format(" at {} of {} points: up to ", count, all);
    text += fmt::format("the memory of {} is at risk{}{}; a smaller mesh.capacity leaves room\n", run->info.plan, where,
                        risk_text(*run));
  }
  return text;
}

std::string likely_savings(const Run& run) {
  constexpr std::string_view in_pieces = "a loss in pieces, which is not modelled";
  constexpr std::string_view in_bf16 =
      "states in bf16 (training.master=none training.moments=bf16 training.gradients=bf16)";
  const MemoryParts& parts = run.metrics.memory.parts;
  if (run.metrics.memory.device <= run.info.device_memory) return "";
  const Bytes excess = run.metrics.memory.device - run.info.device_memory;
  // Of Adam's 12 bytes a parameter 4 are left, of the gradients half.
  const Bytes of_states = parts[MemoryPart::optimizer].scaled(2.0 / 3) + parts[MemoryPart::gradients].scaled(0.5);
  const Bytes of_loss = parts[MemoryPart::head];
  std::vector<std::string> ways;
  if (of_states >= excess) ways.emplace_back(in_bf16);
  if (of_loss >= excess) ways.emplace_back(in_pieces);
  if (ways.empty() && of_loss + of_states >= excess) ways.push_back(fmt::format("{} and {}", in_bf16, in_pieces));
  return ways.empty() ? "" : fmt::format("it may fit with {}", joined(ways, ", or with "));
}

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
    notes.push_back(fmt::format("{}: {}", plan_at_point(*last), last->info.tuned));
  }
  return notes;
}

std::vector<std::string> trace_notes(const TraceUse& use) {
  std::vector<std::string> notes;
  if (!use.column.empty()) notes.push_back(fmt::format("lengths are those of the column {}", use.column));
  if (std::string note = reading_note(use); !note.empty()) notes.push_back(std::move(note));
  if (use.halves && use.halves->differ) {
    notes.push_back(halves_note(*use.halves) + (use.order == TraceOrder::file
                                                    ? ": early steps are unlike late ones, unless the study says "
                                                      "data.lengths.order: shuffle"
                                                    : ""));
  }
  if (use.overlong > 0) {
    notes.push_back(
        fmt::format("{} of the {} documents of the trace ({:.2g}%), with {:.2g}% of its tokens, are longer "
                    "than the context of {} and {}",
                    use.overlong, use.documents, 100 * use.overlong_documents, 100 * use.overlong_tokens,
                    count_text(use.context), what_happens(use.fate)));
  }
  return notes;
}

}  // namespace hdpsim
