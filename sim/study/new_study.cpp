#include "sim/study/new_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/cluster/cluster_config.h"
#include "sim/model/model_config.h"
#include "sim/plan/policy.h"
#include "sim/profile/profile_file.h"
#include "sim/study/catalog.h"
#include "sim/study/commented_study.h"
#include "sim/study/study.h"
#include "sim/study/study_keys.h"
#include "sim/study/study_paths.h"
#include "sim/trace/trace_file.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

// What the shipped studies have: 32Mi tokens for 1,024 GPUs.
constexpr std::int64_t tokens_per_gpu = 32 << 10;
constexpr std::int64_t most_stages = 64;

constexpr std::array<NewStudyPartText, new_study_parts> part_texts = {{
    {"cluster", "The cluster: a shipped one, or a file"},
    {"gpus", "How many GPUs"},
    {"model", "The model: a shipped one, or a HuggingFace config.json"},
    {"lengths", "The lengths of your sequences: a file, or a shipped distribution"},
    {"context", "The longest sequence, in tokens"},
    {"tokens-per-step", "Tokens of one optimizer step: your global batch, on which the lead of plans depends"},
    {"steps", "How many steps are simulated"},
    {"plans", "The plans that are compared, separated by commas"},
    {"profile", "What the device takes: a shipped profile, or a file"},
}};

Value single(std::string_view key, Value value) {
  Value map = Value::map(value.position);
  map.set(key, std::move(value));
  return map;
}

// The key under which a section names a thing: a shipped one unless the text can only be a file.
std::string_view key_of(NewStudyPart part, const std::string& text) {
  switch (part) {
    case NewStudyPart::cluster:
      return looks_like_path(text) ? "file" : "preset";
    case NewStudyPart::model:
      return looks_like_path(text) || text.ends_with(".json") ? "hf_config" : "preset";
    case NewStudyPart::lengths:
      return text.find_first_of("./") != std::string::npos || is_there(text) ? "file" : "preset";
    default:
      return {};
  }
}

Value value_in(NewStudyPart part, const std::string& text, Diagnostics& diagnostics) {
  const std::string source(text_of(part).name);
  if (text.starts_with('{')) return parse_document(source, text, diagnostics);
  if (part == NewStudyPart::plans) {
    return parse_document(source, text.starts_with('[') ? text : fmt::format("[{}]", text), diagnostics);
  }
  diagnostics.add_source(source, text);
  Value value = Value::scalar(text, {source, 1, 1});
  const std::string_view key = key_of(part, text);
  return key.empty() ? value : single(key, std::move(value));
}

void check_count(std::string_view path, const Value& value, Diagnostics& diagnostics) {
  for (const StudyKey& each : all_study_keys()) {
    if (each.path != path) continue;
    (void)read_in<std::int64_t>(value, fmt::format("'{}'", each.key->name), *each.key->shape.range, diagnostics);
  }
}

void check_plans(const Value& plans, Diagnostics& diagnostics) {
  for (const Value& plan : plans.items) (void)read_policy(plan, diagnostics);
}

// The first plan that has its policy to itself; speed-ups are stated against it.
std::optional<std::string> baseline_of(const Value& plans) {
  std::vector<std::string> names;
  for (const Value& plan : plans.items) names.push_back(plan.is_map() ? plan.entries.front().key : plan.text);
  for (const std::string& name : names) {
    if (std::count(names.begin(), names.end(), name) == 1) return name;
  }
  return std::nullopt;
}

Value with_gpus(Value cluster, const Value& gpus) {
  if (!gpus.is_null()) cluster.set("gpus", gpus);
  return cluster;
}

/// The devices of one rank, and what they keep.
struct RankShape {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  bool recomputes = false;
};

// The shapes that a cluster and a model allow, in the order in which they cost more: tensor parallelism up to a node,
// pipelines, recomputation.
std::vector<RankShape> shapes_for(const ClusterSpec& cluster, const Transformer& model) {
  std::vector<RankShape> shapes;
  for (const bool recomputes : {false, true}) {
    for (std::int64_t pp = 1; pp <= std::min(most_stages, model.layers); pp *= 2) {
      for (std::int64_t tp = 1; tp <= cluster.devices_per_node; tp *= 2) {
        const bool divides = cluster.devices_per_node % tp == 0 && cluster.devices % (tp * pp) == 0;
        if (divides && model.heads % tp == 0) shapes.push_back({tp, pp, recomputes});
      }
    }
  }
  return shapes;
}

Value mesh_of(const RankShape& shape) {
  Value mesh = Value::map();
  mesh.set("tp", Value::scalar(fmt::format("{}", shape.tp)));
  if (shape.pp > 1) mesh.set("pp", Value::scalar(fmt::format("{}", shape.pp)));
  mesh.set("capacity", Value::scalar("auto"));
  return mesh;
}

