#include "sim/study/node_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/quantity_limits.h"
#include "sim/base/random.h"
#include "sim/base/text.h"
#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

// The jobs that Arnold characterises on H800, of 24B parameters each: see read_node_choice().
constexpr double alpha_of_dense = 0;
constexpr double alpha_of_experts = 0.3;

/// `mesh.nodes` as a map.
struct ChoiceText {
  const Value* free = nullptr;
  const Value* free_per_pod = nullptr;
  std::optional<double> busy;
  std::int64_t busy_run = 1;
  std::uint64_t seed = 1;
  NodePolicy choose = NodePolicy::in_order;
  std::optional<double> alpha;
  const Value* pod = nullptr;
};

const std::vector<std::pair<std::string, NodePolicy>>& policy_words() {
  static const std::vector<std::pair<std::string, NodePolicy>> words = {{"in_order", NodePolicy::in_order},
                                                                        {"best_fit", NodePolicy::best_fit},
                                                                        {"random_fit", NodePolicy::random_fit},
                                                                        {"gpu_packing", NodePolicy::gpu_packing},
                                                                        {"topology_aware", NodePolicy::topology_aware},
                                                                        {"arnold", NodePolicy::arnold}};
  return words;
}

std::string word_of_policy(NodePolicy policy) {
  const auto found = std::find_if(policy_words().begin(), policy_words().end(),
                                  [&](const auto& each) { return each.second == policy; });
  return found->first;
}

void add_free(KeyTable<ChoiceText>& keys) {
  keys.kept({"free", nodes_shape(), "", "the free nodes, written as the nodes of a job", {.otherwise = "all nodes"}},
            &ChoiceText::free);
  keys.kept({"free_per_pod",
             list_shape(count_shape({0, limits::most_devices}, "nodes")),
             "",
             "how many nodes of each pod are free: its first ones",
             {.otherwise = "all nodes"}},
            &ChoiceText::free_per_pod);
  keys.number("busy", {0, 1}, at(&ChoiceText::busy), "the share of the cluster's nodes that other jobs have, by lot",
              {.otherwise = "0"});
  keys.count("busy_run", {1, limits::most_devices}, at(&ChoiceText::busy_run),
             "with `busy`, the nodes of each of the other jobs, which are neighbours", {.unit = "nodes"});
  keys.count("seed", {0, 9e15}, at(&ChoiceText::seed), "the seed of what `busy` and `random_fit` draw");
}

void add_choice(KeyTable<ChoiceText>& keys) {
  keys.word(
      "choose", "way to choose nodes", policy_words(), at(&ChoiceText::choose),
      "how as many nodes as the mesh needs are taken from the free ones: `in_order`, the first; `best_fit`, those "
      "of the pods with the fewest free first; `random_fit`, each of any pod, by lot; `gpu_packing`, of the "
      "smallest pod that has enough, and while none has, all of the one with most; `topology_aware`, pods and "
      "ranks are halved together (dual recursive bipartition); `arnold`, such that alpha x pods of the job + (1 - "
      "alpha) x the most pods of a pipeline is least, which is solved exactly (arXiv 2509.15940)",
      {.see = "nodes-among-other-jobs"});
  keys.number("alpha", {0, 1}, at(&ChoiceText::alpha),
              "for `arnold`, the weight of data parallelism over pods; pipelines have the rest",
              {.otherwise = "0, or 0.3 with experts: what the paper found for one job of each kind, on H800"});
  keys.kept({"pod",
             shape_of(KeyShape::Kind::text),
             "",
             "the tier whose units are pods, the parts of the cluster over which groups should not be spread",
             {.otherwise = "the highest tier of which there are several units"}},
            &ChoiceText::pod);
}

const KeyTable<ChoiceText>& choice_keys() {
  static const auto made = [] {
    KeyTable<ChoiceText> keys("the nodes");
    add_free(keys);
    add_choice(keys);
    return keys;
  }();
  return made;
}

