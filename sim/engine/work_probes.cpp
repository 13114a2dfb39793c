#include "sim/engine/work_probes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "sim/engine/impl/probe_curves.h"
#include "sim/engine/impl/probes.h"
#include "sim/engine/priced_program.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/model/sharing_form.h"

namespace hdpsim {
namespace {

constexpr std::size_t sizes = 3;

// The tokens that a token of some layer sees at most; 0: all layers see all tokens.
std::int64_t most_keys_of(const Transformer& model) {
  std::int64_t longest = 0;
  for (const LayerRun& run : layer_runs(model)) longest = std::max(longest, most_keys(of_kind(model, run.kind)));
  return longest;
}

class Reading {
 public:
  /// Probes have half of `size`, `size` and four times `size` tokens.
  Reading(const LoweringOptions& lowering, std::int64_t capacity, const Machine& machine, std::int64_t size,
          std::int64_t ranks_per_node)
      : lowering_(lowering), stages_(static_cast<double>(lowering.mesh.pp)) {
    const std::int64_t middle = std::max<std::int64_t>(2, size);
    tokens_ = {middle / 2, middle, 4 * middle};
    short_tokens_ = std::max<std::int64_t>(1, middle / 16);
    Probes probes(lowering, capacity);
    const std::size_t one = probes.add(1, 1);
    std::array<std::size_t, sizes> alone{};
    std::array<std::size_t, sizes> ring{};
    for (std::size_t i = 0; i < sizes; ++i) alone[i] = probes.add(tokens_[i], 1);
    std::array<std::size_t, sizes> wide_ring{};
    const bool has_groups = lowering.mesh.hdp > 1;
    const std::int64_t widest = widest_probe(lowering);
    for (std::size_t i = 0; i < sizes && has_groups; ++i) ring[i] = probes.add(tokens_[i], 2);
    for (std::size_t i = 0; i < sizes && widest > 2; ++i) wide_ring[i] = probes.add(tokens_[i], widest);
    const GroupSharing sharing = group_sharing(lowering.model, lowering.recipe, lowering.mesh.tp, widest);
    const ExchangeCost cost = form_of(sharing).cost(sharing);
    const bool rings = !has_groups || cost == ExchangeCost::per_step;
    const std::vector<Neighbours> neighbours =
        rings ? std::vector<Neighbours>{} : add_neighbours(ranks_per_node, cost, widest, {ring[1], ring[2]}, probes);
    const std::array<std::size_t, 2> packs = {probes.add_pack(tokens_[1], short_tokens_),
                                              probes.add_pack(tokens_[2], short_tokens_)};
    const std::size_t copied = probes.add(middle, 1, 1);
    const bool splits = !lowering.model.moe;
    const std::size_t split = splits ? probes.add(middle, 1, 0, true) : 0;
    const std::vector<Probe> found = probes.run(machine);
    read_alone(found[one], {found[alone[0]], found[alone[1]], found[alone[2]]}, {found[packs[0]], found[packs[1]]});
    const auto three = [&](const std::array<std::size_t, sizes>& of) {
      return Three{found[of[0]], found[of[1]], found[of[2]]};
    };
    const std::array<std::size_t, sizes>& wide = widest > 2 ? wide_ring : ring;
    if (has_groups && rings) {
      read_ring(three(ring));
      read_passes(three(ring), three(wide), widest);
    }
    if (!rings) read_shares(three(wide), widest, cost, neighbours, found);
    read_copies(found[alone[1]], found[copied], splits ? &found[split] : nullptr);
    read_chunks(found[alone[0]], found[alone[1]]);
  }

  [[nodiscard]] const WorkModel& work() const { return work_; }

 private:
  using Three = std::array<Probe, sizes>;
  using Packs = std::array<Probe, 2>;  // as many tokens as the second and the third probe in short sequences

  [[nodiscard]] double tokens(std::size_t i) const { return static_cast<double>(tokens_[i]); }

