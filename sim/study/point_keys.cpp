#include "sim/study/point_keys.h"

#include "sim/study/resolution.h"

namespace hdpsim {
namespace {

// A table of one key, which is in the outermost map of the study.
const KeyTable<PointSpec>& grains() {
  static const auto made = [] {
    KeyTable<PointSpec> keys("the study");
    keys.word("grain", "grain", {{"fluid", Grain::fluid}, {"exact", Grain::exact}, {"closed_form", Grain::closed_form}},
              at(&PointSpec::grain), "how fine the simulation is; with `closed_form` nobody shares a link",
              {.written = always_written, .mechanism = "contention", .off = "closed_form"});
    return keys;
  }();
  return made;
}

void read_knowledge(const Value& value, PlannerKnowledge& knows, Diagnostics& diagnostics) {
  if (!value.is_sequence()) {
    diagnostics.error(value.position, "what planners know must be a list", "write knows: [speeds, faults]");
  }
  for (const Value& item : value.items) {
    const auto choice = read_choice(item, "thing to know", {"speeds", "faults"}, diagnostics);
    if (choice == 0) knows.speeds = true;
    if (choice == 1) knows.faults = true;
  }
}

const KeyTable<PlannerKnowledge>& planners() {
  static const auto made = [] {
    KeyTable<PlannerKnowledge> keys("the planner");
    keys.add({"knows",
              list_shape(word_shape({"speeds", "faults"})),
              "",
              "what policies know of devices that differ: the cluster's speeds, the faults",
              {.otherwise = "nothing", .see = "devices-that-differ"}},
             read_knowledge);
    return keys;
  }();
  return made;
}

}  // namespace

KeyText grain_key() {
  return grains().texts().front();
}

void read_grain(const Value& value, PointSpec& point, Diagnostics& diagnostics) {
  grains().read_key("grain", value, point, diagnostics);
}

const std::vector<KeyText>& planner_keys() {
  return planners().texts();
}

void read_planner(const Value& value, PlannerKnowledge& knows, Diagnostics& diagnostics) {
  (void)planners().read(value, knows, diagnostics);
}

}  // namespace hdpsim
