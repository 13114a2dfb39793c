#include "sim/study/background.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "sim/base/quantity_text.h"
#include "sim/document/key_table.h"
#include "sim/study/mesh_options.h"
#include "sim/study/node_options.h"

namespace hdpsim {
namespace {

// Every pattern whose messages are single flows, which excludes all-to-all.
std::vector<std::string> endless_patterns() {
  std::vector<std::string> names = traffic_pattern_names();
  std::erase(names, traffic_pattern_names().at(static_cast<std::size_t>(TrafficPattern::all_to_all)));
  return names;
}

// The map of the study with the keys of the entry put over it, at the position of the latter.
Value overlaid(const Value& study, const Value& entry, std::string_view key) {
  const Value* theirs = entry.find(key);
  const Value* base = study.find(key);
  if (theirs != nullptr && !theirs->is_map()) return *theirs;
  Value merged = base == nullptr ? Value::map() : *base;
  merged.position = theirs == nullptr ? entry.position : theirs->position;
  if (theirs == nullptr) return merged;
  for (const auto& [name, position, value] : theirs->entries) merged.set(name, value);
  return merged;
}

void remove(Value& map, std::string_view key) {
  std::erase_if(map.entries, [&](const Value::Entry& entry) { return entry.key == key; });
}

const KeyTable<Traffic>& traffic_keys() {
  static const auto made = [] {
    std::vector<std::pair<std::string, TrafficPattern>> patterns;
    for (const std::string& name : endless_patterns()) patterns.emplace_back(name, traffic_pattern(name));
    KeyTable<Traffic> keys("the traffic");
    keys.word("pattern", "endless pattern", patterns, at(&Traffic::pattern), "who sends to whom", {.required = true});
    keys.count("seed", {0, 9e15}, at(&Traffic::seed), "the seed of what is drawn");
    return keys;
  }();
  return made;
}

/// The parts of an entry that are read later, when what they depend on is known.
struct EntryText {
  std::string name;
  const Value* nodes = nullptr;
  const Value* plan = nullptr;
  const Value* traffic = nullptr;
};

void read_elsewhere(const Value&, EntryText&, Diagnostics&) {}

// A section of the study that a job may override, key by key.
KeyText overlay(const char* section) {
  KeyShape shape = shape_of(KeyShape::Kind::map);
  shape.definition = section;
  return {section, shape, "", "what is unlike the study's, key by key", {.otherwise = "the study's"}};
}

const KeyTable<EntryText>& job_table() {
  static const auto made = [] {
    KeyTable<EntryText> keys("the background job");
    keys.text("name", at(&EntryText::name), "for tables", {.required = true});
    keys.kept({"nodes", nodes_shape(), "", "the nodes that it has for itself, as `mesh.nodes`", {.required = true}},
              &EntryText::nodes);
    keys.kept({"traffic",
               map_shape(traffic_keys().texts()),
               "",
               "messages without end instead of a job that trains",
               {.otherwise = "none"}},
              &EntryText::traffic);
    keys.kept({"plan", plan_shape(), "", "the policy of a job that trains", {.otherwise = "it sends `traffic`"}},
              &EntryText::plan);
    for (const char* section : {"model", "data", "mesh", "training"}) keys.add(overlay(section), read_elsewhere);
    return keys;
  }();
  return made;
}

/// Reads one entry.
class EntryReader {
 public:
  EntryReader(const Value& entry, std::size_t index, const Value& study, const PointSpec& main)
      : entry_(entry), index_(index), study_(study), main_(main) {}

  BackgroundSpec read(Catalog& catalog, Diagnostics& diagnostics) {
    EntryText text;
    (void)job_table().read(entry_, text, diagnostics);
    spec_.name = text.name;
    if (text.traffic == nullptr && entry_.is_map() && text.plan == nullptr) {
      diagnostics.error(entry_.position, "the background job needs 'plan'");
    }
    if (text.nodes != nullptr && main_.cluster.devices > 0) {
      if (auto read = read_nodes(*text.nodes, main_.cluster, diagnostics)) spec_.nodes = std::move(*read);
    }
    if (text.traffic != nullptr) {
      read_traffic(*text.traffic, diagnostics);
    } else if (text.nodes != nullptr && text.plan != nullptr) {
      spec_.plan = *text.plan;
      spec_.policy = read_policy(*text.plan, diagnostics);
      read_job(*text.nodes, catalog, diagnostics);
    }
    return std::move(spec_);
  }