std::vector<NodeId> all_nodes(const ClusterSpec& cluster) {
  std::vector<NodeId> nodes;
  for (std::int64_t node = 0; node < cluster.nodes(); ++node) nodes.emplace_back(static_cast<std::size_t>(node));
  return nodes;
}

// Other jobs are on blocks of neighbours in an order that is drawn; the last one has as many nodes as are left to it.
std::vector<NodeId> free_beside_others(const ChoiceText& text, const ClusterSpec& cluster) {
  const auto nodes = static_cast<std::size_t>(cluster.nodes());
  const auto run = static_cast<std::size_t>(std::min(text.busy_run, cluster.nodes()));
  auto left = static_cast<std::size_t>(std::llround(*text.busy * static_cast<double>(nodes)));
  std::vector<std::size_t> blocks((nodes + run - 1) / run);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = i;
  std::vector<bool> is_busy(nodes);
  RandomStream random(text.seed, "busy nodes");
  for (std::size_t i = 0; left > 0; ++i) {
    std::swap(blocks[i], blocks[i + random.below(blocks.size() - i)]);
    for (std::size_t node = blocks[i] * run; node < std::min(nodes, (blocks[i] + 1) * run) && left > 0; ++node) {
      is_busy[node] = true;
      --left;
    }
  }
  std::vector<NodeId> free;
  for (std::size_t node = 0; node < nodes; ++node) {
    if (!is_busy[node]) free.emplace_back(node);
  }
  return free;
}

/// Reads the parts of a choice that depend on the cluster.
class ChoiceReader {
 public:
  ChoiceReader(const ClusterSpec& cluster, Diagnostics& diagnostics) : cluster_(cluster), diagnostics_(diagnostics) {}

  NodeChoice read(const Value& value, double usual_alpha) {
    ChoiceText text;
    const KeyReading reading = choice_keys().read(value, text, diagnostics_);
    NodeChoice choice;
    choice.policy = text.choose;
    choice.alpha = text.alpha.value_or(usual_alpha);
    choice.seed = text.seed;
    choice.pod_tier = text.pod == nullptr ? usual_pod_tier(cluster_) : pod_tier(*text.pod);
    check_stated_once(value);
    check_use(value);
    choice.free = all_nodes(cluster_);
    if (text.free != nullptr) choice.free = listed(*text.free);
    const bool has_wrong_tier = text.pod != nullptr && !choice.pod_tier;
    if (text.free_per_pod != nullptr && !has_wrong_tier) {
      choice.free = first_of_pods(*text.free_per_pod, choice.pod_tier);
    }
    if (text.busy && reading.is_right("busy") && reading.is_right("busy_run")) {
      choice.free = free_beside_others(text, cluster_);
    }
    return choice;
  }

 private:
  void check_stated_once(const Value& value) {
    const Value* first = nullptr;
    for (const char* key : {"free", "free_per_pod", "busy"}) {
      const Value* stated = value.find(key);
      if (stated == nullptr) continue;
      if (first != nullptr) {
        diagnostics_.error(stated->position,
                           fmt::format("'{}' says which nodes are free, and so does a key before it", key),
                           "keep one of 'free', 'free_per_pod' and 'busy'");
      }
      first = stated;
    }
  }

  void check_use(const Value& value) {
    const Value* run = value.find("busy_run");
    if (run != nullptr && value.find("busy") == nullptr) {
      diagnostics_.error(run->position, "'busy_run' changes nothing without 'busy'", "add busy: 0.3");
    }
  }

  std::optional<std::size_t> pod_tier(const Value& value) {
    std::vector<std::string> names;
    for (const SwitchTier& tier : cluster_.tiers) names.push_back(tier.name);
    const auto found = std::find(names.begin(), names.end(), value.text);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    const std::string help = suggestion(value.text, names);
    diagnostics_.error(value.position, fmt::format("the cluster has no tier '{}'", value.text),
                       !help.empty() || names.empty() ? help : fmt::format("its tiers are {}", joined(names, ", ")));
    return std::nullopt;
  }

