#include "sim/study/study_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/base/text.h"
#include "sim/cluster/device_conditions.h"
#include "sim/document/values.h"
#include "sim/loading/loading_spec.h"
#include "sim/plan/policy.h"
#include "sim/study/background.h"
#include "sim/study/data_options.h"
#include "sim/study/expert_options.h"
#include "sim/study/failures.h"
#include "sim/study/framework.h"
#include "sim/study/mesh_options.h"
#include "sim/study/point.h"
#include "sim/study/production_options.h"
#include "sim/study/profile_options.h"
#include "sim/study/study_options.h"
#include "sim/study/study_plans.h"
#include "sim/study/training_options.h"
#include "sim/study/uncertainty_options.h"

namespace hdpsim {
namespace {

using Sections = std::vector<StudySection>;

KeyShape text_shape() {
  return shape_of(KeyShape::Kind::text);
}

KeyShape anything() {
  return shape_of(KeyShape::Kind::anything);
}

KeyShape model_shape() {
  KeyShape model = map_shape({{"preset", text_shape(), "", "a model of `configs/models`", {}},
                              {"hf_config", text_shape(), "", "a HuggingFace `config.json`", {}},
                              {"architecture",
                               text_shape(),
                               "",
                               "read the configuration as one of this family of `configs/models/README.md`",
                               {.otherwise = "what it names in `architectures`"}}});
  model.open = true;
  return defined("model", model);
}

KeyShape optional_shape(KeyShape shape) {
  return either_shape({shape_of(KeyShape::Kind::nothing), std::move(shape)});
}

KeyShape named_point() {
  return map_shape(
      {{"label", text_shape(), "", "", {.required = true}}, {"set", dictionary_shape(anything()), "", "", {}}});
}

void add_what_runs(Sections& all) {
  all.push_back({{"name", text_shape(), "", "for titles", {.required = true}}, Decides::study});
  all.push_back({{"cluster",
                  either_shape({text_shape(), defined("cluster.schema.json", shape_of(KeyShape::Kind::map))}),
                  "",
                  "`{preset: NAME, gpus: N}` of `configs/clusters`, `{file: PATH}`, a path, or a cluster in full; keys "
                  "beside `preset` override it at any depth",
                  {.required = true}},
                 Decides::world});
  all.push_back({{"model",
                  model_shape(),
                  "",
                  "`{preset: NAME}` or `{hf_config: PATH}`; other keys replace those of the configuration: "
                  "`{preset: llama-7b, num_hidden_layers: 12}`",
                  {.required = true}},
                 Decides::point});
  all.push_back({{"profile",
                  text_shape(),
                  "",
                  "a name in `calib/profiles`, or a path; it must be of the cluster's device",
                  {.otherwise = "the only one of `calib/profiles` for that device"}},
                 Decides::world});
  all.push_back(
      {{"framework",
        map_shape(framework_keys()),
        "",
        "the release of a training framework, which fills in what `mesh`, `training`, `kernels`, `memory` and "
        "`overheads` leave out",
        {.otherwise = "none", .see = "frameworks"}},
       Decides::study});
  all.push_back(
      {{"kernels", map_shape(kernel_keys()), "", "which of the kernels that a device can run a framework runs", {}},
       Decides::world});
  all.push_back({{"overheads",
                  map_shape(overhead_keys()),
                  "",
                  "what the framework spends in addition to all that is modelled, in place of the profile's figures",
                  {.otherwise = "the profile's", .mechanism = "overheads"}},
                 Decides::world});
}

void add_how_it_trains(Sections& all) {
  all.push_back({{"moe", map_shape(expert_keys()), "", "the experts of a model that has some", {.see = "experts"}},
                 Decides::point});
  all.push_back({grain_key(), Decides::point});
  all.push_back(
      {{"data", defined("data", map_shape(data_keys())), "", "the sequences of the steps", {.required = true}},
       Decides::point});
  all.push_back(
      {{"mesh",
        defined("mesh", map_shape(mesh_keys().texts())),
        "",
        "how the model and the batch are laid over the devices: degrees, places, the pipeline, what is sharded, "
        "how groups share sequences",
        {}},
       Decides::world});
  all.push_back({{"training",
                  defined("training", map_shape(training_keys().texts())),
                  "",
                  "how the framework trains on that mesh: the optimizer and its states, what is recomputed, kernels of "
                  "its own, what overlaps with what",
                  {}},
                 Decides::point});
  all.push_back(
      {{"memory", map_shape(memory_keys()), "", "what a framework does with device memory", {.see = "memory"}},
       Decides::point});
  all.push_back({{"planner", map_shape(planner_keys()), "", "what policies know", {}}, Decides::point});
}

void add_conditions(Sections& all) {
  all.push_back({{"noise",
                  noise_shape(),
                  "",
                  "how unlike devices are",
                  {.otherwise = "the spread of the profile", .see = "devices-that-differ", .mechanism = "noise"}},
                 Decides::point});
  all.push_back({{"faults",
                  faults_shape(),
                  "",
                  "devices that are slow for some steps",
                  {.otherwise = "none", .see = "devices-that-differ", .mechanism = "faults"}},
                 Decides::point});
  all.push_back({{"failures",
                  map_shape(failure_keys()),
                  "",
                  "nodes that fail, checkpoints and restarts",
                  {.otherwise = "none", .see = "failures", .mechanism = "failures"}},
                 Decides::point});
  all.push_back({{"loading",
                  map_shape(loading_keys()),
                  "",
                  "how data reaches the ranks",
                  {.otherwise = "data is always ready", .see = "loading", .mechanism = "loading"}},
                 Decides::point});
  all.push_back({{"uncertainty",
                  map_shape(uncertainty_keys()),
                  "",
                  "intervals of all headline figures, by errors of costs and slow nodes",
                  {.otherwise = "none", .see = "uncertainty"}},
                 Decides::point});
  all.push_back({{"background",
                  background_shape(),
                  "",
                  "what else uses the fabric",
                  {.otherwise = "none", .see = "other-jobs-on-the-fabric", .mechanism = "background"}},
                 Decides::world});
}

void add_whole_study(Sections& all) {
  all.push_back({{"plans",
                  list_shape(either_shape({plan_shape(), plan_files_shape()})),
                  "",
                  "policies, each a word or `POLICY: {OPTION: VALUE}`; and plans of files, `{file: PATH, name: NAME}`",
                  {.required = true}},
                 Decides::study});
  all.push_back({{"compare_to",
                  either_shape({text_shape(), dictionary_shape(word_shape({"tuned"}))}),
                  "",
                  "the plan against which speed-ups are stated, on the study's mesh; `{PLAN: tuned}`: on the best mesh "
                  "for it, which is searched for",
                  {.otherwise = "none", .see = "tuned-baselines"}},
                 Decides::study});
  all.push_back({{"sweep",
                  optional_shape(either_shape({dictionary_shape(list_shape(anything())), list_shape(named_point())})),
                  "",
                  "lists of values by dotted path; every combination is a point, 10,000 at most; the last path varies "
                  "fastest. Or a list of points with names: `[{label: small, set: {PATH: VALUE}}]`",
                  {.otherwise = "none"}},
                 Decides::study});
  all.push_back(
      {{"output", map_shape(output_keys()), "", "what is written in addition to the figures", {}}, Decides::study});
  all.push_back(
      {{"replay", map_shape(replay_keys()), "", "what `hdpsim replay` shows of a long run", {.see = "replay"}},
       Decides::study});
  all.push_back(
      {{"production",
        map_shape(production_keys()),
        "",
        "a job in hours, which `hdpsim replay` then runs: what failures, checkpoints, devices that become slow "
        "and data cost it",
        {.otherwise = "none", .see = "production-runs"}},
       Decides::study});
  all.push_back({{"tune", map_shape(tune_keys()), "", "what `hdpsim tune` searches, and for what", {.see = "tune"}},
                 Decides::study});
}

void collect(const std::string& path, const KeyShape& shape, std::vector<StudyKey>& all);

void collect(const std::string& path, const KeyText& key, std::vector<StudyKey>& all) {
  if (key.sentence.empty()) return;
  all.push_back({path, &key});
  const bool has_own_section = path.find('.') != std::string::npos && !key.shape.definition.empty();
  if (!has_own_section) collect(path, key.shape, all);
}

void collect(const std::string& path, const KeyShape& shape, std::vector<StudyKey>& all) {
  for (const KeyText& key : shape.keys) collect(fmt::format("{}.{}", path, key.name), key, all);
  const std::string below = shape.kind == KeyShape::Kind::dictionary ? path + ".*" : path;
  for (const KeyShape& part : shape.parts) collect(below, part, all);
}

}  // namespace

const std::vector<StudySection>& study_sections() {
  static const Sections sections = [] {
    Sections all;
    add_what_runs(all);
    add_how_it_trains(all);
    add_conditions(all);
    add_whole_study(all);
    return all;
  }();
  return sections;
}

bool belongs_to_whole_study(std::string_view key) {
  const auto& all = study_sections();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const StudySection& section) { return section.text.name == key; });
  return found != all.end() && found->decides == Decides::study;
}