  // The ranks of the widest group among the probes.
  static std::int64_t widest_probe(const LoweringOptions& lowering) {
    const std::int64_t kv_heads = common_kv_heads(lowering.model, lowering.mesh.tp);
    return sharing_form(lowering.recipe.key_exchange).probed_ranks(kv_heads, lowering.recipe, lowering.mesh.hdp);
  }

  enum class Place : std::uint8_t { within_node, whole_nodes, anywhere };

  // Groups of the first ranks with tokens(1) and tokens(2): whose shares of attention are read.
  struct Neighbours {
    Place place = Place::anywhere;
    std::int64_t ranks = 2;
    std::array<std::size_t, 2> probes{};
  };

  // The smallest and the largest group within a node; those of two and of four whole nodes; two far ranks, whose probes
  // are `far`, and ranks of whole nodes and one more: as far as the pool has them. Where ranks keep a share of their
  // own, the largest group within a node, the largest of all, and the two far ranks.
  [[nodiscard]] std::vector<Neighbours> add_neighbours(std::int64_t ranks_per_node, ExchangeCost cost,
                                                       std::int64_t widest, const std::array<std::size_t, 2>& far,
                                                       Probes& probes) const {
    const bool keeps_own = cost == ExchangeCost::per_own_share;
    const std::int64_t pool = keeps_own ? widest : lowering_.mesh.hdp;
    const std::int64_t node = std::min(ranks_per_node, pool);
    std::vector<Neighbours> all;
    const auto add = [&](Place place, std::int64_t ranks) {
      if (ranks > pool || (!all.empty() && all.back().place == place && all.back().ranks == ranks)) return;
      all.push_back(
          {place, ranks, {probes.add_neighbours(tokens_[1], ranks), probes.add_neighbours(tokens_[2], ranks)}});
    };
    if (node > 1) add(Place::within_node, keeps_own ? node : 2);
    if (node > 1) add(Place::within_node, node);
    if (pool == node) return all;
    if (keeps_own) {
      if (node > 1) add(Place::whole_nodes, pool);
      all.push_back({Place::anywhere, 2, far});
      return all;
    }
    for (const std::int64_t nodes : {2, 4}) {
      if (node > 1) add(Place::whole_nodes, nodes * node);
    }
    all.push_back({Place::anywhere, 2, far});
    const std::int64_t nodes = pool > 4 * node ? 4 : pool > 2 * node ? 2 : 1;
    add(Place::anywhere, nodes * node + 1);
    return all;
  }

  void read_alone(const Probe& one, const Three& probes, const Packs& packs) {
    const auto others = [&](std::size_t i) {
      const double all = std::max(probes[i].kernels, probes[i].total - probes[i].own);
      return ProbeSample{tokens(i), 0, all / stages_};
    };
    const Curve linear = line_through(others(1), others(2));
    ProbeSamples attention;
    for (std::size_t i = 0; i < sizes; ++i) {
      attention[i] = {tokens(i), causal_pairs(tokens_[i]), probes[i].own / stages_};
    }
    const Curve own = curve_through(attention);
    work_.per_area = own.per_area;
    work_.per_token = linear.per_token + own.per_token;
    work_.per_micro_batch = linear.fixed + own.fixed;
    work_.least = one.total / stages_;
    read_short(own, packs);
    const Probe& middle = probes[1];
    const double all = work_.per_token * tokens(1) * stages_;
    if (all > 0) work_.forward_of_tokens = middle.forward_kernels / all;
    if (middle.own > 0) work_.forward_of_area = middle.forward_own / middle.own;
  }

  // Attention in packs of short sequences beside the coefficients of long ones: short ones have less parallel work that
  // waits for the longest. A window longer than the shortest probe grows with the area there, so that it has a part of
  // per_area.
  void read_short(const Curve& own, const Packs& packs) {
    const std::int64_t keys = most_keys_of(lowering_.model);
    work_.has_windows = keys > 0;
    if (work_.has_windows) {
      work_.less_if_short = {keys > tokens_.front() ? own.per_area : 0, own.per_token, own.fixed};
      return;
    }
    const auto sample = [&](std::size_t i) {
      const std::int64_t count = tokens_[i] / short_tokens_;
      const auto sequences = static_cast<double>(count);
      const double area = sequences * causal_pairs(short_tokens_);
      return ProbeSample{sequences * static_cast<double>(short_tokens_), 0,
                         packs[i - 1].own / stages_ - own.per_area * area};
    };
    const Curve least = line_through(sample(1), sample(2));
    work_.less_if_short = {0, std::max(0.0, own.per_token - least.per_token), std::max(0.0, own.fixed - least.fixed)};
    work_.short_below = tokens(1);
  }

