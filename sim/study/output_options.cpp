#include "sim/study/output_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/document/reader.h"

namespace hdpsim {
namespace {

constexpr double most_memory_ranks = 1024;  // of a step: hundreds of samples each
constexpr std::int64_t usual_ranks = 8;
constexpr std::int64_t most_ranks = 256;  // more threads than a person can look at

std::vector<HdpRank> first_ranks(std::int64_t count, const OutputLimits& limits) {
  std::vector<HdpRank> ranks;
  for (std::int64_t rank = 0; rank < std::min(count, limits.ranks); ++rank) ranks.emplace_back(rank);
  return ranks;
}

std::vector<HdpRank> listed_ranks(const Value& list, const OutputLimits& limits, Diagnostics& diagnostics) {
  std::vector<HdpRank> ranks;
  for (const Value& item : list.items) {
    const auto rank = read<std::int64_t>(item, diagnostics);
    if (!rank) continue;
    if (*rank < 0 || *rank >= limits.ranks) {
      diagnostics.error(item.position, fmt::format("there is no rank {} at every point of the study", *rank),
                        fmt::format("HDP ranks are counted from 0 to {}", limits.ranks - 1));
    } else if (std::find(ranks.begin(), ranks.end(), HdpRank(*rank)) != ranks.end()) {
      diagnostics.error(item.position, fmt::format("rank {} stands here a second time", *rank), "remove one of them");
    } else {
      ranks.emplace_back(*rank);
    }
  }
  if (list.items.empty() || std::ssize(list.items) > most_ranks) {
    diagnostics.error(list.position, fmt::format("a timeline shows 1 to {} ranks", most_ranks), "write ranks: 8");
  }
  return ranks;
}

std::vector<HdpRank> read_ranks(MapReader& perfetto, const OutputLimits& limits) {
  const Value* ranks = perfetto.find("ranks");
  if (ranks != nullptr && ranks->is_sequence()) return listed_ranks(*ranks, limits, perfetto.diagnostics());
  const auto count = perfetto.optional_in<std::int64_t>("ranks", {1, most_ranks});
  return first_ranks(count.value_or(usual_ranks), limits);
}

PerfettoOptions read_perfetto(const Value& value, const OutputLimits& limits, Diagnostics& diagnostics) {
  MapReader perfetto(value, "the timeline", diagnostics);
  PerfettoOptions options;
  options.ranks = read_ranks(perfetto, limits);
  options.step = perfetto.optional_in<std::int64_t>("step", {0, static_cast<double>(limits.steps - 1)}).value_or(0);
  constexpr Between<Duration> of_a_step{Duration{}, Duration::max()};
  options.from = perfetto.optional_in<Duration>("from", of_a_step).value_or(Duration{});
  options.to = perfetto.optional_in<Duration>("to", of_a_step).value_or(Duration::max());
  if (options.to <= options.from) perfetto.error("the timeline ends before it begins", "make 'to' later than 'from'");
  perfetto.finish();
  return options;
}

}  // namespace

OutputOptions read_output(const Value& value, const OutputLimits& limits, Diagnostics& diagnostics) {
  MapReader output(value, "the output", diagnostics);
  OutputOptions options;
  options.html = output.optional<bool>("html", false);
  if (const Value* perfetto = output.find("perfetto"); perfetto != nullptr && perfetto->text != "false") {
    if (perfetto->text == "true") {
      options.perfetto = PerfettoOptions{.ranks = first_ranks(usual_ranks, limits)};
    } else {
      options.perfetto = read_perfetto(*perfetto, limits, diagnostics);
    }
  }
  if (const Value* memory = output.find("memory")) {
    MapReader map(*memory, "the output of memory", diagnostics);
    const auto ranks = map.required_in<std::int64_t>("ranks", {0, most_memory_ranks});
    if (ranks) options.memory_ranks = static_cast<std::size_t>(*ranks);
    map.finish();
  }
  output.finish();
  return options;
}

}  // namespace hdpsim
