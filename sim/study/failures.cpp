#include "sim/study/failures.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

using FailureKeys = KeyTable<FailureModel>;

constexpr double least_s = 1e-6;
constexpr double most_years = 1000;
constexpr double year_s = 365 * 86400.0;

// A time above zero (or zero, if that is allowed); otherwise empty, with the problem reported.
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

// A key that may be zero is zero by default.
template <class Member>
void add_time(FailureKeys& keys, const std::string& name, bool may_be_zero, Member member, std::string sentence,
              KeyNotes notes) {
  KeyShape shape = shape_of(KeyShape::Kind::text);
  shape.unit = "a time";
  shape.limits = fmt::format("from {} to {} years", may_be_zero ? "0 s" : "1 us", most_years);
  keys.add({name, shape, may_be_zero ? "0 s" : "", std::move(sentence), notes},
           [=](const Value& read, FailureModel& model, Diagnostics& diagnostics) {
             if (const auto seconds = read_time(read, name, may_be_zero, diagnostics)) member(model) = *seconds;
           });
}

void read_interval(const Value& value, FailureModel& model, Diagnostics& diagnostics) {
  if (value.text != "auto") model.interval_s = read_time(value, "interval", false, diagnostics);
}

const FailureKeys& failure_table() {
  static const auto made = [] {
    FailureKeys failures("the failures");
    add_time(failures, "node_mtbf", false, at(&FailureModel::node_mtbf_s), "mean time between failures of a node",
             {.required = true});
    add_time(failures, "checkpoint", false, at(&FailureModel::checkpoint_s), "how long writing a checkpoint takes",
             {.required = true});
    add_time(failures, "restart", true, at(&FailureModel::restart_s), "from a failure until steps run again", {});
    KeyShape time = shape_of(KeyShape::Kind::text);
    time.unit = "a time";
    failures.add({"interval",
                  either_shape({word_shape({"auto"}), time}),
                  "auto",
                  "between two checkpoints; `auto`: Daly's optimum",
                  {}},
                 read_interval);
    failures.count("seed", {0, 9e15}, at(&FailureModel::seed), "the seed of the failures that are drawn");
    return failures;
  }();
  return made;
}

}  // namespace

const std::vector<KeyText>& failure_keys() {
  return failure_table().texts();
}

FailureModel read_failures(const Value& value, Diagnostics& diagnostics) {
  FailureModel model;
  (void)failure_table().read(value, model, diagnostics);
  return model;
}

}  // namespace hdpsim
