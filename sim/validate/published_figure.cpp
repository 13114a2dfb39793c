#include "sim/validate/published_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/document/reader.h"

namespace hdpsim {
namespace {

struct QuantityText {
  std::string_view name;
  std::string_view unit;
  bool is_rate = false;
};

/// By Quantity.
constexpr auto quantities = std::to_array<QuantityText>({{"step_time_s", "s"},
                                                         {"tokens_per_s_per_gpu", "tokens/s", true},
                                                         {"memory_gb", "GB"},
                                                         {"speedup", "x"},
                                                         {"tflops_per_gpu", "TFLOP/s", true},
                                                         {"mfu", "share", true},
                                                         {"memory_allocated_gb", "GB"},
                                                         {"memory_reserved_gb", "GB"},
                                                         {"loader_memory_saving", "x"}});

const QuantityText& text_of(Quantity quantity) {
  return quantities.at(static_cast<std::size_t>(quantity));
}

// All units of times end in s, all of memory in B, and no number does.
bool ends_in(const Value& cell, char letter) {
  return !cell.text.empty() && cell.text.back() == letter;
}

std::optional<double> number_of(Quantity quantity, const Value& cell, Diagnostics& diagnostics) {
  constexpr double bytes_per_gb = 1e9;
  if (quantity == Quantity::step_time && ends_in(cell, 's')) {
    const auto time = read<Duration>(cell, diagnostics);
    return time ? std::optional(time->seconds()) : std::nullopt;
  }
  if (quantity_unit(quantity) == "GB" && ends_in(cell, 'B')) {
    const auto bytes = read<Bytes>(cell, diagnostics);
    return bytes ? std::optional(static_cast<double>(bytes->count()) / bytes_per_gb) : std::nullopt;
  }
  return read<double>(cell, diagnostics);
}

}  // namespace

const std::vector<std::string>& quantity_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    all.reserve(std::size(quantities));
    for (const QuantityText& each : quantities) all.emplace_back(each.name);
    return all;
  }();
  return names;
}

std::optional<Quantity> quantity_of(std::string_view column) {
  const std::string_view name = column.substr(0, column.find(' '));
  const auto found =
      std::find_if(quantities.begin(), quantities.end(), [&](const QuantityText& each) { return each.name == name; });
  if (found == quantities.end()) return std::nullopt;
  return static_cast<Quantity>(found - quantities.begin());
}

std::string quantity_name(Quantity quantity) {
  return std::string(text_of(quantity).name);
}

std::string quantity_unit(Quantity quantity) {
  return std::string(text_of(quantity).unit);
}

bool is_rate(Quantity quantity) {
  return text_of(quantity).is_rate;
}

std::optional<double> read_figure(Quantity quantity, std::string_view column, const Value& cell,
                                  Diagnostics& diagnostics) {
  constexpr Range figures{1e-9, 1e15};  // the ratio of two of them is finite
  const auto value = number_of(quantity, cell, diagnostics);
  if (!value) return std::nullopt;
  if (*value >= figures.least && *value <= figures.most) return value;
  diagnostics.error(cell.position,
                    fmt::format("'{}' {}", column, *value > figures.most ? "is too large" : "must be above 0"),
                    fmt::format("between {:g} and {:g}", figures.least, figures.most));
  return std::nullopt;
}

}  // namespace hdpsim