std::vector<StudyKey> collected(const std::vector<KeyText>& keys) {
  std::vector<StudyKey> all;
  for (const KeyText& key : keys) collect(key.name, key, all);
  return all;
}

std::vector<StudyKey> all_study_keys() {
  std::vector<StudyKey> all;
  for (const StudySection& section : study_sections()) collect(section.text.name, section.text, all);
  return all;
}

namespace {

bool is_left_out(const Value* found) {
  return found == nullptr || found->is_null();
}

void set_default(Value& map, const KeyText& key) {
  if (map.is_map() && is_left_out(map.find(key.name))) map.set(key.name, Value::scalar(key.fallback, map.position));
}

// Creates an optional section if one of its keys gets a default.
void set_defaults_of_section(const KeyText& section, Value& study) {
  for (const KeyText& key : section.shape.keys) {
    if (key.notes.written == nullptr || !key.notes.written(study)) continue;
    Value* map = study.find(section.name);
    if (map == nullptr && section.notes.required) return;
    if (map == nullptr) map = &study.set(section.name, Value::map(study.position));
    if (map->is_null()) *map = Value::map(map->position);
    set_default(*map, key);
  }
}

}  // namespace

Value with_defaults(Value study) {
  if (!study.is_map()) return study;
  for (const StudySection& section : study_sections()) {
    const KeyText& key = section.text;
    if (key.notes.written != nullptr && key.notes.written(study)) set_default(study, key);
    set_defaults_of_section(key, study);
  }
  return study;
}

