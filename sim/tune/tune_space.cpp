#include "sim/tune/tune_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "sim/base/check.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/values.h"
#include "sim/model/layers.h"
#include "sim/plan/policy.h"
#include "sim/study/override.h"
#include "sim/study/study_plans.h"

namespace hdpsim {
namespace {

constexpr std::int64_t deepest_usual_pipeline = 16;

/// Paths and values that are chosen together.
using Choice = std::vector<RunInfo::Coordinate>;

struct Dimension {
  std::vector<Choice> choices;
  bool of_pipelines = false;  ///< Has no effect without a pipeline.
};

Dimension dimension_of(const std::string& path, const std::vector<std::string>& values) {
  Dimension dimension;
  for (const std::string& value : values) dimension.choices.push_back({{path, Value::scalar(value)}});
  return dimension;
}

bool only_pipelines_know(std::string_view path) {
  return path == "mesh.schedule" || path == "mesh.virtual_stages" || path == "mesh.placement";
}

std::vector<std::string> tensor_degrees(const PointSpec& spec) {
  std::vector<CutPart> parts = cut_parts(spec.model, spec.mesh.ep == 1);
  parts.push_back({"devices of a node", spec.cluster.devices_per_node});
  std::vector<std::string> degrees;
  for (std::int64_t tp = 1; tp <= spec.cluster.devices_per_node; ++tp) {
    const auto is_even = [&](const CutPart& part) { return part.count % tp == 0; };
    if (std::all_of(parts.begin(), parts.end(), is_even)) degrees.push_back(fmt::format("{}", tp));
  }
  return degrees;
}

std::vector<std::string> pipeline_degrees(std::int64_t layers, std::int64_t devices) {
  std::vector<std::string> degrees;
  for (std::int64_t pp = 1; pp <= std::min(layers, deepest_usual_pipeline); pp *= 2) {
    if (devices % pp == 0) degrees.push_back(fmt::format("{}", pp));
  }
  return degrees;
}

// The text of a value of the resolved mesh, which has all defaults.
std::string mesh_text(const Study& study, std::string_view key) {
  return study.resolved.find("mesh")->find(key)->text;
}

std::vector<std::string> with_own(const std::string& own, std::initializer_list<const char*> others) {
  std::vector<std::string> values = {own};
  for (const char* other : others) {
    if (other != own) values.emplace_back(other);
  }
  return values;
}

Value modules(std::initializer_list<LayerModule> chosen) {
  Value list = Value::sequence({});
  for (const LayerModule module : chosen) {
    list.items.push_back(Value::scalar(std::string(layer_module_names.at(static_cast<std::size_t>(module)))));
  }
  return list;
}

// The study's own recomputation, the one that is cheap, and full.
Dimension recomputations(const Study& study) {
  Dimension dimension;
  const Value& own = *study.resolved.find("training")->find("recompute");
  dimension.choices.push_back({{"training.recompute", own}});
  for (const Value& other : {modules({LayerModule::norm, LayerModule::activation}), Value::scalar("full")}) {
    if (line_of(other) != line_of(own)) dimension.choices.push_back({{"training.recompute", other}});
  }
  return dimension;
}

std::vector<std::string> capacities(const Study& study) {
  std::vector<std::string> values = with_own(mesh_text(study, "capacity"), {"8Ki", "16Ki", "32Ki", "auto"});
  const std::int64_t context = study.points[0].spec.batch.context;
  const auto is_longer = [&](const std::string& text) { return parse_count(text).value.value_or(0) > context; };
  values.erase(std::remove_if(values.begin() + 1, values.end(), is_longer), values.end());
  return values;
}

const std::string& policy_of(const Value& plan) {
  return plan.is_map() ? plan.entries.front().key : plan.text;
}

bool leaves_open(const Value& plan, std::string_view option) {
  return has_option(policy_of(plan), option) && (!plan.is_map() || plan.entries.front().value.find(option) == nullptr);
}

Choice plan_choice(const Value& plan) {
  Value plans = Value::sequence(plan.position);
  plans.items.push_back(plan);
  return {{"plans", plans}};
}

Dimension plan_dimension(const Study& study) {
  Dimension dimension;
  for (const StudyPlan& plan : study.plans) {
    const auto with = [&](const Value& entry, const char* option, const char* value) {
      return with_option(entry, option, Value::scalar(value, entry.position));
    };
    // A search takes ten times as long as the algorithm, and hardly changes which mesh is best.
    const bool searches = policy_of(plan.entry) == "hdp-balance" && leaves_open(plan.entry, "search");
    const Value entry = searches ? with(plan.entry, "search", "none") : plan.entry;
    if (!leaves_open(entry, "offload")) {
      dimension.choices.push_back(plan_choice(entry));
      continue;
    }
    for (const char* offload : {"none", "auto"})
      dimension.choices.push_back(plan_choice(with(entry, "offload", offload)));
  }
  return dimension;
}

Dimension given_dimension(const TuneOptions::Dimension& given) {
  Dimension dimension;
  dimension.of_pipelines = only_pipelines_know(given.path);
  for (const Value& value : given.values) {
    dimension.choices.push_back(given.path == "plans" ? plan_choice(value) : Choice{{given.path, value}});
  }
  return dimension;
}

std::vector<Dimension> dimensions_of(const Study& study) {
  std::set<std::string, std::less<>> given;
  std::vector<Dimension> dimensions;
  for (const auto& dimension : study.tune.space) {
    given.insert(dimension.path);
    dimensions.push_back(given_dimension(dimension));
  }
  const PointSpec& spec = study.points[0].spec;
  const auto add = [&](std::string_view path, Dimension dimension) {
    if (!given.contains(path)) dimensions.push_back(std::move(dimension));
  };
  add("mesh.tp", dimension_of("mesh.tp", tensor_degrees(spec)));
  add("mesh.pp", dimension_of("mesh.pp", pipeline_degrees(spec.model.layers, spec.cluster.devices)));
  add("mesh.capacity", dimension_of("mesh.capacity", capacities(study)));
  add("training.recompute", recomputations(study));
  add("plans", plan_dimension(study));
  return dimensions;
}

/// A number with one digit for each dimension, the last of which counts fastest.
class Odometer {
 public:
  explicit Odometer(const std::vector<Dimension>& dimensions) : dimensions_(dimensions), digits_(dimensions.size()) {}
  [[nodiscard]] std::size_t digit(std::size_t place) const { return digits_[place]; }
  bool advance() {
    for (std::size_t place = digits_.size(); place-- > 0;) {
      if (++digits_[place] < dimensions_[place].choices.size()) return true;
      digits_[place] = 0;
    }
    return false;
  }