 private:
  void read_traffic(const Value& value, Diagnostics& diagnostics) {
    for (const char* key : {"plan", "model", "data", "mesh", "training"}) {
      if (const Value* trains = entry_.find(key)) {
        diagnostics.error(trains->position, fmt::format("traffic has no '{}'", key), "remove it, or 'traffic'");
      }
    }
    Traffic traffic;
    const KeyReading reading = traffic_keys().read(value, traffic, diagnostics);
    if (!reading.is_right("pattern") || !value.is_map() || main_.cluster.devices == 0) return;
    spec_.traffic = traffic;
    spec_.traffic.devices = spec_.gpus(main_.cluster);
    if (spec_.traffic.devices < 2) {
      diagnostics.error(entry_.find("nodes")->position, "a GPU alone sends nothing", "name more nodes");
    }
  }

  void read_job(const Value& nodes, Catalog& catalog, Diagnostics& diagnostics) {
    check_own_keys(diagnostics);
    const Value study = study_of_job(nodes);
    // Sections that the study itself lacks are reported there.
    for (const char* key : {"cluster", "model", "profile", "data"}) {
      if (study.find(key) == nullptr) return;
    }
    if (auto job = read_point(study, catalog, diagnostics)) spec_.job = std::make_shared<PointSpec>(std::move(*job));
  }

  // Reports keys that an entry accepts but that have no meaning in it.
  void check_own_keys(Diagnostics& diagnostics) const {
    const Value* data = entry_.find("data");
    const Value* mesh = entry_.find("mesh");
    if (const Value* steps = data == nullptr ? nullptr : data->find("steps")) {
      diagnostics.error(steps->position, "a background job has no 'steps'", "it goes on as long as the main job");
    }
    if (const Value* ep = mesh == nullptr ? nullptr : mesh->find("ep")) {
      diagnostics.error(ep->position, "all-to-alls of experts do not share links with other jobs yet", "remove 'ep'");
    }
    if (const Value* nodes = mesh == nullptr ? nullptr : mesh->find("nodes")) {
      diagnostics.error(nodes->position, "the nodes of a background job are stated next to its mesh",
                        "write it one level up");
    }
  }

  // A study in which this job is the main one, and the only one.
  [[nodiscard]] Value study_of_job(const Value& nodes) const {
    Value study = Value::map(entry_.position);
    for (const char* key : {"cluster", "profile", "kernels", "overheads", "grain", "memory"}) {
      if (const Value* value = study_.find(key)) study.set(key, *value);
    }
    const bool is_chosen = study_.find("profile") == nullptr && main_.profile != nullptr;
    if (is_chosen) study.set("profile", Value::scalar(main_.profile->name, entry_.position));
    const Value* own_model = entry_.find("model");
    if (const Value* model = own_model != nullptr ? own_model : study_.find("model")) study.set("model", *model);
    if (study_.find("data") != nullptr) study.set("data", data_of_job());
    Value base = study_;
    if (Value* mesh = base.find("mesh")) remove(*mesh, "hdp");
    Value mesh = overlaid(base, entry_, "mesh");
    if (mesh.is_map()) mesh.set("nodes", nodes);
    study.set("mesh", std::move(mesh));
    study.set("training", overlaid(study_, entry_, "training"));
    return study;
  }

  // Gives the job a seed of its own: two jobs with the same seed would draw the same documents.
  [[nodiscard]] Value data_of_job() const {
    Value data = overlaid(study_, entry_, "data");
    const Value* own = entry_.find("data");
    Value* seed = data.find("seed");
    if (seed == nullptr || (own != nullptr && own->find("seed") != nullptr)) return data;
    if (const auto number = parse_count(seed->text).value)
      seed->text = fmt::format("{}", *number + 1 + std::int64_t(index_));
    return data;
  }

