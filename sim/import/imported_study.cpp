#include "sim/import/imported_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "sim/base/printable.h"
#include "sim/base/text.h"
#include "sim/document/json.h"
#include "sim/document/limits.h"
#include "sim/document/values.h"
#include "sim/import/argument.h"
#include "sim/import/impl/hub_models.h"
#include "sim/import/impl/imported_files.h"
#include "sim/model/model_config.h"
#include "sim/study/catalog.h"
#include "sim/study/commented_study.h"
#include "sim/study/profile_options.h"
#include "sim/study/study_paths.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view assumed_cluster = "h100-rail";
constexpr char gpus_source[] = "--gpus";

// ---- Models

// The same in every number, whatever they are called. The size of a vocabulary can be replaced.
bool have_one_shape(const Transformer& a, const Transformer& b) {
  return static_cast<const Layer&>(a) == static_cast<const Layer&>(b) && a.layers == b.layers && a.hidden == b.hidden &&
         a.tied_embeddings == b.tied_embeddings && a.predictions == b.predictions &&
         a.learned_positions == b.learned_positions && a.element_bytes == b.element_bytes && a.others == b.others &&
         a.pattern == b.pattern;
}

/// Presets of a model's shape.
struct PresetChoice {
  Value model;                     ///< A study's `model`: the first that has the model's vocabulary, too, or else the
                                   ///< first of all with that vocabulary; null if there is none.
  std::vector<std::string> names;  ///< All of them.
};

PresetChoice presets_of(const Transformer& model, const Catalog& catalog) {
  PresetChoice choice;
  bool has_vocabulary = false;
  for (const std::string& name : model_preset_names(catalog.models().string())) {
    Diagnostics none;
    const auto preset = load_model_preset(name, catalog.models().string(), {}, none);
    if (!preset || !have_one_shape(*preset, model)) continue;
    Value value = Value::map();
    put(value, "preset", name);
    if (preset->vocabulary != model.vocabulary) {
      put(value, "vocab_size", model.vocabulary);
      const std::vector<Value::Entry> changes = {value.entries.back()};
      if (!load_model_preset(name, catalog.models().string(), {}, none, changes)) continue;
    }
    choice.names.push_back(name);
    const bool is_better = preset->vocabulary == model.vocabulary && !has_vocabulary;
    if (choice.model.is_null() || is_better) choice.model = value;
    has_vocabulary = has_vocabulary || is_better;
  }
  return choice;
}

// ---- Studies

class StudyWriter {
 public:
  StudyWriter(TrainingRun run, std::string file, fs::path out, const ImportOptions& options, Catalog& catalog)
      : run_(std::move(run)), file_(std::move(file)), out_(std::move(out)), options_(options), catalog_(catalog) {}

  ImportedStudy write(Diagnostics& diagnostics) {
    Value study = Value::map();
    put(study, "name", out_.stem().string());
    study.set("cluster", cluster(diagnostics));
    study.set("model", model(diagnostics));
    choose_profile(study);
    study.set("data", data());
    set_unless_empty(study, "framework", framework());
    study.set("mesh", mesh());
    set_unless_empty(study, "training", run_.training);
    set_unless_empty(study, "kernels", run_.kernels);
    set_unless_empty(study, "overheads", run_.overheads);
    set_unless_empty(study, "moe", run_.moe);
    study.set("plans", plans());
    put(study, "compare_to", run_.policy);
    assume(
        fmt::format("all sequences are {} tokens long: with your lengths (data.lengths) plans differ", run_.sequence));
    make_paths_start_at(fs::absolute(out_).parent_path(), study);
    result_.notes = std::move(run_.notes);
    result_.file = file_;
    result_.places = run_.places;
    result_.places.insert_or_assign("cluster.gpus", place_of_gpus());
    std::stable_sort(result_.notes.begin(), result_.notes.end(), [](const ImportNote& a, const ImportNote& b) {
      return std::pair(a.position.line, a.position.column) < std::pair(b.position.line, b.position.column);
    });
    result_.text = heading() + commented_study(study, run_.remarks) + comment(text_of(result_.notes));
    return std::move(result_);
  }

 private:
  void assume(std::string text) { run_.notes.push_back({ImportNote::Kind::assumed, {}, std::move(text)}); }

  static void set_unless_empty(Value& study, std::string_view key, const Value& map) {
    if (!map.entries.empty()) study.set(key, map);
  }

  // ---- Cluster

