#include "sim/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/printable.h"
#include "sim/document/reader.h"
#include "sim/study/framework.h"
#include "sim/study/override.h"
#include "sim/study/point_maker.h"
#include "sim/study/problems.h"
#include "sim/study/study_keys.h"
#include "sim/study/study_paths.h"
#include "sim/study/study_plans.h"
#include "sim/study/sweep.h"

namespace hdpsim {
namespace {

// `static`, or `{static: tuned}`.
void read_compare_to(const Value& value, Study& study, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const StudyPlan& plan : study.plans) names.push_back(plan.name);
  if (value.is_map() && value.entries.size() != 1) {
    diagnostics.error(value.position, "speed-ups are over one plan", "write compare_to: {static: tuned}");
    return;
  }
  const Value name = value.is_map() ? Value::scalar(value.entries[0].key, value.entries[0].position) : value;
  if (read_choice(name, "plan", names, diagnostics)) study.compare_to = name.text;
  if (value.is_map()) {
    study.tunes_baseline =
        read_choice(value.entries[0].value, "mesh of a baseline", {"tuned"}, diagnostics).has_value();
  }
  const bool is_given = std::any_of(study.plans.begin(), study.plans.end(), [&](const StudyPlan& plan) {
    return plan.name == study.compare_to && names_plan_files(plan.entry);
  });
  if (study.tunes_baseline && is_given) {
    diagnostics.error(value.position, fmt::format("the plans of '{}' are made for the study's mesh", *study.compare_to),
                      fmt::format("write compare_to: {}", *study.compare_to));
  }
}

void read_whole(const Value& root, Study& study, Diagnostics& diagnostics) {
  MapReader reader(root, "the study", diagnostics);  // its other keys belong to the points
  study.name = printable(reader.required<std::string>("name").value_or(""));
  if (const Value* plans = reader.require("plans")) study.plans = read_study_plans(*plans, diagnostics);
  if (const Value* replay = reader.find("replay")) study.replay = read_replay(*replay, diagnostics);
  if (const Value* production = reader.find("production")) {
    study.production = read_production(*production, diagnostics);
  }
  if (const Value* tune = reader.find("tune")) study.tune = read_tune(*tune, diagnostics);
  if (const Value* compare_to = reader.find("compare_to")) read_compare_to(*compare_to, study, diagnostics);
}

// A key that no section has is told once and left out: points, which hold the whole study each, need not carry it.
void drop_unknown_keys(Value& root, Diagnostics& diagnostics) {
  MapReader reader(root, "the study", diagnostics);
  for (const StudySection& section : study_sections()) (void)reader.find(section.text.name);
  reader.finish();
  std::erase_if(root.entries, [](const Value::Entry& entry) {
    return std::none_of(study_sections().begin(), study_sections().end(),
                        [&](const StudySection& section) { return section.text.name == entry.key; });
  });
}

// The points are known by now, so that ranks and steps can be checked against them.
void read_output_of(const Value& root, Study& study, Problems& problems) {
  const Value* output = root.find("output");
  if (output == nullptr) return;
  OutputLimits limits;
  for (const StudyPoint& point : study.points) {
    limits.ranks = std::min(limits.ranks, point.spec.mesh.hdp);
    limits.steps = std::min(limits.steps, point.spec.steps);
  }
  Diagnostics found;
  study.output = read_output(*output, limits, found);
  problems.add(found, output->position);
}

bool sweeps_over_clusters(const Value& study) {
  const Value* sweep = study.find("sweep");
  if (sweep == nullptr) return false;
  const auto names_cluster = [](const Value& map) {
    return std::any_of(map.entries.begin(), map.entries.end(),
                       [](const Value::Entry& entry) { return entry.key.starts_with("cluster"); });
  };
  return names_cluster(*sweep) || std::any_of(sweep->items.begin(), sweep->items.end(), [&](const Value& point) {
           const Value* set = point.find("set");
           return set != nullptr && names_cluster(*set);
         });
}

// The study independent of other files: the cluster in full (unless a sweep replaces it), absolute paths and the names
// of plans, which may follow from paths.
Value resolved(Value study, const Catalog& catalog) {
  if (!sweeps_over_clusters(study)) {
    Value* cluster = study.find("cluster");
    *cluster = catalog.expanded_cluster(*cluster);
  }
  for (Value& entry : study.find("plans")->items) {
    if (names_plan_files(entry)) entry.set("name", Value::scalar(name_of_plan_files(entry), entry.position));
  }
  make_paths_absolute(study);
  return study;
}

// States the profile that was chosen by the cluster's device, unless points differ in it.
void state_profile(const std::vector<StudyPoint>& points, Value& resolved) {
  const Value* stated = resolved.find("profile");
  if ((stated != nullptr && !stated->is_null()) || points.empty()) return;
  const std::string& name = points.front().spec.profile->name;
  const bool is_same = std::all_of(points.begin(), points.end(),
                                   [&](const StudyPoint& point) { return point.spec.profile->name == name; });
  if (is_same) resolved.set("profile", Value::scalar(name, resolved.position));
}

/// By name, the texts of a study that are not files, for messages.
using Texts = std::map<std::string, std::string>;

Study study_of(Value root, const Texts& texts, Catalog& catalog, Diagnostics diagnostics, bool advises) {
  Study study;
  study.moved = move_keys(root, diagnostics);
  drop_unknown_keys(root, diagnostics);
  read_whole(root, study, diagnostics);
  fill_in_framework(root, catalog.frameworks(), diagnostics);
  const Value complete = with_defaults(std::move(root));
  std::vector<SweepPoint> sweep = expand_sweep(complete, diagnostics);
  if (sweep.empty()) sweep.push_back({{}, complete});  // to report what else is wrong

  Problems problems(diagnostics);
  add_points(std::move(sweep), study, catalog, problems, advises);
  read_output_of(complete, study, problems);
  problems.throw_if_any(texts);
  study.resolved = resolved(complete, catalog);
  state_profile(study.points, study.resolved);
  return study;
}

}  // namespace