 private:
  const std::vector<Dimension>& dimensions_;
  std::vector<std::size_t> digits_;
};

// What all candidates share: the study without its own comparison of plans and meshes.
Value common_study(const Value& root) {
  Value study = root;
  std::erase_if(study.entries, [](const Value::Entry& entry) {
    return entry.key == "tune" || entry.key == "replay" || entry.key == "compare_to" || entry.key == "output";
  });
  if (Value* mesh = study.find("mesh")) {
    std::erase_if(mesh->entries, [](const Value::Entry& entry) { return entry.key == "hdp"; });
  }
  return study;
}

// "tp 2" for mesh.tp, "hdp-balance {offload: auto}" for plans.
std::string choice_text(const RunInfo::Coordinate& choice) {
  if (choice.path != "plans") {
    const std::size_t dot = choice.path.rfind('.');
    return fmt::format("{} {}", choice.path.substr(dot + 1), line_of(choice.value));
  }
  const Value& plan = choice.value.items.front();
  if (!plan.is_map()) return line_of(plan);
  const std::string options = line_of(plan.entries.front().value);
  return options == "{}" ? policy_of(plan) : fmt::format("{} {}", policy_of(plan), options);
}

/// Makes candidates from choices.
class CandidateMaker {
 public:
  CandidateMaker(const std::vector<Dimension>& dimensions, const Value& root)
      : dimensions_(dimensions), common_(common_study(root)) {}