  const Value& entry_;
  std::size_t index_;
  const Value& study_;
  const PointSpec& main_;
  BackgroundSpec spec_;
};

/// Reports nodes that two jobs share, and names that two jobs share.
class Overlaps {
 public:
  explicit Overlaps(const ClusterSpec& cluster)
      : cluster_(cluster), owners_(static_cast<std::size_t>(cluster_.nodes())) {}

  // Nodes that cannot be read are reported elsewhere, and those that are chosen are none of other jobs.
  void add_main(const Value& study) {
    const Value* mesh = study.find("mesh");
    const Value* nodes = mesh == nullptr ? nullptr : mesh->find("nodes");
    if (nodes != nullptr && nodes->is_map()) return;
    Diagnostics told;
    const auto read = nodes == nullptr || nodes->is_null() ? NodeList{} : read_nodes(*nodes, cluster_, told);
    if (read) (void)take(*read, "the main job");
  }

  void add(const Value& entry, Diagnostics& diagnostics) {
    const Value* name = entry.find("name");
    const std::string text = name == nullptr ? "" : name->text;
    if (!text.empty() && !names_.insert(text).second) {
      diagnostics.error(name->position, fmt::format("there is another '{}'", text), "rename one of them");
    }
    const Value* nodes = entry.find("nodes");
    Diagnostics told;
    const auto read = nodes == nullptr ? std::nullopt : read_nodes(*nodes, cluster_, told);
    const std::string problem = read ? take(*read, fmt::format("'{}'", text)) : "";
    if (problem.empty()) return;
    diagnostics.error(nodes->position, problem,
                      "give every job nodes of its own; those of the main job are mesh.nodes");
  }

 private:
  // Assigns nodes to a job. Returns the problem, or an empty text.
  std::string take(const NodeList& nodes, const std::string& name) {
    std::string problem;
    for (std::size_t i = 0; i < static_cast<std::size_t>(nodes.count(cluster_)); ++i) {
      std::string& owner = owners_[nodes.node(i).index()];
      if (!owner.empty() && problem.empty()) {
        problem = fmt::format("node {} is taken by {} already", nodes.node(i).index(), owner);
      }
      owner = name;
    }
    return problem;
  }

  const ClusterSpec& cluster_;
  std::vector<std::string> owners_;  // by node
  std::set<std::string> names_;
};

void check_overlaps(const Value& study, const Value& background, const ClusterSpec& cluster, Diagnostics& diagnostics) {
  if (cluster.devices == 0) return;  // not read
  Overlaps overlaps(cluster);
  overlaps.add_main(study);
  for (const Value& entry : background.items) overlaps.add(entry, diagnostics);
}

}  // namespace

KeyShape background_shape() {
  return list_shape(map_shape(job_table().texts()));
}

std::vector<BackgroundSpec> read_background(const Value& study, const PointSpec& main, Catalog& catalog,
                                            Diagnostics& diagnostics) {
  const Value* background = study.find("background");
  if (background == nullptr || background->is_null()) return {};
  if (!background->is_sequence() || background->items.size() > most_background) {
    diagnostics.error(background->position,
                      fmt::format("the background must be a list of at most {} jobs", most_background),
                      "write background: [{name: neighbour, nodes: every 2 from 1, plan: static}]");
    return {};
  }
  if (main.grain == Grain::closed_form && !background->items.empty()) {
    diagnostics.error(study.find("grain")->position, "the closed form simulates the main job alone",
                      "write fluid or exact, or remove 'background'");
  }
  std::vector<BackgroundSpec> read;
  for (std::size_t i = 0; i < background->items.size(); ++i) {
    read.push_back(EntryReader(background->items[i], i, study, main).read(catalog, diagnostics));
  }
  check_overlaps(study, *background, main.cluster, diagnostics);
  return read;
}

}  // namespace hdpsim