  [[nodiscard]] Position place_of_gpus() const {
    if (options_.gpus) return {gpus_source, 1, 1};
    const auto stated = run_.places.find("cluster");
    return stated == run_.places.end() ? Position{file_, 0, 0} : stated->second;
  }

  Value cluster(Diagnostics& diagnostics) {
    const std::string name = options_.cluster.empty() ? std::string(assumed_cluster) : options_.cluster;
    Value value = Value::map();
    put(value, looks_like_path(name) ? "file" : "preset", name);
    if (options_.cluster.empty()) assume(fmt::format("the cluster is {}: --cluster NAME states another one", name));
    const auto nominal = catalog_.cluster(value, diagnostics);
    value.set("gpus", Value::scalar(std::to_string(run_.gpus), place_of_gpus()));
    if (!nominal) return value;
    set_node(value, *nominal);
    if (const auto chosen = catalog_.cluster(value, diagnostics)) device_ = chosen->device;
    return value;
  }

  // A cluster that the user names has its own nodes. One that is assumed has as many GPUs in a node as the launcher
  // starts processes there. A small job has one node.
  void set_node(Value& value, const ClusterSpec& nominal) {
    const std::int64_t whole = nominal.devices_per_node;
    const std::int64_t each =
        std::min(run_.gpus, options_.cluster.empty() ? run_.gpus_per_node.value_or(whole) : whole);
    if (each == nominal.devices_per_node || each < 1) return;
    Value node = Value::map();
    put(node, "gpus", each);
    if (nominal.nics_per_node == nominal.devices_per_node) {
      Value nics = Value::map();
      put(nics, "count", each);
      node.set("nics", std::move(nics));
    }
    value.set("node", std::move(node));
    assume(fmt::format("a node has {} GPUs, with a NIC each where the cluster has as many NICs as GPUs", each));
  }

  void choose_profile(Value& study) {
    const std::vector<std::string> names = profiles_of(device_, catalog_);
    if (names.empty()) return;  // which the reader of the study reports
    put(study, "profile", names.front());
    if (names.size() > 1) assume(fmt::format("the profile is the first of {}", joined(names, ", ")));
    Diagnostics none;
    keep_to_products_of(*catalog_.profile(Value::scalar(names.front()), none));
  }

  void keep_to_products_of(const DeviceProfile& profile) {
    const Value* linear = run_.kernels.find("linear");
    for (const auto& [word, format] : product_format_words()) {
      if (linear == nullptr || linear->text != word || !is_narrow(format)) continue;
      const std::size_t table = narrow_format(format).table;
      if (profile.gemm_narrow.at(table)) continue;
      run_.notes.push_back({ImportNote::Kind::unmodelled,
                            {},
                            fmt::format("products in {}: bf16, as the profile {} has no {}", word, profile.name,
                                        narrow_tables.at(table).key)});
      put(run_.kernels, "linear", std::string("bf16"));
      return;
    }
  }

  // ---- Model

  Value model(Diagnostics& diagnostics) {
    if (!run_.model.is_null()) return run_.model;
    Diagnostics found;
    const auto described = read_model(run_.configuration, out_.stem().string(), found);
    diagnostics.append(found);
    if (!described) return run_.configuration;
    const PresetChoice preset = presets_of(*described, catalog_);
    if (!preset.model.is_null()) {
      run_.remarks["model"] =
          fmt::format("here: of the shape that the arguments state is {}", joined(preset.names, ", "));
      return preset.model;
    }
    result_.model_file = out_;
    result_.model_file.replace_extension(".model.json");
    result_.model = json_page(json_of(run_.configuration));
    Value value = Value::map();
    put(value, "hf_config", result_.model_file.string());
    return value;
  }

  // ---- The rest

  Value data() {
    Value data = Value::map();
    Value lengths = Value::map();
    put(lengths, "fixed", run_.sequence);
    data.set("lengths", std::move(lengths));
    put(data, "context", run_.sequence * run_.micro_batch);
    if (run_.micro_batch > 1) {
      run_.remarks["data.context"] =
          fmt::format("here: micro-batches of {} sequences, which `{}` packs", run_.micro_batch, run_.policy);
    }
    put(data, "tokens_per_step", run_.global_batch * run_.sequence);
    put(data, "steps", 1);
    return data;
  }

  Value framework() {
    Value preset = Value::map();
    if (!run_.framework_preset.empty()) put(preset, "preset", run_.framework_preset);
    return preset;
  }