  // Empty for a candidate that differs from another only in values without effect.
  std::optional<Candidate> make(const Odometer& odometer) const {
    Candidate candidate{{}, {}, {}, common_};
    for (std::size_t place = 0; place < dimensions_.size(); ++place) {
      put(dimensions_[place].choices[odometer.digit(place)], candidate);
    }
    const Value* mesh = candidate.study.find("mesh");
    const Value* pp = mesh == nullptr ? nullptr : mesh->find("pp");
    const bool pipeline = pp != nullptr && pp->text != "1";
    std::vector<std::string> texts;
    for (std::size_t place = 0; place < dimensions_.size(); ++place) {
      const Dimension& dimension = dimensions_[place];
      if (dimension.of_pipelines && !pipeline) {
        if (odometer.digit(place) > 0) return std::nullopt;
        continue;
      }
      for (const auto& choice : dimension.choices[odometer.digit(place)]) describe(choice, dimension, candidate, texts);
    }
    candidate.text = joined(texts, ", ");
    candidate.plan = policy_of(candidate.study.find("plans")->items.front());
    if (!pipeline) remove_schedule(candidate.study);
    return candidate;
  }

 private:
  static void put(const Choice& choice, Candidate& candidate) {
    for (const auto& [path, value] : choice) {
      Diagnostics found;
      set_path(candidate.study, path, value, found);
      found.throw_if_any();
    }
  }

  static void describe(const RunInfo::Coordinate& choice, const Dimension& dimension, Candidate& candidate,
                       std::vector<std::string>& texts) {
    candidate.choices.push_back(choice);
    const bool one_chunk = choice.path == "mesh.virtual_stages" && choice.value.text == "1";
    if (!one_chunk && (dimension.choices.size() > 1 || choice.path == "plans")) texts.push_back(choice_text(choice));
  }

  static void remove_schedule(Value& study) {
    Value* mesh = study.find("mesh");
    if (mesh == nullptr) return;
    std::erase_if(mesh->entries,
                  [](const Value::Entry& entry) { return entry.key == "schedule" || entry.key == "virtual_stages"; });
  }

  const std::vector<Dimension>& dimensions_;
  Value common_;
};

// Plans of files are for one mesh, and candidates have others.
void refuse_plan_files(const Study& study) {
  Diagnostics found;
  const auto refuse = [&](const Value& plan) {
    if (!names_plan_files(plan)) return;
    found.error(plan.position, "plans of files are made for one mesh, and a tuning looks for another",
                "leave them out: --set 'plans=[static, hdp-balance]'");
  };
  for (const StudyPlan& plan : study.plans) refuse(plan.entry);
  for (const TuneOptions::Dimension& dimension : study.tune.space) {
    if (dimension.path == "plans") std::for_each(dimension.values.begin(), dimension.values.end(), refuse);
  }
  found.throw_if_any();
}

void refuse_too_many(const std::vector<Dimension>& dimensions, const Value& root) {
  double count = 1;
  for (const Dimension& dimension : dimensions) count *= static_cast<double>(dimension.choices.size());
  if (count <= static_cast<double>(most_candidates)) return;
  const Value* tune = root.find("tune");
  const auto largest = std::max_element(dimensions.begin(), dimensions.end(), [](const auto& a, const auto& b) {
    return a.choices.size() < b.choices.size();
  });
  throw InputError(tune != nullptr ? tune->position : root.position,
                   fmt::format("the space has {:.3g} candidates, at most {} are compared", count, most_candidates),
                   fmt::format("state below tune.space which values count: '{}' has {}",
                               largest->choices.front().front().path, largest->choices.size()));
}

}  // namespace

std::vector<Candidate> candidates_of(const Study& study, const Value& root) {
  if (const Value* sweep = root.find("sweep");
      sweep != nullptr && !sweep->is_null() && !(sweep->entries.empty() && sweep->items.empty())) {
    throw InputError(sweep->position, "a study with a sweep cannot be tuned",
                     "leave the sweep out with --set sweep={}: the space of a tuning is tune.space");
  }
  refuse_plan_files(study);
  const std::vector<Dimension> dimensions = dimensions_of(study);
  refuse_too_many(dimensions, root);
  const CandidateMaker maker(dimensions, root);
  std::vector<Candidate> candidates;
  Odometer odometer(dimensions);
  do {
    if (auto candidate = maker.make(odometer)) candidates.push_back(std::move(*candidate));
  } while (odometer.advance());
  return candidates;
}

}  // namespace hdpsim
