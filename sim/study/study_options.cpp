#include "sim/study/study_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/real_number.h"
#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

constexpr double most_memory_ranks = 1024;  // of a step; each has hundreds of samples
constexpr std::int64_t usual_ranks = 8;
constexpr std::int64_t most_ranks = 256;  // more threads than a person can read

constexpr Range counts_of_ranks{1, most_ranks};

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
      diagnostics.error(item.position, fmt::format("rank {} is stated a second time here", *rank),
                        "remove one of them");
    } else {
      ranks.emplace_back(*rank);
    }
  }
  if (list.items.empty() || std::ssize(list.items) > most_ranks) {
    diagnostics.error(list.position, fmt::format("a timeline shows 1 to {} ranks", most_ranks), "write ranks: 8");
  }
  return ranks;
}

/// Options during reading: their limits depend on the runs of the study.
struct PerfettoReading {
  PerfettoOptions options;
  OutputLimits limits;
};

struct OutputReading {
  OutputOptions options;
  OutputLimits limits;
};

void read_ranks(const Value& value, PerfettoReading& perfetto, Diagnostics& diagnostics) {
  if (value.is_sequence()) {
    perfetto.options.ranks = listed_ranks(value, perfetto.limits, diagnostics);
  } else if (const auto count = read_in<std::int64_t>(value, "'ranks'", counts_of_ranks, diagnostics)) {
    perfetto.options.ranks = first_ranks(*count, perfetto.limits);
  }
}

void read_step(const Value& value, PerfettoReading& perfetto, Diagnostics& diagnostics) {
  const Range steps{0, static_cast<double>(perfetto.limits.steps - 1)};
  if (const auto step = read_in<std::int64_t>(value, "'step'", steps, diagnostics)) perfetto.options.step = *step;
}

const KeyTable<PerfettoReading>& perfetto_table() {
  static const auto made = [] {
    KeyTable<PerfettoReading> keys("the timeline");
    const KeyShape rank = shape_of(KeyShape::Kind::count);
    keys.add({"ranks",
              either_shape({count_shape(counts_of_ranks, "ranks"), list_shape(rank)}),
              fmt::format("{}", usual_ranks),
              "how many ranks, the first ones, or which",
              {}},
             read_ranks);
    keys.add({"step", rank, "0", "which step of every run", {}}, read_step);
    constexpr Between<Duration> of_a_step{Duration{}, Duration::max()};
    keys.quantity("from", of_a_step, at(&PerfettoReading::options, &PerfettoOptions::from),
                  "where the timeline begins");
    keys.quantity("to", of_a_step, at(&PerfettoReading::options, &PerfettoOptions::to), "where it ends",
                  {.otherwise = "the end of the step"});
    return keys;
  }();
  return made;
}

void read_perfetto(const Value& value, OutputReading& output, Diagnostics& diagnostics) {
  if (value.text == "false") return;
  PerfettoReading perfetto{{.ranks = first_ranks(usual_ranks, output.limits)}, output.limits};
  const PerfettoOptions& options = perfetto.options;
  if (value.text != "true") (void)perfetto_table().read(value, perfetto, diagnostics);
  if (options.to <= options.from) {
    diagnostics.error(value.position, "the timeline ends before it begins", "make 'to' later than 'from'");
  }
  output.options.perfetto = options;
}

const KeyTable<std::size_t>& output_memory_keys() {
  static const auto made = [] {
    KeyTable<std::size_t> keys("the output of memory");
    keys.count("ranks", {0, most_memory_ranks}, [](auto& ranks) -> auto& { return ranks; },
               "of how many ranks, the fullest, `memory.csv` has the memory over time",
               {.unit = "ranks", .required = true});
    return keys;
  }();
  return made;
}

const KeyTable<OutputReading>& output_table() {
  static const auto made = [] {
    KeyTable<OutputReading> keys("the output");
    keys.flag("html", at(&OutputReading::options, &OutputOptions::html),
              "write `report.html`, a page with charts, into the folder of `--out`");
    keys.add({"perfetto",
              either_shape({shape_of(KeyShape::Kind::flag), map_shape(perfetto_table().texts())}),
              "",
              "write timelines of some ranks in a step for ui.perfetto.dev",
              {.otherwise = "`false`"}},
             read_perfetto);
    keys.map("memory", output_memory_keys(), at(&OutputReading::options, &OutputOptions::memory_ranks),
             "what is written of memory over time", {.otherwise = "`{ranks: 8}`"});
    return keys;
  }();
  return made;
}

}  // namespace

const std::vector<KeyText>& output_keys() {
  return output_table().texts();
}

OutputOptions read_output(const Value& value, const OutputLimits& limits, Diagnostics& diagnostics) {
  OutputReading output{{}, limits};
  (void)output_table().read(value, output, diagnostics);
  return output.options;
}