std::string heading(const fs::path& file) {
  return fmt::format(
      "# Run it: hdpsim study {} --out {}\n# All keys: hdpsim keys; one of them: hdpsim keys mesh.tp\n\n",
      file.filename().string(), file.stem().string());
}

// A sweep over the context, commented out.
std::string idea(const Value& study) {
  const std::optional<std::int64_t> context = parse_count(study.find("data")->find("context")->text).value;
  if (!context || *context < 2) return "";
  Value values = Value::sequence();
  for (const std::int64_t each : {*context / 2, *context}) values.items.push_back(Value::scalar(count_text(each)));
  const std::string text = commented_study(single("sweep", single("data.context", std::move(values))));
  return fmt::format("\n{}# {}", text.substr(0, text.find("sweep:")), text.substr(text.find("sweep:")));
}

/// Reads the same study with one mesh after the other and keeps the first that has room for micro-batches of the usual
/// capacity, or else the one with the most room.
class MeshSearch {
 public:
  MeshSearch(fs::path file, Catalog& catalog, const std::map<std::string, std::string>& remarks)
      : file_(std::move(file)), catalog_(catalog), remarks_(remarks) {}

  /// True if there is no need to look any further.
  bool try_out(Value study, const RankShape& shape) {
    study.set("mesh", mesh_of(shape));
    if (shape.recomputes) {
      study.set("training", single("recompute", Value::scalar("full")));
    } else {
      std::erase_if(study.entries, [](const Value::Entry& entry) { return entry.key == "training"; });
    }
    std::string text = heading(file_) + commented_study(study, remarks_) + idea(study);
    try {
      const Study made = parse_study(file_.string(), text, {}, catalog_);
      const PointSpec& spec = made.points.at(0).spec;
      if (spec.capacity > capacity_) best_ = std::move(text);
      capacity_ = std::max(capacity_, spec.capacity);
      return capacity_ >= std::min(PointSpec{}.capacity, spec.batch.context);
    } catch (const InputError& error) {
      refusal_ = error;
      return false;
    }
  }

  /// The text of the study with the mesh that was kept. InputError if there was none.
  [[nodiscard]] std::string result() const {
    if (best_.empty() && refusal_) throw InputError(*refusal_);
    return best_;
  }

 private:
  fs::path file_;
  Catalog& catalog_;
  const std::map<std::string, std::string>& remarks_;
  std::string best_;
  std::int64_t capacity_ = 0;
  std::optional<InputError> refusal_;  // of the last mesh, which has the most room
};

}  // namespace

const NewStudyPartText& text_of(NewStudyPart part) {
  return part_texts.at(static_cast<std::size_t>(part));
}

void NewStudy::answer(NewStudyPart part, const std::string& text, Diagnostics& diagnostics) {
  Diagnostics found;
  Value value = value_in(part, text, found);
  if (found.empty()) check(part, value, found);
  if (found.empty()) answers_[static_cast<std::size_t>(part)] = std::move(value);
  diagnostics.append(found);
}

void NewStudy::check(NewStudyPart part, const Value& value, Diagnostics& diagnostics) {
  switch (part) {
    case NewStudyPart::cluster:
      (void)catalog_.cluster(value, diagnostics);
      break;
    case NewStudyPart::gpus:
      (void)catalog_.cluster(with_gpus(said(NewStudyPart::cluster), value), diagnostics);
      break;
    case NewStudyPart::model:
      (void)catalog_.model(value, diagnostics);
      break;
    case NewStudyPart::lengths:
      (void)catalog_.lengths(value, diagnostics);
      break;
    case NewStudyPart::context:
      return check_count("data.context", value, diagnostics);
    case NewStudyPart::tokens_per_step:
      return check_count("data.tokens_per_step", value, diagnostics);
    case NewStudyPart::steps:
      return check_count("data.steps", value, diagnostics);
    case NewStudyPart::plans:
      return check_plans(value, diagnostics);
    case NewStudyPart::profile:
      (void)catalog_.profile(value, diagnostics);
      break;
  }
}

Value NewStudy::said(NewStudyPart part) const {
  if (const Value& answer = answers_[static_cast<std::size_t>(part)]; !answer.is_null()) return answer;
  Diagnostics none;
  return value_in(part, choice_of(part), none);
}

std::int64_t NewStudy::gpus() const {
  Diagnostics told_before;
  const Value& stated = answers_[static_cast<std::size_t>(NewStudyPart::gpus)];
  const auto cluster = catalog_.cluster(with_gpus(said(NewStudyPart::cluster), stated), told_before);
  return cluster ? cluster->devices : 0;
}

