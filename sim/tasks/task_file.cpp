#include "sim/tasks/task_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sim/base/printable.h"
#include "sim/base/text.h"
#include "sim/document/values.h"
#include "sim/study/problems.h"
#include "sim/tasks/task_keys.h"
#include "sim/tasks/task_policies.h"

namespace hdpsim {
namespace {

constexpr std::int64_t study_tokens = 1024;  // of the study of a module, which is asked for its prices alone

Value number_at(std::int64_t number, const Position& position) {
  return Value::scalar(fmt::format("{}", number), position);
}

bool is_filled_map(const Value& value, const std::string& what, const std::string& help, Diagnostics& diagnostics) {
  if (value.is_map() && !value.entries.empty()) return true;
  diagnostics.error(value.position, fmt::format("{} must be a map with an entry", what), help);
  return false;
}

/// Studies of modules, by all that they state: cases share them.
class ModuleStudies {
 public:
  explicit ModuleStudies(Catalog& catalog) : catalog_(catalog) {}

  std::shared_ptr<const Study> of(const Value& study) {
    auto& known = known_[to_yaml(study)];
    if (known == nullptr) known = std::make_shared<const Study>(read_study(study, catalog_));
    return known;
  }

 private:
  Catalog& catalog_;
  std::map<std::string, std::shared_ptr<const Study>> known_;
};

// What a study may ask of training that steps of tasks do not have.
std::vector<std::string> missing_in(const Recipe& recipe) {
  std::vector<std::string> missing;
  if (recipe.optimizer == Optimizer::muon) missing.emplace_back("optimizer: muon");
  if (recipe.host.optimizer > 0) missing.emplace_back("states in host memory");
  if (recipe.lora.is_on()) missing.emplace_back("adapters");
  if (recipe.whole_parameters) missing.emplace_back("whole_parameters");
  return missing;
}

/// Reads one case.
class CaseReader {
 public:
  CaseReader(const Value& root, ModuleStudies& studies, Diagnostics& diagnostics)
      : root_(root), studies_(studies), diagnostics_(diagnostics) {}

  TaskCase read() {
    (void)task_file_table().read(root_, text_, diagnostics_);
    TaskCase read;
    if (text_.modules == nullptr || text_.tasks == nullptr) return read;
    const bool has_modules = is_filled_map(
        *text_.modules, "'modules'", "write modules: {vision: {layers: 32, width: 1280, heads: 16}}", diagnostics_);
    const bool has_tasks = is_filled_map(
        *text_.tasks, "'tasks'", "write tasks: {caption: {batch: 64, graph: {vision: {tokens: 257}}}}", diagnostics_);
    if (!has_modules || !has_tasks) return read;
    for (const Value::Entry& entry : text_.tasks->entries) read_task(entry);
    const std::set<std::string> trained = trained_tasks();
    std::vector<TaskModule> modules;
    for (const Value::Entry& entry : text_.modules->entries) modules.push_back(read_module(entry));
    if (!diagnostics_.empty()) return read;
    std::erase_if(tasks_, [&](const TaskGraph& task) { return !trained.contains(task.name); });
    take_used(std::move(modules), read);
    read.tasks = std::move(tasks_);
    return read;
  }

 private:
  // ---- Tasks

  void read_task(const Value::Entry& entry) {
    TaskText text;
    const std::string what = fmt::format("the task '{}'", entry.key);
    (void)task_keys().read(entry.value, text, diagnostics_, what);
    const std::string graph = fmt::format("the graph of '{}'", entry.key);
    if (text.graph == nullptr ||
        !is_filled_map(*text.graph, graph, "write graph: {vision: {tokens: 257}}", diagnostics_)) {
      return;
    }
    if (!text.batch) text.batch = text_.batch;
    if (!text.batch) {
      diagnostics_.error(entry.position, fmt::format("{} has no batch", what),
                         "write batch: 64, here or for all tasks");
      return;
    }
    TaskGraph task{printable(entry.key), {}};
    std::vector<std::string> names;
    for (const Value::Entry& node : text.graph->entries) names.push_back(node.key);
    for (const Value::Entry& node : text.graph->entries) task.nodes.push_back(read_node(node, text, names));
    if (const std::size_t node = node_in_circle(task.nodes); node < task.nodes.size()) {
      diagnostics_.error(text.graph->entries[node].position,
                         fmt::format("'{}' waits for itself, through 'after'", names[node]));
    }
    tasks_.push_back(std::move(task));
  }

  TaskNode read_node(const Value::Entry& entry, const TaskText& task, const std::vector<std::string>& names) {
    NodeText text;
    (void)task_node_keys().read(entry.value, text, diagnostics_, fmt::format("the node '{}'", entry.key));
    TaskNode node{printable(entry.key), 0, text.batch.value_or(*task.batch), text.tokens, {}};
    const Value* stated = entry.value.find("module");
    const Value module = stated != nullptr ? *stated : Value::scalar(entry.key, entry.position);
    std::vector<std::string> modules;
    for (const Value::Entry& each : text_.modules->entries) modules.push_back(each.key);
    if (const auto choice = read_choice(module, "module", modules, diagnostics_)) node.module = *choice;
    if (text.after != nullptr) node.after = read_names(*text.after, "node of this graph", names);
    return node;
  }

