#include "sim/base/quantity_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <span>

#include "sim/base/real_number.h"
#include "sim/base/text.h"

namespace hdpsim {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr std::array<Unit, 8> count_units{{{"Ki", 1024.0},
                                           {"Mi", 1048576.0},
                                           {"Gi", 1073741824.0},
                                           {"Ti", 1099511627776.0},
                                           {"k", 1e3},
                                           {"M", 1e6},
                                           {"G", 1e9},
                                           {"T", 1e12}}};
constexpr std::array<Unit, 8> time_units{
    {{"ps", 1.0}, {"ns", 1e3}, {"us", 1e6}, {"µs", 1e6}, {"ms", 1e9}, {"s", 1e12}, {"min", 60e12}, {"h", 3600e12}}};
constexpr std::array<Unit, 9> long_time_units{{{"us", 1e-6},
                                               {"ms", 1e-3},
                                               {"s", 1.0},
                                               {"min", 60.0},
                                               {"h", 3600.0},
                                               {"d", 86400.0},
                                               {"days", 86400.0},
                                               {"year", 365 * 86400.0},
                                               {"years", 365 * 86400.0}}};
constexpr std::array<Unit, 9> byte_units{{{"B", 1.0},
                                          {"kB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"TB", 1e12},
                                          {"KiB", 1024.0},
                                          {"MiB", 1048576.0},
                                          {"GiB", 1073741824.0},
                                          {"TiB", 1099511627776.0}}};
constexpr std::array<Unit, 7> bandwidth_units{{{"B/s", 1.0},
                                               {"MB/s", 1e6},
                                               {"GB/s", 1e9},
                                               {"TB/s", 1e12},
                                               {"Mbit/s", 0.125e6},
                                               {"Gbit/s", 0.125e9},
                                               {"Tbit/s", 0.125e12}}};
constexpr std::array<Unit, 3> flop_units{{{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

struct NumberAndUnit {
  double number = 0;
  std::string_view unit;
};

std::optional<NumberAndUnit> split(std::string_view text) {
  text = trimmed(text);
  NumberAndUnit result;
  const auto [end, error] = read_real_number(text.data(), text.data() + text.size(), result.number);
  if (error != std::errc{} || !std::isfinite(result.number)) return std::nullopt;
  result.unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  return result;
}

struct Kind {
  std::string_view noun;     // "a bandwidth"
  std::string_view example;  // "450 GB/s (bytes) or 450 Gbit/s (bits)", with {} for the number
  std::span<const Unit> units;
};

std::string example_for(const Kind& kind, std::string_view number) {
  return fmt::format(fmt::runtime(kind.example), number);
}

Parsed<double> parse_scaled(std::string_view text, const Kind& kind) {
  const auto parts = split(text);
  if (!parts) {
    return {{}, fmt::format("\"{}\" is not {}", text, kind.noun), fmt::format("write {}", example_for(kind, "5"))};
  }
  const std::string_view number = trimmed(trimmed(text).substr(0, trimmed(text).size() - parts->unit.size()));
  if (parts->unit.empty()) {
    return {{}, fmt::format("\"{}\" has no unit", text), fmt::format("did you mean {}?", example_for(kind, number))};
  }
  for (const Unit& unit : kind.units) {
    if (unit.name == parts->unit) return {parts->number * unit.scale, {}, {}};
  }
  return {{},
          fmt::format("\"{}\" has the unknown unit '{}'", text, parts->unit),
          fmt::format("write {}", example_for(kind, number))};
}

constexpr double int64_limit = 9.2e18;

template <class T, class Make>
Parsed<T> converted(std::string_view text, const Kind& kind, Make make) {
  const Parsed<double> scaled = parse_scaled(text, kind);
  if (!scaled.value) return {{}, scaled.error, scaled.help};
  if (std::abs(*scaled.value) > int64_limit) return {{}, fmt::format("\"{}\" is too large", text), {}};
  return {make(*scaled.value), {}, {}};
}

// From here on a value rounds to 1.00 of a unit: 999.6 ns is 1.00 us, not 1000 ns.
constexpr double least_of_unit = 0.9995;

std::string with_three_digits(double value, std::string_view unit) {
  const double size = std::abs(value);
  const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, unit);
}

// Writes the value in the largest unit that leaves at least 1, among the names that the readers know.
std::string with_unit(double value, std::span<const Unit> units, std::initializer_list<std::string_view> names) {
  const Unit* chosen = nullptr;
  for (const std::string_view name : names) {
    const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& known) { return known.name == name; });
    chosen = &*unit;
    if (std::abs(value) >= unit->scale) break;
  }
  return fmt::format("{:g} {}", value / chosen->scale, chosen->name);
}

}  // namespace

void append_formatted(std::string& text, fmt::string_view format, fmt::format_args arguments) {
  fmt::vformat_to(std::back_inserter(text), format, arguments);
}

Parsed<std::int64_t> parse_count(std::string_view text) {
  const std::string help = "write a whole number such as 4096, 256Ki (x 1024) or 32k (x 1000)";
  const std::string_view body = trimmed(text);
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), whole);
  if (error == std::errc{} && end == body.data() + body.size()) return {whole, {}, {}};
  const auto parts = split(text);
  if (!parts) return {{}, fmt::format("\"{}\" is not a whole number", text), help};
  if (parts->unit.empty() && parts->number == std::floor(parts->number) && std::abs(parts->number) < 9e15) {
    return {static_cast<std::int64_t>(parts->number), {}, {}};
  }
  if (parts->unit == "K") {  // 1,000 to some, 1,024 to others
    const std::string_view number = trimmed(trimmed(text).substr(0, trimmed(text).size() - 1));
    return {{},
            fmt::format("\"{}\" can be read in two ways", text),
            fmt::format("write {0}Ki (x 1024) or {0}k (x 1000)", number)};
  }
  for (const Unit& unit : count_units) {
    const double scaled = parts->number * unit.scale;
    const double whole_number = std::round(scaled);
    // 1.005k is 1004.9999999999999: decimals and the product each round by half a unit in the last place.
    const bool is_whole = std::abs(scaled - whole_number) <= std::min(4e-16 * std::abs(scaled), 0.1);
    if (unit.name == parts->unit && is_whole && std::abs(scaled) < int64_limit) {
      return {static_cast<std::int64_t>(whole_number), {}, {}};
    }
  }
  return {{}, fmt::format("\"{}\" is not a whole number within 64 bits", text), help};
}

