#include "sim/tasks/task_keys.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/study/study_keys.h"

namespace hdpsim {
namespace {

constexpr Range sizes = {1, 1 << 20};
constexpr Range counts = {1, 1 << 30};
constexpr Range widths = {8, 1 << 20};
constexpr Range speedups = {1e-3, 1e3};

void read_attention(const Value& value, ModuleText& module, Diagnostics& diagnostics) {
  const auto choice = read_choice(value, "attention", {"full", "causal"}, diagnostics);
  if (choice) module.is_causal = *choice == 1;
}

const KeyText& section(const std::string& name) {
  const auto& all = study_sections();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.text.name == name; });
  HDPSIM_CHECK(found != all.end(), "a study has no section '{}'", name);
  return found->text;
}

// A section that is a study's: its keys are told there, and read with the study of each module.
KeyText shared(const std::string& name) {
  KeyText text = section(name);
  text.notes.see = {};
  text.notes.mechanism = {};
  if (text.shape.kind != KeyShape::Kind::map) return text;
  text.shape = map_shape({});
  text.shape.open = true;
  text.sentence = "as `" + name + "` of a study";
  if (name == "training") text.sentence += "; gradients are summed behind the last pass, whatever overlaps there";
  return text;
}

}  // namespace

const KeyTable<ModuleText>& task_module_keys() {
  static const auto made = [] {
    KeyTable<ModuleText> keys("the module");
    KeyShape model = map_shape({});
    model.open = true;
    keys.kept({"model",
               model,
               "",
               "a dense model whose layers are alike, as a study's `model`; it has a head",
               {.otherwise = "the model of the next five keys"}},
              &ModuleText::model);
    keys.count("layers", sizes, at(&ModuleText::layers), "layers of a transformer as GPT's or ViT's are",
               {.otherwise = "those of `model`"});
    keys.count("width", widths, at(&ModuleText::width), "its width", {.otherwise = "that of `model`"});
    keys.count("heads", sizes, at(&ModuleText::heads), "its heads, which divide the width",
               {.otherwise = "those of `model`"});
    keys.count("inner", widths, at(&ModuleText::inner), "the inner width of its MLPs",
               {.otherwise = "four times the width"});
    keys.count("vocabulary", sizes, at(&ModuleText::vocabulary), "tokens of its embedding and head",
               {.otherwise = "it has no head"});
    keys.count("tp", sizes, at(&ModuleText::tp), "devices that share each of its layers");
    keys.add({"attention",
              word_shape({"full", "causal"}),
              "",
              "which tokens a token sees",
              {.otherwise = "`causal` of a `model`, `full` of others"}},
             read_attention);
    return keys;
  }();
  return made;
}

const KeyTable<NodeText>& task_node_keys() {
  static const auto made = [] {
    KeyTable<NodeText> keys("a node of the graph");
    keys.text("module", at(&NodeText::module), "the module that it runs", {.otherwise = "that of its own name"});
    keys.count("tokens", counts, at(&NodeText::tokens), "tokens of a sample", {.required = true});
    keys.count("batch", counts, at(&NodeText::batch), "samples, where they are not those of the task",
               {.otherwise = "the task's"});
    keys.kept({"after",
               list_shape(shape_of(KeyShape::Kind::text)),
               "",
               "the nodes whose outputs it reads",
               {.otherwise = "none"}},
              &NodeText::after);
    return keys;
  }();
  return made;
}

const KeyTable<TaskText>& task_keys() {
  static const auto made = [] {
    KeyTable<TaskText> keys("the task");
    keys.count("batch", counts, at(&TaskText::batch), "samples of a step", {.otherwise = "the file's"});
    keys.kept({"graph",
               dictionary_shape(map_shape(task_node_keys().texts())),
               "",
               "its nodes by name: a module on the tokens of one modality each",
               {.required = true}},
              &TaskText::graph);
    return keys;
  }();
  return made;
}

const KeyTable<CaseText>& task_case_keys() {
  static const auto made = [] {
    KeyTable<CaseText> keys("the case");
    keys.text("label", at(&CaseText::label), "its name", {.otherwise = "what is set"});
    keys.kept({"set",
               dictionary_shape(shape_of(KeyShape::Kind::anything)),
               "",
               "values of this file by dotted path: `{cluster.gpus: 8}`",
               {.otherwise = "nothing"}},
              &CaseText::set);
    keys.kept({"published",
               dictionary_shape(number_shape(speedups)),
               "",
               "published speed-ups over `sequential`, by policy: they stand beside what is predicted",
               {.otherwise = "none"}},
              &CaseText::published);
    return keys;
  }();
  return made;
}

const KeyTable<TaskFileText>& task_file_table() {
  static const auto made = [] {
    KeyTable<TaskFileText> keys("the file of tasks");
    keys.text("name", at(&TaskFileText::name), "for titles", {.required = true});
    for (const std::string& name : shared_sections()) {
      keys.add(shared(name), [](const Value&, TaskFileText&, Diagnostics&) {});  // read with each module
    }
    keys.count("zero", {0, 1}, at(&TaskFileText::zero),
               "1: the devices that hold the same parameters share their optimizer (ZeRO)");
    keys.count("batch", counts, at(&TaskFileText::batch), "samples of a step, of each task that states none",
               {.otherwise = "each task states its own"});
    keys.kept({"modules",
               dictionary_shape(map_shape(task_module_keys().texts())),
               "",
               "transformers by name; tasks that name the same one share its parameters",
               {.required = true}},
              &TaskFileText::modules);
    keys.kept({"tasks",
               dictionary_shape(map_shape(task_keys().texts())),
               "",
               "tasks by name, all of which a step trains",
               {.required = true}},
              &TaskFileText::tasks);
    keys.kept(
        {"train", list_shape(shape_of(KeyShape::Kind::text)), "", "the tasks that are trained", {.otherwise = "all"}},
        &TaskFileText::train);
    keys.kept({"cases",
               list_shape(map_shape(task_case_keys().texts())),
               "",
               "variants of the job, each compared on its own",
               {.otherwise = "the file as it is"}},
              &TaskFileText::cases);
    return keys;
  }();
  return made;
}

const std::vector<std::string>& shared_sections() {
  static const std::vector<std::string> names = {"cluster",   "profile",  "framework", "kernels",
                                                 "overheads", "training", "memory"};
  return names;
}

}  // namespace hdpsim
