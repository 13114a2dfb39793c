#include "sim/profile/impl/exact_text.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>

#include "sim/base/check.h"
#include "sim/base/quantity_text.h"

namespace hdpsim {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};

/// The first unit in which the value is at least one and whose shortest decimal reads back as `count`.
template <class Reads>
std::string first_exact(double count, std::initializer_list<Unit> units, Reads reads_back) {
  for (const Unit& unit : units) {
    std::string text = fmt::format("{} {}", count / unit.scale, unit.name);
    if ((std::abs(count) >= unit.scale || unit.scale == 1) && reads_back(text)) return text;
  }
  return {};
}

}  // namespace

std::string exact_text(Duration duration) {
  const auto reads_back = [&](const std::string& text) { return parse_duration(text).value == duration; };
  const std::string text = first_exact(static_cast<double>(duration.picoseconds()),
                                       {{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}}, reads_back);
  return text.empty() ? fmt::format("{} ps", duration.picoseconds()) : text;
}

std::string exact_text(Bytes bytes) {
  constexpr std::int64_t gibi = std::int64_t{1} << 30;
  if (bytes.count() % gibi == 0) return fmt::format("{} GiB", bytes.count() / gibi);
  const auto reads_back = [&](const std::string& text) { return parse_bytes(text).value == bytes; };
  const std::string text = first_exact(static_cast<double>(bytes.count()), {{"GB", 1e9}, {"MB", 1e6}}, reads_back);
  return text.empty() ? fmt::format("{} B", bytes.count()) : text;
}

std::string exact_text(Bandwidth bandwidth) {
  const auto reads_back = [&](const std::string& text) { return parse_bandwidth(text).value == bandwidth; };
  const std::string text =
      first_exact(static_cast<double>(bandwidth.bytes_per_second()), {{"GB/s", 1e9}, {"MB/s", 1e6}}, reads_back);
  return text.empty() ? fmt::format("{} B/s", bandwidth.bytes_per_second()) : text;
}

std::string exact_text(FlopRate rate) {
  // A double divided by a power of ten is rounded: in the unit in which a file stated the rate, one of the quotient's
  // neighbours reads back exactly.
  for (const Unit& unit : {Unit{"TFLOP/s", 1e12}, Unit{"GFLOP/s", 1e9}, Unit{"PFLOP/s", 1e15}}) {
    const double quotient = rate.per_second() / unit.scale;
    for (const double number : {quotient, std::nextafter(quotient, INFINITY), std::nextafter(quotient, -INFINITY)}) {
      std::string text = fmt::format("{} {}", number, unit.name);
      if (parse_flop_rate(text).value == rate) return text;
    }
  }
  HDPSIM_CHECK(false, "{} FLOP/s cannot be written exactly", rate.per_second());
}

}  // namespace hdpsim
