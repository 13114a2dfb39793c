#include "sim/study/tune_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

constexpr double most_kept = 1000;
constexpr std::array<std::string_view, 4> tunable = {"mesh.", "cluster.", "kernels.", "memory."};

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
      diagnostics.error(position, fmt::format("'{}' cannot be tuned", path),
                        "candidates do the same work: a space has plans and paths below mesh, cluster, kernels and "
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
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), price.amount);
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
              "values by path below `mesh`, `cluster`, `kernels` and `memory`; and `plans`",
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
