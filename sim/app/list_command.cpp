#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>

#include "sim/app/command.h"
#include "sim/cluster/cluster_config.h"
#include "sim/document/input_file.h"
#include "sim/model/model_config.h"
#include "sim/model/parameters.h"
#include "sim/plan/policy.h"
#include "sim/profile/profile_file.h"
#include "sim/study/catalog.h"
#include "sim/study/framework.h"
#include "sim/trace/trace_file.h"

namespace hdpsim::app {
namespace {

/// A name that studies can use, and what it stands for.
struct Listed {
  std::string name;
  std::string meaning;
};

using List = std::vector<Listed>;

// The first clause of the comment at the head of a shipped file, which says what is in it.
std::string head_of(const std::filesystem::path& path) {
  std::string text;
  LineReader lines(path);
  while (lines.next() && lines.text().starts_with("# ")) text += fmt::format("{} ", lines.text().substr(2));
  const std::size_t end =
      std::min({text.find(": "), text.find(". "), text.find("; "), text.find_last_not_of(" .") + 1});
  return text.substr(0, end);
}

List clusters(Catalog& catalog) {
  List list;
  for (const std::string& name : cluster_preset_names(catalog.clusters())) {
    Value value = Value::map();
    value.set("preset", Value::scalar(name));
    Diagnostics none;
    const auto cluster = catalog.cluster(value, none);
    if (!cluster) continue;
    list.push_back({name, fmt::format("{} x {} a node; {}", cluster->devices_per_node, cluster->device,
                                      head_of(catalog.clusters() / (name + ".yaml")))});
  }
  return list;
}

// "8.03 billion", "1,030 billion".
std::string billions(std::int64_t parameters) {
  const double count = static_cast<double>(parameters) / 1e9;
  if (count < 1000) return fmt::format("{:.3g} billion", count);
  const std::int64_t tens = std::llround(count / 10) * 10;
  return fmt::format("{},{:03} billion", tens / 1000, tens % 1000);
}

// Those of the layers that have attention: others have none.
std::int64_t most_heads(const Transformer& model) {
  std::int64_t heads = model.heads;
  for (const Layer& layer : model.others) heads = std::max(heads, layer.heads);
  return heads;
}

List models(Catalog& catalog) {
  List list;
  for (const std::string& name : model_preset_names(catalog.models().string())) {
    Diagnostics none;
    const auto model = load_model_preset(name, catalog.models().string(), {}, none);
    if (!model) continue;
    const std::string experts = model->moe ? fmt::format(", {} experts", model->moe->experts) : "";
    list.push_back({name, fmt::format("{} parameters, {} layers of {}, {} heads{}", billions(parameter_count(*model)),
                                      model->layers, model->hidden, most_heads(*model), experts)});
  }
  return list;
}

List profiles(Catalog& catalog) {
  List list;
  for (const std::string& name : profile_names(catalog.profiles().string())) {
    Diagnostics none;
    const auto profile = catalog.profile(Value::scalar(name), none);
    if (profile == nullptr) continue;
    const Provenance& from = profile->provenance;
    const std::string implied = from.implied_by.empty() ? "" : fmt::format("; implied by {}", from.implied_by);
    list.push_back({name, fmt::format("{}, {}{}", from.device, profile_label_name(from.label), implied)});
  }
  return list;
}

// As the keys of a study declare them.
List plans(Catalog&) {
  List list;
  for (const KeyShape& part : plan_shape().parts) {
    for (const KeyText& policy : part.keys) list.push_back({policy.name, policy.sentence});
  }
  return list;
}

List lengths(Catalog& catalog) {
  List list;
  for (const std::string& name : preset_names(catalog.traces())) {
    list.push_back({name, head_of(catalog.traces() / (name + ".csv"))});
  }
  return list;
}

List frameworks(Catalog& catalog) {
  List list;
  for (const std::string& name : framework_names(catalog.frameworks())) {
    list.push_back({name, head_of(catalog.frameworks() / (name + ".yaml"))});
  }
  return list;
}

const std::map<std::string, std::function<List(Catalog&)>>& lists() {
  static const std::map<std::string, std::function<List(Catalog&)>> all = {
      {"clusters", clusters}, {"models", models}, {"frameworks", frameworks},
      {"profiles", profiles}, {"plans", plans},   {"lengths", lengths}};
  return all;
}

struct ListOptions {
  std::string what;
};

int run_list(const ListOptions& options, const Session& session) {
  Catalog catalog(session.data_folder);
  const List list = lists().at(options.what)(catalog);
  if (list.empty()) throw InputError(fmt::format("there are no {}", options.what));
  std::size_t width = 0;
  for (const Listed& each : list) width = std::max(width, each.name.size());
  for (const Listed& each : list) print(fmt::format("{:<{}}  {}\n", each.name, width, each.meaning));
  return 0;
}

}  // namespace

void add_list_command(Command app, Session& session) {
  const Command command = app.add_subcommand("list", "List presets and policies that a study can name, one line each");
  ListOptions& options = add_command(command, session, run_list);
  std::vector<std::string> names;
  for (const auto& [name, list] : lists()) names.push_back(name);
  command.add_option("WHAT", options.what, "What to list").required().one_of(names);
  command.footer("Examples:\n  hdpsim list clusters\n  hdpsim list models");
}

}  // namespace hdpsim::app
