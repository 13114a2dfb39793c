#include "sim/study/study_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/values.h"
#include "sim/model/sharing_form.h"
#include "sim/study/framework.h"
#include "sim/study/override.h"
#include "sim/study/sharing_choice.h"
#include "sim/study/sweep.h"

namespace hdpsim {
namespace {

constexpr std::int64_t least_capacity = 256;
constexpr std::size_t most_rooms = 3;
constexpr std::int64_t most_expert_devices = 64;
constexpr std::array<std::int64_t, 3> node_multiples = {1, 4, 16};

const Value* found_at(const Value& study, std::string_view section, std::string_view key) {
  const Value* map = study.find(section);
  const Value* value = map == nullptr ? nullptr : map->find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string assignment(std::string_view path, std::string_view value) {
  return fmt::format("{}={}", path, value);
}

// "[0-6, 8-15]".
std::string nodes_text(const std::vector<std::int64_t>& nodes) {
  std::vector<std::string> ranges;
  for (std::size_t first = 0; first < nodes.size();) {
    std::size_t last = first;
    while (last + 1 < nodes.size() && nodes[last + 1] == nodes[last] + 1) ++last;
    ranges.push_back(first == last ? fmt::format("{}", nodes[first]) : fmt::format("{}-{}", nodes[first], nodes[last]));
    first = last + 1;
  }
  return fmt::format("[{}]", joined(ranges, ", "));
}

// Nodes with a device that is slower than others, or with a link of their own that has less than its rate.
std::set<std::int64_t> impaired_nodes(const PointSpec& spec) {
  std::set<std::int64_t> nodes;
  const ClusterSpec& cluster = spec.cluster;
  for (const auto& [device, speed] : cluster.speed) {
    if (speed < 1) nodes.insert(device / cluster.devices_per_node);
  }
  for (const NodeRange& range : cluster.kind_ranges) {
    if (cluster.kinds[range.kind].speed >= 1) continue;
    for (std::int64_t node = range.first; node <= range.last; ++node) nodes.insert(node);
  }
  for (const DegradedLink& link : cluster.degraded) {
    if (link.kind != DegradedLink::Kind::tier && link.factor < 1) nodes.insert(link.unit);
  }
  for (const Fault& fault : spec.conditions.faults) {
    const std::int64_t last = fault.last_device / cluster.devices_per_node;
    for (std::int64_t node = fault.first_device / cluster.devices_per_node; node <= last; ++node) nodes.insert(node);
  }
  return nodes;
}

/// A plan of a study as it is written.
struct FirstPlan {
  std::string policy;              ///< Empty: there is none.
  const Value* options = nullptr;  ///< Null: none is stated.
};

FirstPlan first_plan_of(const Value& study) {
  const Value* plans = study.find("plans");
  if (plans == nullptr || plans->items.empty()) return {};
  const Value& plan = plans->items.front();
  if (!plan.is_map()) return {plan.text};
  return {plan.entries.front().key, &plan.entries.front().value};
}

/// Collects the changes of one study.
class ChangeList {
 public:
  ChangeList(const Value& study, const PointSpec& spec, const Catalog& catalog, std::int64_t tokens_held)
      : study_(study), spec_(spec), catalog_(catalog), tokens_held_(tokens_held) {}

  std::vector<StudyChange> all() {
    add_offload();
    add_recomputation();
    add_sharding();
    add_degrees();
    add_expert_groups();
    add_pipeline();
    add_capacity();
    add_sharing();
    add_frameworks();
    add_repairs();
    add("data.tokens_per_step", count_text(tokens_times * spec_.batch.tokens_per_step));
    return std::move(all_);
  }

 private:
  // Nothing if the study says so already.
  void add(const std::string& path, const std::string& value) {
    if (value != stated(path)) all_.push_back({path, {assignment(path, value)}});
  }

  // What the study states at a path of two steps, in one line; empty: nothing.
  [[nodiscard]] std::string stated(std::string_view path) const {
    const auto dot = path.find('.');
    const Value* value = found_at(study_, path.substr(0, dot), path.substr(dot + 1));
    return value == nullptr ? "" : line_of(*value);
  }

  void add_offload() {
    const FirstPlan plan = first_plan_of(study_);
    if (!has_option(plan.policy, "offload")) return;
    const Value* own = plan.options == nullptr ? nullptr : plan.options->find("offload");
    const std::string own_text = own == nullptr ? "none" : own->text;
    for (const char* offload : {"auto", "1.0", "none"}) {
      const std::string path = fmt::format("plans.{}.offload", plan.policy);
      if (offload != own_text) all_.push_back({path, {assignment(path, offload)}});
    }
  }

  void add_recomputation() {
    for (const char* recompute : {"none", "[norm, activation]", "selective", "full"})
      add("training.recompute", recompute);
  }

  void add_sharding() {
    for (const char* zero : {"0", "1", "2", "3"}) add("mesh.zero", zero);
  }

  // `hdp` must follow where it is stated.
  void add_degree(const std::string& path, std::int64_t degree, std::int64_t replica) {
    StudyChange change{path, {assignment(path, fmt::format("{}", degree))}};
    const std::int64_t devices = spec_.nodes.devices(spec_.cluster);
    if (devices % replica != 0) return;
    if (found_at(study_, "mesh", "hdp") != nullptr) {
      change.assignments.push_back(assignment("mesh.hdp", fmt::format("{}", devices / replica)));
    }
    all_.push_back(std::move(change));
  }

  void add_degrees() {
    const auto& [tp, pp] = std::pair(spec_.mesh.tp, spec_.mesh.pp);
    for (std::int64_t degree = 1; degree <= spec_.cluster.devices_per_node; degree *= 2) {
      if (degree != tp) add_degree("mesh.tp", degree, degree * pp);
    }
    for (const std::int64_t degree : std::set<std::int64_t>{1, std::max<std::int64_t>(1, pp / 2), 2 * pp}) {
      if (degree != pp) add_degree("mesh.pp", degree, tp * degree);
    }
  }

  // Experts over more devices than those of a rank need to know what unequal ranks do.
  void add_expert_groups() {
    if (!spec_.model.moe) return;
    for (std::int64_t ep = 1; ep <= std::min(most_expert_devices, spec_.model.moe->experts); ep *= 2) {
      if (ep == spec_.mesh.ep) continue;
      StudyChange change{"mesh.ep", {assignment("mesh.ep", fmt::format("{}", ep))}};
      if (ep * spec_.mesh.etp > spec_.mesh.tp && spec_.experts.across == ExpertSpan::inside) {
        change.assignments.emplace_back("moe.across=waves");
      }
      all_.push_back(std::move(change));
    }
  }

  void add_pipeline() {
    if (spec_.mesh.pp == 1) return;
    for (const ScheduleEntry& schedule : pipeline_schedules()) {
      const bool is_own = schedule.name == spec_.pipeline.schedule;
      if (is_own || schedule.tuned_with == 0) continue;
      StudyChange change{"mesh.schedule", {assignment("mesh.schedule", schedule.name)}};
      if (schedule.tuned_with != spec_.pipeline.virtual_stages) {
        change.assignments.push_back(assignment("mesh.virtual_stages", fmt::format("{}", schedule.tuned_with)));
      }
      all_.push_back(std::move(change));
    }
    const LayerSplit& split = spec_.pipeline.split;
    if (!split.counts_loss && split.layout.empty()) add("mesh.account_for_loss", "true");
    for (const std::string& placement : placement_names()) {
      if (placement != spec_.placement) add("mesh.placement", placement);
    }
  }

  void add_capacity() {
    const std::int64_t own = spec_.capacity;
    if (!spec_.capacity_is_chosen) add("mesh.capacity", "auto");
    if (!spec_.capacity_is_chosen && 2 * own <= spec_.batch.context) add("mesh.capacity", count_text(2 * own));
    if (tokens_held_ > own) add("mesh.capacity", count_text(tokens_held_));
    if (own / 2 >= least_capacity) add("mesh.capacity", count_text(own / 2));
  }

  void add_sharing() {
    if (spec_.mesh.hdp == 1) return;
    const std::string path = "mesh.cp_comm_type";
    for (const auto& [word, exchange] : key_exchange_words()) {
      const SharingForm& form = sharing_form(exchange);
      const bool is_for_documents = form.is_tried() && form.usual_cut() == TokenCut::per_document;
      if (is_for_documents && exchange != spec_.recipe.key_exchange) all_.push_back({path, {assignment(path, word)}});
    }
    for (const auto& [word, exchange] : key_exchange_words()) {
      const SharingForm& form = sharing_form(exchange);
      if (!form.is_tried() || form.cut_problem(TokenCut::dispatch, spec_.model, spec_.recipe)) continue;
      all_.push_back({path, {assignment(path, word), "mesh.cp_cut=dispatch"}});
    }
  }

  // What a preset states beside what the study does: the study's own keys would win otherwise.
  void add_frameworks() {
    if (found_at(study_, "framework", "preset") != nullptr) return;
    for (const std::string& name : framework_names(catalog_.frameworks())) {
      Diagnostics none;
      const Value preset = framework_preset(Value::scalar(name), catalog_.frameworks(), none);
      StudyChange change{"framework.preset", {assignment("framework.preset", name)}};
      for (const Value::Entry& section : preset.entries) {
        for (const Value::Entry& key : section.value.entries) {
          const Value* own = found_at(study_, section.key, key.key);
          if (own == nullptr || line_of(*own) == line_of(key.value)) continue;
          change.assignments.push_back(assignment(section.key + "." + key.key, line_of(key.value)));
        }
      }
      all_.push_back(std::move(change));
    }
  }

  void add_repairs() {
    const bool is_uneven = !impaired_nodes(spec_).empty();
    if (is_uneven) add("planner.knows", "[speeds, faults]");
    add_nics_off();
    add_nodes_off();
  }

  // NICs that have less than their rate are taken as if they were down: other NICs of the node do their work.
  void add_nics_off() {
    const Value* links = found_at(study_, "cluster", "links");
    if (links == nullptr || !links->is_map()) return;
    Value off = *links;
    std::vector<std::string> names;
    for (Value::Entry& link : off.entries) {
      const bool is_nic = link.key.find(" nic ") != std::string::npos;
      if (!is_nic || link.value.text == "0") continue;
      link.value = Value::scalar("0");
      names.push_back(link.key);
    }
    if (names.empty()) return;
    all_.push_back({"cluster.links",
                    {assignment("cluster.links", line_of(off))},
                    fmt::format("{} out of service", joined(names, ", "))});
  }

  // Nodes in numbers that meshes divide are kept.
  void add_nodes_off() {
    const std::set<std::int64_t> impaired = impaired_nodes(spec_);
    std::vector<std::int64_t> sound;
    std::vector<std::int64_t> off;
    const std::int64_t all = spec_.nodes.count(spec_.cluster);
    for (std::int64_t place = 0; place < all; ++place) {
      const auto node = static_cast<std::int64_t>(spec_.nodes.node(static_cast<std::size_t>(place)).index());
      (impaired.contains(node) ? off : sound).push_back(node);
    }
    if (off.empty()) return;
    std::set<std::size_t> kept;
    for (const std::int64_t multiple : node_multiples) {
      const std::int64_t count = std::ssize(sound) / multiple * multiple;
      if (2 * count >= all) kept.insert(static_cast<std::size_t>(count));
    }
    for (const std::size_t count : kept) {
      const std::vector<std::int64_t> nodes(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(count));
      StudyChange change{"mesh.nodes", {assignment("mesh.nodes", nodes_text(nodes))}};
      change.remark = off.size() == 1 ? fmt::format("node {} out of service", off.front())
                                      : fmt::format("{} nodes out of service", off.size());
      const std::int64_t replica = spec_.mesh.tp * spec_.mesh.pp;
      if (found_at(study_, "mesh", "hdp") != nullptr) {
        const std::int64_t devices = static_cast<std::int64_t>(count) * spec_.cluster.devices_per_node;
        change.assignments.push_back(assignment("mesh.hdp", fmt::format("{}", devices / replica)));
      }
      all_.push_back(std::move(change));
    }
  }

  const Value& study_;
  const PointSpec& spec_;
  const Catalog& catalog_;
  std::int64_t tokens_held_;
  std::vector<StudyChange> all_;
};

}  // namespace

Value study_of_point(const Study& study, std::size_t point) {
  Diagnostics none;
  Value one = std::move(expand_sweep(study.resolved, none).at(point).study);
  std::erase_if(one.entries, [](const Value::Entry& entry) {
    return entry.key == "compare_to" || entry.key == "tune" || entry.key == "replay" || entry.key == "output";
  });
  return one;
}

Value study_of_run(const Study& study, std::size_t point, std::size_t plan) {
  Value one = study_of_point(study, point);
  Value plans = Value::sequence(one.position);
  plans.items.push_back(study.plans.at(plan).entry);
  one.set("plans", std::move(plans));
  return one;
}

std::vector<StudyChange> possible_changes(const Value& study, const PointSpec& spec, const Catalog& catalog,
                                          std::int64_t tokens_held) {
  return ChangeList(study, spec, catalog, tokens_held).all();
}

std::optional<StudyChange> quicker_search(const Value& study) {
  const FirstPlan plan = first_plan_of(study);
  if (!has_option(plan.policy, "search")) return std::nullopt;
  if (plan.options != nullptr && plan.options->is_map()) {
    const auto& options = plan.options->entries;
    if (std::any_of(options.begin(), options.end(), [](const auto& option) { return option.key != "offload"; })) {
      return std::nullopt;
    }
  }
  const std::string path = fmt::format("plans.{}.search", plan.policy);
  return StudyChange{path, {assignment(path, "quick")}};
}

namespace {

/// A change, or several together, and the tokens that a rank then holds.
struct Room {
  std::vector<StudyChange> changes;
  std::int64_t capacity = 0;
};

std::vector<std::string> assignments_of(const std::vector<StudyChange>& changes) {
  std::vector<std::string> all;
  for (const StudyChange& change : changes) {
    all.insert(all.end(), change.assignments.begin(), change.assignments.end());
  }
  return all;
}

// The room of a changed study; 0 if it is refused, has none, or its ranks cannot hold the longest sequence together.
std::int64_t room_with(Value study, const std::vector<StudyChange>& changes, Catalog& catalog) {
  Diagnostics found;
  apply_overrides(study, assignments_of(changes), found);
  if (!found.empty()) return 0;
  const std::optional<PointSpec> spec = read_point(study, catalog, found);
  if (!spec || !spec->capacity_is_chosen) return 0;
  return spec->capacity * spec->mesh.hdp >= spec->batch.context ? spec->capacity : 0;
}

// Each change alone, or each two together where none alone is enough. One of each subject, the one with the most room.
std::vector<Room> rooms_of(const Value& study, const std::vector<StudyChange>& changes, Catalog& catalog) {
  std::vector<Room> rooms;
  const auto try_out = [&](std::vector<StudyChange> chosen) {
    const std::int64_t capacity = room_with(study, chosen, catalog);
    if (capacity > 0) rooms.push_back({std::move(chosen), capacity});
  };
  for (const StudyChange& change : changes) try_out({change});
  for (std::size_t i = 0; rooms.empty() && i < changes.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (changes[k].subject != changes[i].subject) try_out({changes[k], changes[i]});
    }
  }
  std::stable_sort(rooms.begin(), rooms.end(), [](const Room& a, const Room& b) { return a.capacity > b.capacity; });
  std::set<std::string> seen;
  std::erase_if(rooms, [&](const Room& room) { return !seen.insert(room.changes.front().subject).second; });
  return rooms;
}

}  // namespace

std::string changes_with_room(const Value& study, const PointSpec& spec, Catalog& catalog) {
  const std::vector<Room> rooms = rooms_of(study, possible_changes(study, spec, catalog), catalog);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(most_rooms, rooms.size()); ++i) {
    texts.push_back(fmt::format("{} ({} tokens of a rank)", joined(assignments_of(rooms[i].changes), " "),
                                count_text(rooms[i].capacity)));
  }
  return texts.empty() ? "no change that was tried leaves room"
                       : fmt::format("there is room with {}", joined(texts, ", or "));
}

std::optional<Study> changed_study(Value study, const std::vector<StudyChange>& changes, Catalog& catalog) {
  Diagnostics found;
  apply_overrides(study, assignments_of(changes), found);
  if (!found.empty()) return std::nullopt;
  try {
    return read_study(std::move(study), catalog);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace hdpsim