  std::vector<std::size_t> read_names(const Value& value, std::string_view what,
                                      const std::vector<std::string>& names) {
    std::set<std::size_t> found;
    if (!value.is_sequence() || value.items.empty()) {
      diagnostics_.error(value.position, fmt::format("here must be a list of a {}", what),
                         fmt::format("write [{}]", names.front()));
      return {};
    }
    for (const Value& item : value.items) {
      const auto choice = read_choice(item, what, names, diagnostics_);
      if (choice && !found.insert(*choice).second) {
        diagnostics_.error(item.position, fmt::format("'{}' is named a second time here", item.text));
      }
    }
    return {found.begin(), found.end()};
  }

  std::set<std::string> trained_tasks() {
    std::vector<std::string> names;
    for (const Value::Entry& task : text_.tasks->entries) names.push_back(task.key);
    if (text_.train == nullptr) return {names.begin(), names.end()};
    std::set<std::string> trained;
    for (const std::size_t index : read_names(*text_.train, "task", names)) trained.insert(printable(names[index]));
    return trained;
  }

  // ---- Modules

  // Those that tasks use, in the order of the file; nodes are numbered anew.
  void take_used(std::vector<TaskModule> modules, TaskCase& read) {
    std::map<std::size_t, std::size_t> numbers;
    for (const TaskGraph& task : tasks_) {
      for (const TaskNode& node : task.nodes) numbers[node.module] = 0;
    }
    for (auto& [index, number] : numbers) {
      number = read.modules.size();
      read.modules.push_back(std::move(modules[index]));
    }
    for (TaskGraph& task : tasks_) {
      for (TaskNode& node : task.nodes) node.module = numbers.at(node.module);
    }
  }

  TaskModule read_module(const Value::Entry& entry) {
    ModuleText text;
    const std::size_t before = diagnostics_.count();
    (void)task_module_keys().read(entry.value, text, diagnostics_, fmt::format("the module '{}'", entry.key));
    TaskModule module{printable(entry.key), text.tp, text.is_causal.value_or(text.model != nullptr),
                      text.model != nullptr || text.vocabulary.has_value(), nullptr};
    const Value model = text.model != nullptr ? *text.model : own_model(entry, text);
    if (text.model != nullptr && (text.layers || text.width || text.heads || text.inner || text.vocabulary)) {
      diagnostics_.error(entry.position, fmt::format("the module '{}' has both a model and sizes", entry.key),
                         "put them into the model, by the names of its configuration");
    }
    if (diagnostics_.count() != before) return module;
    try {
      module.study = studies_.of(study_of(model, text.tp, entry.value));
    } catch (const InputError& error) {
      for (const Diagnostic& problem : error.diagnostics().sorted()) diagnostics_.add(problem);
      return module;
    }
    const Transformer& found = module.model();
    if (found.moe || !found.others.empty() || found.linear) {
      diagnostics_.unsupported(entry.position, fmt::format("the layers of '{}' differ, or have experts", entry.key),
                               "modules are dense models whose layers are alike");
    }
    const Value* training = root_.find("training");
    for (const std::string& missing : missing_in(module.recipe())) {
      diagnostics_.unsupported(training != nullptr ? training->position : root_.position,
                               fmt::format("tasks cannot be trained with {} yet", missing));
    }
    return module;
  }

  // GPT's layers, with norms that have biases and an MLP of two products, are those of ViT and CLIP, too.
  Value own_model(const Value::Entry& entry, const ModuleText& text) {
    if (!text.layers || !text.width || !text.heads) {
      diagnostics_.error(entry.position, fmt::format("the module '{}' has no size", entry.key),
                         "write {layers: 12, width: 768, heads: 12}, or {model: {preset: llama-7b}}");
      return Value::map(entry.position);
    }
    if (*text.width % *text.heads != 0) {
      diagnostics_.error(entry.value.find("heads")->position,
                         fmt::format("{} heads do not divide the width {}", *text.heads, *text.width));
    }
    if (*text.heads % text.tp != 0) {
      diagnostics_.error(entry.value.find("tp")->position,
                         fmt::format("tp is {}, which does not divide the {} heads", text.tp, *text.heads));
    }
    Value model = Value::map(entry.position);
    model.set("preset", Value::scalar("gpt-1.7b", entry.position));
    model.set("n_layer", number_at(*text.layers, entry.position));
    model.set("n_embd", number_at(*text.width, entry.position));
    model.set("n_head", number_at(*text.heads, entry.position));
    model.set("n_inner", number_at(text.inner.value_or(4 * *text.width), entry.position));
    if (text.vocabulary) model.set("vocab_size", number_at(*text.vocabulary, entry.position));
    return model;
  }

