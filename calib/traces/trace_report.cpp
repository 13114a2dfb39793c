#include "calib/traces/trace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"

namespace hdpsim::calib {
namespace {

constexpr double percent = 100;
constexpr std::size_t most_words = 24;
constexpr std::size_t most_names = 5;
constexpr std::size_t longest_name = 90;

using Times = std::vector<std::pair<std::string, ClassTime>>;

template <class Map>
Times largest(const Map& times, std::size_t most) {
  Times sorted(times.begin(), times.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  if (sorted.size() > most) sorted.resize(most);
  return sorted;
}

std::string head(const Recording& recording) {
  std::string text;
  for (const ProfiledDevice& device : recording.devices) {
    text += (text.empty() ? "" : "; ") + printable(device.name);
    if (device.multiprocessors > 0) text += fmt::format(", {} multiprocessors", device.multiprocessors);
  }
  std::int64_t kernels = 0;
  for (const RankRecording& rank : recording.ranks) kernels += rank.kernels;
  return fmt::format("{}\n{} {}, {} kernels, {} of kernel time\n", text.empty() ? "the traces name no device" : text,
                     recording.ranks.size(), recording.ranks.size() == 1 ? "trace" : "traces", kernels,
                     seconds_text(recording.kernel_s()));
}

std::string row(const std::string& name, const ClassTime& time, double all) {
  return fmt::format("{:<34} {:>9} {:>10} {:>7.1f} % {:>11.1f} %\n", name, time.kernels, seconds_text(time.seconds),
                     percent * time.seconds / all, time.seconds > 0 ? percent * time.with_shape_s / time.seconds : 0);
}

std::string classes(const Recording& recording) {
  const double all = std::max(recording.kernel_s(), 1e-12);
  std::string text =
      fmt::format("\n{:<34} {:>9} {:>10} {:>9} {:>13}\n", "time by class", "kernels", "time", "share", "of known size");
  const Times words = largest(recording.words, most_words);
  for (std::size_t i = 0; i < kernel_classes; ++i) {
    const ClassTime& time = recording.classes[i];
    if (time.kernels == 0) continue;
    const std::string name(kernel_class_name(static_cast<KernelClass>(i)));
    text += row(name, time, all);
    for (const auto& [word, own] : words) {
      if (word.starts_with(name + ": ")) text += row("  " + word.substr(name.size() + 2), own, all);
    }
  }
  return text;
}

std::string unclassified(const Recording& recording, const TraceRecord& record) {
  std::string text = fmt::format("\nunclassified: {:.1f} % of kernel time", percent * record.unclassified);
  for (const auto& [name, time] : largest(recording.unclassified, most_names)) {
    std::string shown = printable(name);
    if (shown.size() > longest_name) shown = shown.substr(0, longest_name) + "...";
    text += fmt::format("\n  {:.1f} % {}", percent * time.seconds / recording.kernel_s(), shown);
  }
  return text + "\n";
}

std::string taken(const TraceRecord& record, std::string_view from) {
  if (record.parts.empty()) return fmt::format("\nnothing of the profile comes {}\n", from);
  std::string text = fmt::format("\n{:<32} {:<7} {:>8} {:>6}  {:<17} {}\n", from, "how", "samples", "sizes",
                                 "measured/predicted", "value");
  for (const TracedPart& part : record.parts) {
    text += fmt::format("{:<32} {:<7} {:>8} {:>6}  {:<18} {}\n", part.part, part.how, part.samples, part.sizes,
                        fmt::format("{:.3f} to {:.3f}", part.p10, part.p90), part.value);
  }
  return text + "measured/predicted: deciles 1 and 9, over sizes where there are several, which a fit has not seen\n";
}

std::string kept(const TraceRecord& record) {
  std::string text = fmt::format("\nkept of {}\n", record.start);
  std::vector<std::pair<std::string, std::string>> reasons;  // and the parts, in the order of the record
  for (const KeptPart& part : record.kept) {
    const auto known =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& reason) { return reason.first == part.why; });
    if (known == reasons.end()) {
      reasons.emplace_back(part.why, part.part);
    } else {
      known->second += ", " + part.part;
    }
  }
  for (const auto& [why, parts] : reasons) text += fmt::format("  {}\n    {}\n", parts, why);
  return text;
}

}  // namespace

std::string trace_report(const Recording& recording, const DeviceProfile& profile) {
  const TraceRecord& record = *profile.provenance.traces;
  return head(recording) + classes(recording) + unclassified(recording, record) +
         parts_report(record, "from the traces");
}

std::string parts_report(const TraceRecord& record, std::string_view from) {
  return taken(record, from) + kept(record);
}

}  // namespace hdpsim::calib