std::vector<std::string> NewStudy::profiles_of_device() const {
  Diagnostics told_before;
  const auto cluster = catalog_.cluster(said(NewStudyPart::cluster), told_before);
  return cluster ? profiles_of(cluster->device, catalog_) : std::vector<std::string>{};
}

std::string NewStudy::choice_of(NewStudyPart part) const {
  switch (part) {
    case NewStudyPart::cluster:
      return "h100-rail";
    case NewStudyPart::gpus:
      return fmt::format("{}", gpus());
    case NewStudyPart::model:
      return "llama3-8b";
    case NewStudyPart::lengths:
      return "github";
    case NewStudyPart::context:
      return "128Ki";
    case NewStudyPart::tokens_per_step: {
      const std::int64_t context = parse_count(said(NewStudyPart::context).text).value.value_or(0);
      return count_text(std::max(gpus() * tokens_per_gpu, context));
    }
    case NewStudyPart::steps:
      return "4";
    case NewStudyPart::plans:
      return "static, hdp-naive, hdp-balance";
    case NewStudyPart::profile:
      break;
  }
  const std::vector<std::string> profiles = profiles_of_device();
  return profiles.empty() ? "" : profiles.front();
}

std::vector<std::string> NewStudy::names_of(NewStudyPart part) const {
  switch (part) {
    case NewStudyPart::cluster:
      return cluster_preset_names(catalog_.clusters());
    case NewStudyPart::model:
      return model_preset_names(catalog_.models().string());
    case NewStudyPart::lengths:
      return preset_names(catalog_.traces());
    case NewStudyPart::plans:
      return policy_names();
    case NewStudyPart::profile:
      return profile_names(catalog_.profiles().string());
    default:
      return {};
  }
}

Value NewStudy::study(const fs::path& file) const {
  Value study = Value::map();
  study.set("name", Value::scalar(file.stem().string()));
  study.set("cluster", with_gpus(said(NewStudyPart::cluster), said(NewStudyPart::gpus)));
  study.set("model", said(NewStudyPart::model));
  study.set("profile", said(NewStudyPart::profile));
  Value& data = study.set("data", Value::map());
  data.set("lengths", said(NewStudyPart::lengths));
  data.set("context", said(NewStudyPart::context));
  data.set("tokens_per_step", said(NewStudyPart::tokens_per_step));
  data.set("steps", said(NewStudyPart::steps));
  study.set("mesh", Value::map());  // its place
  study.set("training", Value::map());
  const Value& plans = study.set("plans", said(NewStudyPart::plans));
  if (const auto baseline = baseline_of(plans)) study.set("compare_to", Value::scalar(*baseline));
  study.set("output", single("html", Value::scalar("true")));
  make_paths_start_at(fs::absolute(file).parent_path(), study);
  return study;
}

std::vector<std::string> NewStudy::guesses() const {
  if (!answers_[static_cast<std::size_t>(NewStudyPart::tokens_per_step)].is_null()) return {};
  return {fmt::format("a guess of {} a GPU, but at least one sequence: the lead of plans depends on it, so state yours",
                      count_text(tokens_per_gpu))};
}

std::map<std::string, std::string> NewStudy::remarks() const {
  std::map<std::string, std::string> remarks = {
      {"mesh.tp", "here: the least with which the model fits; `hdpsim tune` looks for the best mesh"},
      {"plans", fmt::format("policies: {}", joined(policy_names(), ", "))}};
  const auto is_chosen = [&](NewStudyPart part) { return answers_[static_cast<std::size_t>(part)].is_null(); };
  if (is_chosen(NewStudyPart::tokens_per_step)) {
    remarks["data.tokens_per_step"] = guesses().front();
  }
  if (const auto profiles = profiles_of_device(); is_chosen(NewStudyPart::profile) && profiles.size() > 1) {
    remarks["profile"] = fmt::format("of this device: {}", joined(profiles, ", "));
  }
  return remarks;
}

std::string NewStudy::text(const fs::path& file) const {
  Diagnostics problems;
  const auto cluster = catalog_.cluster(with_gpus(said(NewStudyPart::cluster), said(NewStudyPart::gpus)), problems);
  const auto model = catalog_.model(said(NewStudyPart::model), problems);
  problems.throw_if_any();
  if (said(NewStudyPart::profile).text.empty()) {
    throw InputError(fmt::format("no shipped profile is of a {}, which the cluster has", cluster->device),
                     "name yours with --profile (hdpsim calibrate makes one), or choose another cluster");
  }
  const std::map<std::string, std::string> remarks = this->remarks();
  const Value study = this->study(file);
  MeshSearch search(file, catalog_, remarks);
  for (const RankShape& shape : shapes_for(*cluster, *model)) {
    if (search.try_out(study, shape)) break;
  }
  return search.result();
}

}  // namespace hdpsim