  Value study_of(const Value& model, std::int64_t tp, const Value& module) {
    const Position& place = root_.position;
    const Value* stated = module.find("tp");
    Value study = Value::map(place);
    study.set("name", Value::scalar("module", place));
    for (const std::string& name : shared_sections()) {
      if (const Value* section = root_.find(name)) study.set(name, *section);
    }
    study.set("model", model);
    Value mesh = Value::map(place);
    mesh.set("tp", number_at(tp, stated != nullptr ? stated->position : place));
    mesh.set("pp", number_at(1, place));
    mesh.set("zero", number_at(text_.zero, place));
    study.set("mesh", mesh);
    Value lengths = Value::map(place);
    lengths.set("fixed", number_at(study_tokens, place));
    Value data = Value::map(place);
    data.set("lengths", lengths);
    data.set("context", number_at(study_tokens, place));
    data.set("tokens_per_step", Value::scalar("16Mi", place));
    data.set("steps", number_at(1, place));
    study.set("data", data);
    Value plans = Value::sequence(place);
    plans.items.push_back(Value::scalar("static", place));
    study.set("plans", plans);
    return study;
  }

  const Value& root_;
  ModuleStudies& studies_;
  Diagnostics& diagnostics_;
  TaskFileText text_;
  std::vector<TaskGraph> tasks_;
};

std::vector<std::pair<std::string, double>> read_published(const Value& value, Diagnostics& diagnostics) {
  std::vector<std::pair<std::string, double>> published;
  if (!is_filled_map(value, "'published'", "write published: {spindle: 1.37}", diagnostics)) return published;
  for (const auto& [name, place, figure] : value.entries) {
    const bool is_known =
        read_choice(Value::scalar(name, place), "policy", task_policy_names(), diagnostics).has_value();
    const auto number = read_in<double>(figure, "a speed-up", {1e-3, 1e3}, diagnostics);
    if (is_known && number) published.emplace_back(name, *number);
  }
  return published;
}

struct WrittenCase {
  std::string label;
  Value root;
  std::vector<std::pair<std::string, double>> published;
};

std::vector<WrittenCase> written_cases(const Value& root, Diagnostics& diagnostics) {
  std::vector<WrittenCase> written;
  const Value* cases = root.find("cases");
  if (cases == nullptr || cases->is_null()) return {{"", root, {}}};
  if (!cases->is_sequence() || cases->items.empty()) {
    diagnostics.error(cases->position, "'cases' must be a list", "write cases: [{set: {cluster.gpus: 8}}]");
    return {{"", root, {}}};
  }
  for (const Value& each : cases->items) {
    CaseText text;
    (void)task_case_keys().read(each, text, diagnostics);
    WrittenCase& added = written.emplace_back(WrittenCase{printable(text.label), root, {}});
    std::erase_if(added.root.entries, [](const Value::Entry& entry) { return entry.key == "cases"; });
    if (text.set != nullptr && is_filled_map(*text.set, "'set'", "write set: {cluster.gpus: 8}", diagnostics)) {
      std::vector<std::string> parts;
      for (const auto& [path, place, value] : text.set->entries) {
        (void)set_path(added.root, path, value, diagnostics);
        parts.push_back(fmt::format("{}={}", path, line_of(value)));
      }
      if (added.label.empty()) added.label = printable(joined(parts, ", "));
    }
    if (text.published != nullptr) added.published = read_published(*text.published, diagnostics);
  }
  return written;
}

}  // namespace

std::vector<ModuleSize> TaskCase::sizes() const {
  std::vector<ModuleSize> all;
  for (const TaskModule& module : modules) all.push_back({module.model().layers, module.has_head});
  return all;
}

const std::vector<KeyText>& task_file_keys() {
  return task_file_table().texts();
}

TaskFile load_task_file(const std::string& path, const std::vector<std::string>& overrides, Catalog& catalog) {
  Diagnostics diagnostics;
  TaskFile file;
  file.document = load_document(path, diagnostics);
  if (file.document.is_null()) diagnostics.throw_if_any();
  apply_overrides(file.document, overrides, diagnostics);
  if (const Value* name = file.document.find("name")) file.name = printable(name->text);
  ModuleStudies studies(catalog);
  const std::vector<WrittenCase> written = written_cases(file.document, diagnostics);
  Problems problems(diagnostics);
  for (const WrittenCase& each : written) {
    Diagnostics found;
    TaskCase& read = file.cases.emplace_back(CaseReader(each.root, studies, found).read());
    read.label = each.label;
    read.published = each.published;
    problems.add(found, {path, 0, 0});
  }
  problems.throw_if_any({{override_source, override_text(overrides)}});
  return file;
}

}  // namespace hdpsim