Parsed<Duration> parse_duration(std::string_view text) {
  return converted<Duration>(text, {"a time", "{0} us, {0} ms or {0} s", time_units},
                             [](double ps) { return Duration::picoseconds(std::llround(ps)); });
}

Parsed<double> parse_seconds(std::string_view text) {
  return parse_scaled(text, {"a time", "{0} s, {0} h, {0} d or {0} years", long_time_units});
}

Parsed<Bytes> parse_bytes(std::string_view text) {
  return converted<Bytes>(text, {"an amount of data", "{0} GB (10^9 bytes) or {0} GiB (2^30 bytes)", byte_units},
                          [](double bytes) { return Bytes(std::llround(bytes)); });
}

Parsed<Bandwidth> parse_bandwidth(std::string_view text) {
  return converted<Bandwidth>(text, {"a bandwidth", "{0} GB/s (bytes) or {0} Gbit/s (bits)", bandwidth_units},
                              [](double rate) { return Bandwidth::bytes_per_second(std::llround(rate)); });
}

Parsed<FlopRate> parse_flop_rate(std::string_view text) {
  return converted<FlopRate>(text, {"an arithmetic speed", "{0} TFLOP/s", flop_units},
                             [](double rate) { return FlopRate(rate); });
}

std::string count_text(std::int64_t count) {
  for (const auto& [name, shift] : {std::pair{"Gi", 30}, {"Mi", 20}, {"Ki", 10}}) {
    const std::int64_t unit = std::int64_t{1} << shift;
    if (count != 0 && count % unit == 0) return fmt::format("{}{}", count / unit, name);
  }
  return fmt::format("{}", count);
}

std::string duration_text(Duration duration) {
  const auto ps = static_cast<double>(duration.picoseconds());
  for (const auto& [name, scale] : {std::pair{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}}) {
    if (std::abs(ps) >= least_of_unit * scale) return with_three_digits(ps / scale, name);
  }
  return fmt::format("{} ps", duration.picoseconds());
}

std::string seconds_text(double seconds) {
  return duration_text(Duration::seconds(seconds));
}

std::string bytes_text(Bytes bytes) {
  const auto count = static_cast<double>(bytes.count());
  for (const auto& [name, scale] : {std::pair{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}) {
    if (std::abs(count) >= least_of_unit * scale) return with_three_digits(count / scale, name);
  }
  return fmt::format("{} B", bytes.count());
}

std::string limit_text(Duration duration) {
  if (duration == Duration{}) return "0 s";
  return with_unit(static_cast<double>(duration.picoseconds()), time_units, {"s", "ms", "us", "ns", "ps"});
}

std::string limit_text(Bytes bytes) {
  return with_unit(static_cast<double>(bytes.count()), byte_units, {"TB", "GB", "MB", "kB", "B"});
}

std::string limit_text(Bandwidth bandwidth) {
  return with_unit(static_cast<double>(bandwidth.bytes_per_second()), bandwidth_units, {"TB/s", "GB/s", "MB/s", "B/s"});
}

std::string limit_text(FlopRate rate) {
  return with_unit(rate.per_second(), flop_units, {"PFLOP/s", "TFLOP/s", "GFLOP/s"});
}

std::string short_number(double number) {
  constexpr std::array<std::string_view, 5> suffixes = {"", "k", "M", "G", "T"};
  std::size_t power = 0;
  while (number >= 999.5 && power + 1 < suffixes.size()) {
    number /= 1000;
    ++power;
  }
  const int decimals = number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", number, decimals, suffixes[power]);
}

}  // namespace hdpsim