  // The two ranks of a ring share the area of a sequence of twice the tokens equally, and half of each rank's area is
  // attention to its own keys.
  void read_ring(const Three& probes) {
    ProbeSamples steps;
    std::array<ProbeSample, sizes> exchanges;
    for (std::size_t i = 0; i < sizes; ++i) {
      const auto& [forward, backward] = probes[i].directions;
      steps[i] = {tokens(i), block_area(i, 2), (forward.last_step + backward.last_step) / stages_};
      exchanges[i] = {tokens(i), 0, (forward.first + backward.first + backward.beside_last) / stages_};
    }
    const Curve step = curve_through(steps);
    work_.step_area = step.per_area - work_.per_area;
    work_.step_token = step.per_token;
    work_.step_fixed = step.fixed;
    const Curve transfer = line_through(exchanges[1], exchanges[2]);
    work_.per_ring_token = transfer.per_token;
    work_.per_ring_step = transfer.fixed;
  }

  // A ring of three has one step between the first and the last; where the pool has two ranks, no ring has such a step.
  // `wide` are the rings of `widest` ranks.
  void read_passes(const Three& two, const Three& wide, std::int64_t widest) {
    RingPasses passes;
    for (const std::size_t direction : {0, 1}) {
      RingPass& pass = direction == 0 ? passes.forward : passes.backward;
      const auto cost = [&](const Three& probes, std::int64_t ranks, double RingTimes::*part) {
        ProbeSamples samples;
        for (std::size_t i = 0; i < sizes; ++i) {
          samples[i] = {tokens(i), block_area(i, ranks), probes[i].directions[direction].*part / stages_};
        }
        const Curve curve = curve_through(samples);
        return StepCost{curve.per_area, curve.per_token, curve.fixed};
      };
      const auto share = [&](const Three& probes, double RingTimes::*part) {
        const auto sample = [&](std::size_t i) {
          return ProbeSample{tokens(i), 0, probes[i].directions[direction].*part / stages_};
        };
        return share_of_hop(line_through(sample(1), sample(2)));
      };
      pass = {.own = cost(two, 2, &RingTimes::own),
              .step = cost(wide, widest, &RingTimes::step),
              .last_step = cost(two, 2, &RingTimes::last_step),
              .first = share(two, &RingTimes::first),
              .between = share(wide, &RingTimes::between),
              .beside_last = share(two, &RingTimes::beside_last),
              .behind = share(two, &RingTimes::behind)};
    }
    const RingHops hop{work_.per_ring_token, work_.per_ring_step};
    read_others(passes, [&](std::size_t i) {
      return wide[i].total / stages_ - passes.forward.seconds(block_area(i, widest), tokens(i), widest, hop) -
             passes.backward.seconds(block_area(i, widest), tokens(i), widest, hop);
    });
    work_.passes = passes;
  }