  Value mesh() {
    Value mesh = Value::map();
    put(mesh, "tp", run_.tp);
    put(mesh, "pp", run_.pp);
    put(mesh, "capacity", capacity_of(run_));
    if (!run_.capacity) run_.remarks["mesh.capacity"] = "here: a micro-batch over the ranks that share it";
    for (const Value::Entry& entry : run_.mesh.entries) mesh.set(entry.key, entry.value);
    return mesh;
  }

  Value plans() {
    Value options = Value::map();
    put(options, "cp", run_.cp);
    for (const Value::Entry& entry : run_.plan_options.entries) options.set(entry.key, entry.value);
    Value fixed = Value::map();
    fixed.set(run_.policy, std::move(options));
    Value plans = Value::sequence();
    plans.items.push_back(std::move(fixed));
    plans.items.push_back(Value::scalar("hdp-balance"));
    run_.remarks["plans"] = "here: the mesh of the arguments, and groups by length to compare it with";
    return plans;
  }

  [[nodiscard]] std::string heading() const {
    return fmt::format(
        "# From {}, for {}. What the file states and this study does not is at the end.\n"
        "# Run it: hdpsim study {} --out {}\n\n",
        printable(fs::path(file_).filename().string()), run_.framework, printable(out_.filename().string()),
        printable(out_.stem().string()));
  }

  static std::string comment(const std::string& text) {
    std::string lines = "\n";
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);) lines += fmt::format("# {}\n", line);
    return lines;
  }

  TrainingRun run_;
  std::string file_;
  fs::path out_;
  const ImportOptions& options_;
  Catalog& catalog_;
  ImportedStudy result_;
  std::string device_;
};

constexpr char model_source[] = "--model";

// What --model names, if anything.
std::optional<NamedModel> named_model(const std::string& name, const Catalog& catalog, Diagnostics& diagnostics) {
  if (name.empty()) return std::nullopt;
  diagnostics.add_source(model_source, name);
  Value value = Value::map({model_source, 1, 1});
  value.set(looks_like_path(name) ? "hf_config" : "preset", Value::scalar(name, {model_source, 1, 1}));
  return named_model_of(value, catalog, diagnostics);
}

ImportedStudy import_texts(const std::vector<ConfigText>& files, const fs::path& out, const ImportOptions& options,
                           Catalog& catalog) {
  Diagnostics diagnostics;
  ImportedStudy study;
  for (const auto& [file, text] : files) {
    if (text.find('\0') != std::string::npos) {
      throw InputError({file, 0, 0}, "this is no text", "a script, YAML or TOML is");
    }
    diagnostics.add_source(file, text);
    study.sources.emplace(file, text);
  }
  if (options.gpus) diagnostics.add_source(gpus_source, std::to_string(*options.gpus));
  ImportOptions all = options;
  all.model = named_model(options.model_name, catalog, diagnostics);
  diagnostics.throw_if_any();
  all.model_of_hub = [&](const std::string& name) { return hub_model(name, catalog); };
  std::map<std::string, std::string> sources = std::move(study.sources);
  if (options.file_beside) {
    all.file_beside = [&](const std::string& path, const std::string& named_by) {
      auto found = options.file_beside(path, named_by);
      if (found) sources.emplace(found->file, found->text);
      return found;
    };
  }
  TrainingRun run = read_training(files, all, diagnostics);
  diagnostics.throw_if_any();
  study = StudyWriter(std::move(run), files.front().file, out, options, catalog).write(diagnostics);
  diagnostics.throw_if_any();
  study.sources = std::move(sources);
  study.sources.emplace(model_source, options.model_name);
  if (options.gpus) study.sources.emplace(gpus_source, std::to_string(*options.gpus));
  return study;
}

}  // namespace

ImportedStudy import_text(const std::string& file, const std::string& text, const fs::path& out,
                          const ImportOptions& options, Catalog& catalog) {
  return import_texts({{file, text}}, out, options, catalog);
}

ImportedStudy import_study(const std::vector<std::string>& files, const fs::path& out, const ImportOptions& options,
                           Catalog& catalog) {
  Diagnostics diagnostics;
  std::vector<ConfigText> texts;
  for (const std::string& file : files) {
    const auto text = import_format_of(file) == ImportFormat::log
                          ? read_log_head(file, diagnostics)
                          : read_text_file(file, largest_yaml_bytes, diagnostics);
    texts.push_back({file, text.value_or("")});
  }
  diagnostics.throw_if_any();
  ImportOptions all = options;
  all.file_beside = text_beside;
  return import_texts(texts, out, all, catalog);
}

}  // namespace hdpsim