  std::vector<NodeId> listed(const Value& value) {
    std::vector<NodeId> free;
    const std::optional<NodeList> nodes = read_nodes(value, cluster_, diagnostics_);
    for (std::int64_t i = 0; nodes && i < nodes->count(cluster_); ++i)
      free.push_back(nodes->node(static_cast<std::size_t>(i)));
    return free;
  }

  std::vector<NodeId> first_of_pods(const Value& value, const std::optional<std::size_t>& tier) {
    if (!tier) {
      diagnostics_.error(value.position, "the cluster has no tier of several units, of which pods could be",
                         "write free: 0-3, or busy: 0.3");
      return {};
    }
    const Pods pods(cluster_, *tier);
    if (!value.is_sequence() || value.items.size() != pods.count()) {
      diagnostics_.error(
          value.position, fmt::format("'free_per_pod' must be a list of {} numbers, one for each pod", pods.count()),
          fmt::format("{} to {}, of {} nodes each", pods.name(0), pods.name(pods.count() - 1), pods.nodes(0)));
      return {};
    }
    std::vector<NodeId> free;
    for (std::size_t pod = 0; pod < pods.count(); ++pod) {
      const auto count = read_in<std::int64_t>(value.items[pod], "the number of free nodes",
                                               Range{0, limits::most_devices}, diagnostics_);
      if (count && *count > pods.nodes(pod)) {
        diagnostics_.error(value.items[pod].position,
                           fmt::format("{} has {} nodes, {} too few for {} free ones", pods.name(pod), pods.nodes(pod),
                                       *count - pods.nodes(pod), *count));
        continue;
      }
      for (std::int64_t i = 0; i < count.value_or(0); ++i) {
        free.emplace_back(pods.first(pod).index() + static_cast<std::size_t>(i));
      }
    }
    return free;
  }

  const ClusterSpec& cluster_;
  Diagnostics& diagnostics_;
};

// "spine 0 has 3, spine 2 has 5"; of many pods those with most.
std::string free_text(const NodeChoice& choice, const ClusterSpec& cluster) {
  constexpr std::size_t most_named = 8;
  if (!choice.pod_tier) return "";
  const Pods pods(cluster, *choice.pod_tier);
  const std::vector<std::int64_t> free = pods.counts(choice.free);
  std::vector<std::string> texts;
  for (std::size_t pod = 0; pod < std::min(most_named, free.size()); ++pod) {
    texts.push_back(fmt::format("{} has {} of {}", pods.name(pod), free[pod], pods.nodes(pod)));
  }
  return fmt::format("{}{}", joined(texts, ", "), free.size() > most_named ? ", ..." : "");
}

// The paper's result for its job of the same kind.
double usual_alpha(const Transformer& model) {
  return model.moe ? alpha_of_experts : alpha_of_dense;
}

std::string pods_text(std::int64_t most, double mean) {
  return most == 0 ? "in one each" : fmt::format("over up to {} (mean {:.2f})", most, mean);
}

}  // namespace

KeyShape nodes_shape() {
  const KeyShape nodes = either_shape({shape_of(KeyShape::Kind::count), shape_of(KeyShape::Kind::text)});
  return either_shape({shape_of(KeyShape::Kind::count), shape_of(KeyShape::Kind::text), list_shape(nodes)});
}

KeyShape node_choice_shape() {
  return map_shape(choice_keys().texts());
}

std::optional<NodeChoice> read_node_choice(const Value& value, const PointSpec& point, Diagnostics& diagnostics) {
  Diagnostics found;
  NodeChoice choice = ChoiceReader(point.cluster, found).read(value, usual_alpha(point.model));
  diagnostics.append(found);
  return found.empty() ? std::optional(std::move(choice)) : std::nullopt;
}