  // Without a ring all of a rank's area, `ranks` times a block, is one launch. What a rank gathers grows with the other
  // ranks, and of what it trades it keeps its own share. A ring that joins ranks that trade is not modelled.
  void read_shares(const Three& wide, std::int64_t widest, ExchangeCost cost, const std::vector<Neighbours>& neighbours,
                   const std::vector<Probe>& found) {
    work_.ranks_share = true;
    RingPasses passes;
    for (const std::size_t direction : {0, 1}) {
      ProbeSamples attention;
      for (std::size_t i = 0; i < sizes; ++i) {
        const double area = static_cast<double>(widest) * block_area(i, widest);
        attention[i] = {tokens(i), area, wide[i].directions[direction].own / stages_};
      }
      const Curve all = curve_through(attention);
      RingPass& pass = direction == 0 ? passes.forward : passes.backward;
      pass.own = {all.per_area, all.per_token, all.fixed};
      pass.step = pass.last_step = {all.per_area, 0, 0};
    }
    read_others(passes, [&](std::size_t i) {
      double attention = 0;
      for (const RingTimes& ring : wide[i].directions) attention += ring.own + ring.shares;
      return (wide[i].total - attention) / stages_;
    });
    const auto passes_at = [&](Place place) {
      std::vector<Neighbours> groups;
      const auto is_there = [&](const Neighbours& group) { return group.place == place; };
      std::copy_if(neighbours.begin(), neighbours.end(), std::back_inserter(groups), is_there);
      return groups.empty() ? std::nullopt : std::optional(with_shares(passes, groups, cost, found));
    };
    work_.passes_within_node = passes_at(Place::within_node);
    work_.passes_of_whole_nodes = passes_at(Place::whole_nodes);
    const std::optional<RingPasses> anywhere = passes_at(Place::anywhere);
    work_.passes = anywhere ? *anywhere : *work_.passes_within_node;
  }

  // Of groups of any size, as those of the first and the last of `groups` say.
  [[nodiscard]] RingPasses with_shares(RingPasses passes, const std::vector<Neighbours>& groups, ExchangeCost cost,
                                       const std::vector<Probe>& found) const {
    for (const std::size_t direction : {0, 1}) {
      const auto shares = [&](const Neighbours& group) {
        const auto sample = [&](std::size_t i) {
          return ProbeSample{tokens(i + 1), 0, found[group.probes[i]].directions[direction].shares / stages_};
        };
        return line_through(sample(0), sample(1));
      };
      RingPass& pass = direction == 0 ? passes.forward : passes.backward;
      const Curve few = shares(groups.front());
      const Curve many = shares(groups.back());
      const auto fewest = static_cast<double>(groups.front().ranks);
      const auto most = static_cast<double>(groups.back().ranks);
      if (cost == ExchangeCost::per_own_share) {
        const double whole = most / (most - 1);
        pass.traded = {0, many.per_token * whole, many.fixed * whole};
        continue;
      }
      const auto each = [&](double of_few, double of_many) {
        return most > fewest ? std::max(0.0, (of_many - of_few) / (most - fewest)) : of_few / (fewest - 1);
      };
      pass.step.per_token = each(few.per_token, many.per_token);
      pass.step.fixed = each(few.fixed, many.fixed);
      pass.last_step.per_token = std::max(0.0, few.per_token - (fewest - 2) * pass.step.per_token);
      pass.last_step.fixed = std::max(0.0, few.fixed - (fewest - 2) * pass.step.fixed);
    }
    return passes;
  }

  // Everything but attention and what ranks exchange for it: `seconds` of a probe.
  template <class Seconds>
  void read_others(RingPasses& passes, const Seconds& seconds) const {
    const Curve other = line_through({tokens(1), 0, seconds(1)}, {tokens(2), 0, seconds(2)});
    passes.per_token = other.per_token;
    passes.per_micro_batch = other.fixed;
  }

  // The area of the own keys of each of `ranks` ranks with tokens(i) tokens.
  [[nodiscard]] double block_area(std::size_t i, std::int64_t ranks) const {
    return causal_pairs(ranks * tokens_[i]) / static_cast<double>(ranks * ranks);
  }

  [[nodiscard]] RingHops share_of_hop(const Curve& exchange) const {
    return {work_.per_ring_token > 0 ? exchange.per_token / work_.per_ring_token : 0,
            work_.per_ring_step > 0 ? exchange.fixed / work_.per_ring_step : 0};
  }

  void read_copies(const Probe& kept, const Probe& copied, const Probe* split) {
    const double all = tokens(1) * stages_;
    work_.offload_per_token = copied.copies / all;
    work_.fetch_per_token = copied.fetches / all;
    if (split == nullptr) return;
    work_.copied_whole = copied.copies > 0 ? split->copies / copied.copies : 0;
    work_.again_per_token = std::max(0.0, split->all_layers - kept.all_layers) / all;
  }

