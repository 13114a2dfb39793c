#include "sim/study/failures.h"

#include "sim/study/long_times.h"

namespace hdpsim {
namespace {

using FailureKeys = KeyTable<FailureModel>;

void read_interval(const Value& value, FailureModel& model, Diagnostics& diagnostics) {
  if (value.text != "auto") model.interval_s = read_long_time(value, "interval", false, diagnostics);
}

const FailureKeys& failure_table() {
  static const auto made = [] {
    FailureKeys failures("the failures");
    add_long_time(failures, "node_mtbf", false, at(&FailureModel::node_mtbf_s), "mean time between failures of a node",
                  {.required = true});
    add_long_time(failures, "checkpoint", false, at(&FailureModel::checkpoint_s), "how long writing a checkpoint takes",
                  {.required = true});
    add_long_time(failures, "restart", true, at(&FailureModel::restart_s), "from a failure until steps run again", {});
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