namespace {

// The order of keys has no meaning: two studies that differ only in it have the same runs.
void sort_keys(Value& value) {
  std::sort(value.entries.begin(), value.entries.end(),
            [](const Value::Entry& a, const Value::Entry& b) { return a.key < b.key; });
  for (auto& entry : value.entries) sort_keys(entry.value);
  for (Value& item : value.items) sort_keys(item);
}

// True for an empty list of background jobs, which is the same as none.
bool says_nothing(const Value::Entry& entry) {
  const Value& value = entry.value;
  return entry.key == "background" && (value.is_null() || (value.is_sequence() && value.items.empty()));
}

}  // namespace

std::string identity_text(Value study) {
  std::erase_if(study.entries,
                [](const Value::Entry& entry) { return belongs_to_whole_study(entry.key) || says_nothing(entry); });
  sort_keys(study);
  std::string text;
  for (const Value::Entry& entry : study.entries) append(text, "{}: {}\n", entry.key, json_line_of(entry.value));
  return text;
}

std::string world_text(const Value& study) {
  Value world = Value::map();
  for (const StudySection& section : study_sections()) {
    const Value* value = study.find(section.text.name);
    if (value != nullptr && section.decides == Decides::world) world.set(section.text.name, *value);
  }
  return identity_text(std::move(world));
}

}  // namespace hdpsim