  // Chunks differ in the loss, the embedding, a layer more or less. Few micro-batches have more tokens than `middle`.
  void read_chunks(const Probe& less, const Probe& middle) {
    work_.chunk_excess.resize(middle.chunks.size());
    for (double PassSeconds::*part : {&PassSeconds::forward, &PassSeconds::backward}) {
      for (std::size_t chunk = 0; chunk < middle.chunks.size(); ++chunk) {
        const auto excess = [&](const Probe& probe) {
          double mean = 0;
          for (const PassSeconds& each : probe.chunks) mean += each.*part / static_cast<double>(probe.chunks.size());
          return probe.chunks[chunk].*part - mean;
        };
        const double slope = (excess(middle) - excess(less)) / (tokens(1) - tokens(0));
        work_.chunk_excess[chunk].per_token.*part = slope;
        work_.chunk_excess[chunk].fixed.*part = excess(middle) - slope * tokens(1);
      }
    }
  }

  const LoweringOptions& lowering_;
  double stages_;
  std::array<std::int64_t, sizes> tokens_{};
  std::int64_t short_tokens_ = 1;  // of a sequence in a pack of short ones
  WorkModel work_;
};

// The clock may hold a step of months but not a probe of four times the capacity; the probes are then smaller.
WorkModel read_work(const LoweringOptions& lowering, std::int64_t capacity, const Machine& machine,
                    std::int64_t ranks_per_node) {
  try {
    return Reading(lowering, capacity, machine, capacity, ranks_per_node).work();
  } catch (const QuantityOverflow&) {
    return Reading(lowering, capacity, machine, capacity / 4, ranks_per_node).work();
  }
}

// Rings of parties of ranks that trade have steps and hops as other rings have.
void read_traders(const LoweringOptions& lowering, std::int64_t capacity, const Machine& machine, WorkModel& work) {
  LoweringOptions ring = lowering;
  ring.recipe.key_exchange = KeyExchange::ring;
  const WorkModel joined = read_work(ring, capacity, machine, work.ranks_per_node);
  work.per_ring_token = joined.per_ring_token;
  work.per_ring_step = joined.per_ring_step;
  work.traders = RingsOfTraders{.heads = common_kv_heads(lowering.model, lowering.mesh.tp),
                                .most = lowering.recipe.a2a_ranks,
                                .ring = joined.passes};
}

// Scales the coefficients of the widest hop by the ratios of its bandwidth and latency to those of a hop within a node.
RingHops hops_within_node(const WorkModel& work, std::int64_t ranks, const Machine& machine) {
  const auto hop_to = [&](std::int64_t rank) {
    const std::vector<HdpRank> pair = {HdpRank(0), HdpRank(static_cast<std::size_t>(rank))};
    return ring_hops({.parties = 2}, pair, 0, machine).front();
  };
  const Hop wide = hop_to(ranks - 1);
  const Hop near = hop_to(1);
  const double shorter = wide.latency > Duration{} ? near.latency.seconds() / wide.latency.seconds() : 1;
  const auto rate = [](const Hop& hop) { return static_cast<double>(hop.alone.bytes_per_second()); };
  return {work.per_ring_token * rate(wide) / rate(near), work.per_ring_step * shorter};
}

}  // namespace

WorkModel work_model_of(const LoweringOptions& lowering, std::int64_t capacity, const Machine& machine,
                        std::int64_t ranks_per_node) {
  WorkModel work = read_work(lowering, capacity, machine, ranks_per_node);
  work.exchange = lowering.recipe.key_exchange;
  work.ranks_per_node = ranks_per_node;
  if (work.ranks_share && work.exchange == KeyExchange::all_to_all) read_traders(lowering, capacity, machine, work);
  if (ranks_per_node > 1) work.within_node = hops_within_node(work, lowering.mesh.hdp, machine);
  return work;
}

}  // namespace hdpsim