namespace {

constexpr double most_steps = 1e6;
constexpr double most_worst = 100;  // each is simulated again

const KeyTable<ReplayOptions>& replay_table() {
  static const auto made = [] {
    KeyTable<ReplayOptions> keys("the replay");
    keys.count("window", {1, most_steps}, at(&ReplayOptions::window), "steps that are looked at together",
               {.unit = "steps", .otherwise = "a fiftieth of the run, at least 10"});
    keys.number(
        "threshold", {0, 1000}, at(&ReplayOptions::threshold),
        "a plan has lost its lead where it is less than this many times as fast as the baseline, over a window");
    keys.count("worst", {0, most_worst}, at(&ReplayOptions::worst), "slowest steps of each plan that are explained",
               {.unit = "steps"});
    return keys;
  }();
  return made;
}

}  // namespace

const std::vector<KeyText>& replay_keys() {
  return replay_table().texts();
}

ReplayOptions read_replay(const Value& replay, Diagnostics& diagnostics) {
  ReplayOptions options;
  (void)replay_table().read(replay, options, diagnostics);
  return options;
}

namespace {

constexpr double most_kept = 1000;
constexpr std::array<std::string_view, 5> tunable = {"mesh.", "training.", "cluster.", "kernels.", "memory."};

bool is_tunable(std::string_view path) {
  return path == "plans" || std::any_of(tunable.begin(), tunable.end(),
                                        [&](std::string_view section) { return path.starts_with(section); });
}

void read_space(const Value& space, TuneOptions& options, Diagnostics& diagnostics) {
  if (!space.is_map()) {
    diagnostics.error(space.position, fmt::format("the space must be a map, found {}", kind_name(space.kind)),
                      "write mesh.tp: [1, 2, 4]");
    return;
  }
  for (const auto& [path, position, values] : space.entries) {
    if (!is_tunable(path)) {
      diagnostics.error(
          position, fmt::format("'{}' cannot be tuned", path),
          "candidates do the same work: a space has plans and paths below mesh, training, cluster, kernels and "
          "memory");
    } else if (!values.is_sequence() || values.items.empty()) {
      diagnostics.error(values.position, fmt::format("the values of '{}' must be a list that is not empty", path),
                        "write [1, 2, 4]");
    } else {
      options.space.push_back({path, values.items});
    }
  }
}

// "2.10 USD/GPU-hour"
std::optional<Price> price_of(std::string_view text) {
  Price price;
  const auto [end, error] = read_real_number(text.data(), text.data() + text.size(), price.amount);
  if (error != std::errc{} || !(price.amount > 0 && price.amount <= 1e9)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  constexpr std::string_view suffix = "/GPU-hour";
  if (unit.size() != 3 + suffix.size() || !unit.ends_with(suffix)) return std::nullopt;
  price.currency = unit.substr(0, 3);
  const bool letters =
      std::all_of(price.currency.begin(), price.currency.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  return letters ? std::optional(price) : std::nullopt;
}

void read_price(const Value& value, TuneOptions& options, Diagnostics& diagnostics) {
  options.price = price_of(value.text);
  if (options.price) return;
  diagnostics.error(value.position,
                    fmt::format("the price \"{}\" is not a positive amount of money a GPU-hour", value.text),
                    "write price: 2.10 USD/GPU-hour");
}

const KeyTable<TuneOptions>& tune_table() {
  static const auto made = [] {
    KeyTable<TuneOptions> keys("the tuning");
    keys.add({"space",
              dictionary_shape(list_shape(shape_of(KeyShape::Kind::anything))),
              "",
              "values by path below `mesh`, `training`, `cluster`, `kernels` and `memory`; and `plans`",
              {.otherwise = "a default space", .see = "tune"}},
             read_space);
    keys.word("objective", "objective", {{"time", TuneObjective::time}, {"cost", TuneObjective::cost}},
              at(&TuneOptions::objective), "the shortest step, or the fewest GPU-hours a step");
    KeyShape price = shape_of(KeyShape::Kind::text);
    price.unit = "an amount of money a GPU-hour";
    keys.add({"price", price, "", "what an hour of one GPU costs: `2.10 USD/GPU-hour`", {.otherwise = "none"}},
             read_price);
    keys.count("keep", {1, most_kept}, at(&TuneOptions::keep), "candidates that are compared over all steps",
               {.unit = "candidates"});
    return keys;
  }();
  return made;
}

}  // namespace

const std::vector<KeyText>& tune_keys() {
  return tune_table().texts();
}

TuneOptions read_tune(const Value& tune, Diagnostics& diagnostics) {
  TuneOptions options;
  (void)tune_table().read(tune, options, diagnostics);
  return options;
}

}  // namespace hdpsim