void leave_to_background(const Value& study, const ClusterSpec& cluster, NodeChoice& choice) {
  const Value* background = study.find("background");
  if (background == nullptr) return;
  for (const Value& entry : background->items) {
    Diagnostics told;  // where that job is read
    const Value* stated = entry.find("nodes");
    const auto nodes = stated == nullptr ? std::nullopt : read_nodes(*stated, cluster, told);
    for (std::int64_t i = 0; nodes && i < nodes->count(cluster); ++i) {
      const NodeId taken = nodes->node(static_cast<std::size_t>(i));
      const auto found = std::lower_bound(choice.free.begin(), choice.free.end(), taken);
      if (found != choice.free.end() && *found == taken) choice.free.erase(found);
    }
  }
}

void choose_nodes_of(PointSpec& point, const Position& position, Diagnostics& diagnostics) {
  HDPSIM_CHECK(point.choice, "no choice of {} nodes", point.cluster.nodes());
  const NodeChoice& choice = *point.choice;
  const std::int64_t per_node = point.cluster.devices_per_node;
  const std::int64_t gpus = point.mesh.devices();
  const std::int64_t nodes = gpus / per_node;
  const std::int64_t free = std::ssize(choice.free);
  if (gpus % per_node != 0) {
    diagnostics.error(position, fmt::format("the mesh has {} GPUs, no whole number of nodes of {}", gpus, per_node),
                      "choose another 'hdp'");
    return;
  }
  if (nodes > free) {
    diagnostics.error(
        position, fmt::format("the mesh needs {} nodes, and {} are free: {} are missing", nodes, free, nodes - free),
        free_text(choice, point.cluster));
    return;
  }
  std::optional<NodeMatrix> matrix = node_matrix(point.placement, point.mesh, per_node);
  if (!matrix && choice.policy == NodePolicy::arnold) {
    diagnostics.unsupported(
        position, "arnold divides pipelines of whole nodes, and here nodes have parts of several stages and ranks",
        fmt::format("make hdp x tp a multiple of {} GPUs, or choose nodes in another way", per_node));
    return;
  }
  const ChosenNodes chosen =
      choose_nodes(choice, matrix.value_or(NodeMatrix{.rows = nodes, .columns = 1, .by_rows = true}), point.cluster);
  point.nodes = chosen.nodes;
  point.choice_gap = chosen.gap;
}

std::optional<RunInfo::Placed> placed_groups(const PointSpec& point) {
  const auto tier = point.choice ? point.choice->pod_tier : usual_pod_tier(point.cluster);
  if (!tier || (!point.choice && point.nodes.is_all())) return std::nullopt;
  Diagnostics told;  // where the mesh is read
  const auto placement = make_placement(point.placement, point.mesh, point.cluster, told, {}, point.nodes);
  if (placement == nullptr) return std::nullopt;
  const PodSpread spread = pod_spread(*placement, point.mesh, point.cluster, Pods(point.cluster, *tier));
  const double alpha = point.choice ? point.choice->alpha : usual_alpha(point.model);
  return RunInfo::Placed{spread, spread.score(alpha), point.choice_gap};
}

std::string choice_text(const PointSpec& point) {
  HDPSIM_CHECK(point.choice, "no choice of {} nodes", point.cluster.nodes());
  const NodeChoice& choice = *point.choice;
  std::string text = fmt::format("{} of {} free nodes by {}", point.nodes.count(point.cluster), choice.free.size(),
                                 word_of_policy(choice.policy));
  if (choice.policy == NodePolicy::arnold) append(text, " (alpha {:g})", choice.alpha);
  if (point.choice_gap > 0) append(text, ", at most {:.1f} % above the least", 100 * point.choice_gap);
  const std::optional<RunInfo::Placed> placed = placed_groups(point);
  if (!placed) return text;
  const PodSpread& spread = placed->spread;
  append(text, " in {}, data parallelism {}, pipelines {}",
         spread.pods == 1 ? "1 pod" : fmt::format("{} pods", spread.pods),
         pods_text(spread.data_parallel_max, spread.data_parallel_mean),
         pods_text(spread.pipeline_max, spread.pipeline_mean));
  return text;
}

}  // namespace hdpsim