WrittenStudy::WrittenStudy(Value root, Diagnostics problems, Texts texts)
    : root_(std::move(root)), problems_(std::move(problems)), texts_(std::move(texts)) {
  if (root_.is_null()) problems_.throw_if_any();
}

Study WrittenStudy::resolved(const std::vector<std::string>& overrides, Catalog& catalog,
                             const std::vector<std::string>& without) const {
  Value root = root_;
  Diagnostics found = problems_;
  std::vector<MovedKey> moved = move_keys(root, found);
  apply_overrides(root, overrides, found);
  apply_without(root, without, found);
  Texts texts = texts_;
  texts.emplace(override_source, override_text(overrides));
  texts.emplace(without_source, override_text(without));
  Study study = study_of(std::move(root), texts, catalog, std::move(found), true);
  study.moved.insert(study.moved.begin(), moved.begin(), moved.end());
  return study;
}

Study load_study(const std::string& path, const std::vector<std::string>& overrides, Catalog& catalog,
                 const std::vector<std::string>& without) {
  Diagnostics diagnostics;
  Value root = load_document(path, diagnostics);
  return WrittenStudy(std::move(root), std::move(diagnostics)).resolved(overrides, catalog, without);
}

Study parse_study(const std::string& name, const std::string& text, const std::vector<std::string>& overrides,
                  Catalog& catalog, const std::vector<std::string>& without) {
  Diagnostics diagnostics;
  Value root = parse_document(name, text, diagnostics);
  return WrittenStudy(std::move(root), std::move(diagnostics), {{name, text}}).resolved(overrides, catalog, without);
}

Study read_study(Value root, Catalog& catalog) {
  return study_of(std::move(root), {}, catalog, {}, false);
}

std::size_t chosen_plan(const Study& study, const std::string& name) {
  std::vector<std::string> names;
  for (const StudyPlan& plan : study.plans) names.push_back(plan.name);
  if (name.empty() && names.size() == 1) return 0;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  if (name.empty()) throw InputError("the study has several plans: choose one with --plan", suggestion("", names));
  throw InputError(fmt::format("the study has no plan '{}'", name), suggestion(name, names));
}

const StudyPoint& chosen_point(const Study& study, std::int64_t point) {
  if (point >= 0 && point < std::ssize(study.points)) return study.points[static_cast<std::size_t>(point)];
  throw InputError(fmt::format("there is no point {}: the study has {}, counted from 0", point, study.points.size()));
}

}  // namespace hdpsim
