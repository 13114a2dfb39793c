#include "sim/study/failures.h"

#include <fmt/format.h>

#include "sim/base/quantity_text.h"
#include "sim/document/reader.h"

namespace hdpsim {
namespace {

constexpr double least_s = 1e-6;
constexpr double most_years = 1000;
constexpr double year_s = 365 * 86400.0;

// Nothing, with the problem reported, if it is no time above zero (or, where that is allowed, zero).
std::optional<double> read_time(const Value& value, std::string_view key, bool may_be_zero, Diagnostics& diagnostics) {
  const Parsed<double> seconds = parse_seconds(value.text);
  if (!value.is_scalar() || !seconds.value) {
    diagnostics.error(value.position, value.is_scalar() ? seconds.error : fmt::format("'{}' must be a time", key),
                      seconds.help);
    return std::nullopt;
  }
  const bool is_enough = *seconds.value >= least_s || (may_be_zero && *seconds.value == 0);
  if (is_enough && *seconds.value <= most_years * year_s) return seconds.value;
  diagnostics.error(value.position, fmt::format("'{}' is {}, it must be from {} to {} years", key, value.text,
                                                may_be_zero ? "0 s" : "1 us", most_years));
  return std::nullopt;
}

}  // namespace

FailureModel read_failures(const Value& value, Diagnostics& diagnostics) {
  MapReader map(value, "the failures", diagnostics);
  FailureModel model;
  if (const Value* mtbf = map.require("node_mtbf")) {
    model.node_mtbf_s = read_time(*mtbf, "node_mtbf", false, diagnostics).value_or(1);
  }
  if (const Value* checkpoint = map.require("checkpoint")) {
    model.checkpoint_s = read_time(*checkpoint, "checkpoint", false, diagnostics).value_or(1);
  }
  if (const Value* restart = map.find("restart")) {
    model.restart_s = read_time(*restart, "restart", true, diagnostics).value_or(0);
  }
  const Value* interval = map.find("interval");
  if (interval != nullptr && interval->text != "auto") {
    model.interval_s = read_time(*interval, "interval", false, diagnostics);
  }
  model.seed = static_cast<std::uint64_t>(map.optional_in<std::int64_t>("seed", {0, 9e15}).value_or(1));
  map.finish();
  return model;
}

}  // namespace hdpsim
