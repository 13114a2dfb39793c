#include "sim/plan/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/impl/group_cuts.h"

namespace hdpsim {
namespace {

// What a micro-batch leaves on a rank beyond the capacity; empty if it fits. Its group and its ratio must be sound.
std::string capacity_problem(const Plan& plan, std::size_t id) {
  const MicroBatch& micro_batch = plan.micro_batches[id];
  if (tokens_held(micro_batch, plan.layers) <= plan.capacity) return "";
  const double held = static_cast<double>(micro_batch.tokens_per_rank()) * resident_share(micro_batch, plan.layers);
  return fmt::format("micro-batch {} leaves {:.1f} of {} tokens on each rank, the capacity is {}", id, held,
                     micro_batch.tokens_per_rank(), plan.capacity);
}

class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan) {}

  std::vector<PlanProblem> run() {
    check_header();
    for (std::size_t id = 0; id < plan_.micro_batches.size(); ++id) {
      check_group(id);
      check_exchange(id);
      check_local(id);
      check_moved(id);
      check_capacity(id);
    }
    check_tokens();
    check_schedule();
    check_waves();
    check_updates();
    if (has_chunks_in_order(plan_)) check_chunks();
    if (problems_.empty()) check_order();
    return std::move(problems_);
  }

 private:
  using List = PlanEntry::List;

  void add(List list, std::size_t index, std::string text) { problems_.push_back({{list, index}, std::move(text)}); }

  template <class... Values>
  void plan_problem(fmt::format_string<Values...> text, Values&&... values) {
    add(List::whole_plan, 0, fmt::format(text, std::forward<Values>(values)...));
  }

  template <class... Values>
  void sequence_problem(std::size_t index, fmt::format_string<Values...> text, Values&&... values) {
    add(List::sequences, index,
        fmt::format("sequence {}{}", index, fmt::format(text, std::forward<Values>(values)...)));
  }

  template <class... Values>
  void micro_batch_problem(std::size_t id, fmt::format_string<Values...> text, Values&&... values) {
    add(List::micro_batches, id,
        fmt::format("micro-batch {} {}", id, fmt::format(text, std::forward<Values>(values)...)));
  }

  template <class... Values>
  void rank_problem(std::size_t rank, fmt::format_string<Values...> text, Values&&... values) {
    add(List::schedule, rank, fmt::format("rank {} {}", rank, fmt::format(text, std::forward<Values>(values)...)));
  }

  void check_header() {
    if (plan_.ranks < 1) plan_problem("the pool has {} ranks", plan_.ranks);
    if (plan_.capacity < 1) plan_problem("the capacity is {} tokens", plan_.capacity);
    if (plan_.layers < 1) plan_problem("the model has {} layers", plan_.layers);
    for (std::size_t i = 0; i < plan_.sequence_tokens.size(); ++i) {
      if (plan_.sequence_tokens[i] < 1) sequence_problem(i, " has {} tokens", plan_.sequence_tokens[i]);
    }
  }

  void check_group(std::size_t id) {
    std::vector<HdpRank> group;
    if (const std::vector<HdpRank>& listed = plan_.micro_batches[id].group; !are_sound(listed)) group = listed;
    if (plan_.micro_batches[id].group.empty()) micro_batch_problem(id, "has no ranks");
    std::sort(group.begin(), group.end());
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::size_t rank = group[i].index();
      if (i > 0 && group[i - 1] == group[i]) micro_batch_problem(id, "has rank {} twice", rank);
      if (static_cast<std::int64_t>(rank) >= plan_.ranks) {
        micro_batch_problem(id, "has rank {}, the pool has {} ranks", rank, plan_.ranks);
      }
    }
  }

  // Whether ranks rise and are of the pool: mostly, and then they need not be sorted. O(ranks).
  [[nodiscard]] bool are_sound(const std::vector<HdpRank>& group) const {
    const bool rise = std::adjacent_find(group.begin(), group.end(), std::greater_equal<>()) == group.end();
    return rise && (group.empty() || static_cast<std::int64_t>(group.back().index()) < plan_.ranks);
  }

  void check_exchange(std::size_t id) {
    const MicroBatch& micro_batch = plan_.micro_batches[id];
    if (!micro_batch.exchange) return;
    if (micro_batch.group.size() == 1) micro_batch_problem(id, "of one rank has an exchange");
    if (micro_batch.cut != TokenCut::per_document) {
      micro_batch_problem(id, "has an exchange of its own, and a cut that is not per_document");
    }
  }

  // Where nothing is shared, single ranks have micro-batches of their own.
  void check_local(std::size_t id) {
    const MicroBatch& micro_batch = plan_.micro_batches[id];
    if (micro_batch.local.empty()) return;
    if (micro_batch.group.size() == 1) micro_batch_problem(id, "of one rank has local spans");
    if (micro_batch.cut != TokenCut::per_document) {
      micro_batch_problem(id, "has local spans, and a cut that is not per_document");
    }
    for (std::size_t i = 0; i < micro_batch.local.size(); ++i) {
      const std::size_t holder = micro_batch.local[i].holder;
      if (holder >= micro_batch.group.size()) {
        micro_batch_problem(id, "has spans on rank {} of its {}", holder, micro_batch.group.size());
      }
      if (i > 0 && micro_batch.local[i - 1].holder >= holder) {
        micro_batch_problem(id, "does not state its local spans by rising rank of the group");
      }
    }
  }

  void check_moved(std::size_t id) {
    for (const std::string& problem : served_problems(plan_.micro_batches[id])) micro_batch_problem(id, "{}", problem);
  }

  void check_capacity(std::size_t id) {
    const MicroBatch& micro_batch = plan_.micro_batches[id];
    if (micro_batch.padding < 0) micro_batch_problem(id, "has {} tokens of padding", micro_batch.padding);
    const bool belongs = plan_.expert_ranks > 1 && micro_batch.group.size() == 1;
    if (micro_batch.spans.empty() && !belongs) micro_batch_problem(id, "has no spans");
    if (!(micro_batch.spans.empty() && belongs) && micro_batch.padding > 0) {
      micro_batch_problem(id, "has padding: that is for single ranks with nothing else to run in a wave");
    }
    if (!(micro_batch.offload >= 0 && micro_batch.offload <= 1)) {
      micro_batch_problem(id, "offloads {}, it must be from 0 to 1", micro_batch.offload);
      return;
    }
    if (micro_batch.repeats_forward && micro_batch.offloads()) {
      micro_batch_problem(id, "repeats its forward pass, and has no activations to offload");
    }
    if (micro_batch.repeats_forward && micro_batch.group.size() > 1) {
      micro_batch_problem(id, "repeats its forward pass, which single ranks with chunks in order do alone");
    }
    if (micro_batch.group.empty()) return;
    if (std::string text = capacity_problem(plan_, id); !text.empty()) add(List::micro_batches, id, std::move(text));
  }

  // Where the tokens of a sequence are planned.
  enum class Placed : std::uint8_t {
    nowhere,
    whole,      // in one span
    in_pieces,  // or more than once
  };
  // Tokens [begin, end) of a sequence.
  struct Piece {
    std::size_t sequence;
    std::int64_t begin;
    std::int64_t end;
  };

  // Sequences in one span are sound, and mostly all of them are. O(spans + pieces of others log these).
  void check_tokens() {
    std::vector<Placed> placed(plan_.sequence_tokens.size());
    for (std::size_t id = 0; id < plan_.micro_batches.size(); ++id) {
      for_each_span(plan_.micro_batches[id], [&](const Span& span) {
        if (!is_inside(span, id)) return;
        Placed& sequence = placed[span.sequence.index()];
        const bool is_whole = span.tokens >= plan_.sequence_tokens[span.sequence.index()] && span.begin == 0;
        sequence = sequence == Placed::nowhere && is_whole ? Placed::whole : Placed::in_pieces;
      });
    }
    const std::vector<Piece> pieces = sorted_pieces(placed);
    auto piece = pieces.begin();
    for (std::size_t sequence = 0; sequence < plan_.sequence_tokens.size(); ++sequence) {
      if (placed[sequence] == Placed::whole) continue;
      std::int64_t covered = 0;
      for (; piece != pieces.end() && piece->sequence == sequence; ++piece) {
        if (piece->begin > covered) missing(sequence, covered, piece->begin);
        if (piece->begin < covered) {
          sequence_problem(sequence, ": tokens {} to {} are planned twice", piece->begin,
                           std::min(covered, piece->end));
        }
        covered = std::max(covered, piece->end);
      }
      if (covered < plan_.sequence_tokens[sequence]) missing(sequence, covered, plan_.sequence_tokens[sequence]);
    }
  }

  // Those of sequences in pieces, by sequence and place. Their problems have been reported.
  [[nodiscard]] std::vector<Piece> sorted_pieces(const std::vector<Placed>& placed) const {
    std::vector<Piece> pieces;
    if (std::find(placed.begin(), placed.end(), Placed::in_pieces) == placed.end()) return pieces;
    for (const MicroBatch& micro_batch : plan_.micro_batches) {
      for_each_span(micro_batch, [&](const Span& span) {
        const std::size_t sequence = span.sequence.index();
        if (sequence >= placed.size() || placed[sequence] != Placed::in_pieces) return;
        if (!fits(span, micro_batch.padded)) return;
        pieces.push_back({sequence, span.begin, std::min(span.begin + span.tokens, plan_.sequence_tokens[sequence])});
      });
    }
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return std::tie(a.sequence, a.begin, a.end) < std::tie(b.sequence, b.begin, b.end);
    });
    return pieces;
  }

  void missing(std::size_t sequence, std::int64_t begin, std::int64_t end) {
    sequence_problem(sequence, ": tokens {} to {} are in no micro-batch", begin, end);
  }

  bool is_inside(const Span& span, std::size_t id) {
    const std::size_t sequence = span.sequence.index();
    if (sequence >= plan_.sequence_tokens.size()) {
      micro_batch_problem(id, "has sequence {}, the batch has {}", sequence, plan_.sequence_tokens.size());
      return false;
    }
    if (fits(span, plan_.micro_batches[id].padded)) return true;
    micro_batch_problem(id, "has {} tokens from {} of sequence {}, which has {}", span.tokens, span.begin, sequence,
                        plan_.sequence_tokens[sequence]);
    return false;
  }

  // Whether a span is inside its sequence, one of the batch; a padded one may end behind it.
  [[nodiscard]] bool fits(const Span& span, bool padded) const {
    const std::int64_t tokens = plan_.sequence_tokens[span.sequence.index()];
    if (padded) return span.begin >= 0 && span.tokens >= 1 && span.begin < tokens;
    return span.begin >= 0 && span.tokens >= 1 && span.tokens <= tokens && span.begin <= tokens - span.tokens;
  }

  void check_schedule() {
    if (std::ssize(plan_.schedule) != plan_.ranks) {
      plan_problem("the schedule has {} lists, the pool has {} ranks", plan_.schedule.size(), plan_.ranks);
      return;
    }
    // The micro-batches of each rank by the groups, one rank after another, to be compared with its list.
    std::vector<std::size_t> ends(plan_.schedule.size() + 1);
    for_each_member([&](std::size_t rank, std::size_t) { ++ends[rank + 1]; });
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<MicroBatchId> all(ends.back());
    // Each entry is the begin of its rank at first, and its end after this loop.
    for_each_member([&](std::size_t rank, std::size_t id) { all[ends[rank]++] = MicroBatchId(id); });
    for (std::size_t rank = 0; rank < plan_.schedule.size(); ++rank) {
      const std::size_t begin = rank == 0 ? 0 : ends[rank - 1];
      check_list(rank, std::span(all).subspan(begin, ends[rank] - begin));
    }
  }

  // Calls visit(rank, id) for the ranks of all groups that are of the pool, by rising id.
  template <class Visit>
  void for_each_member(const Visit& visit) const {
    for (std::size_t id = 0; id < plan_.micro_batches.size(); ++id) {
      for (const HdpRank rank : plan_.micro_batches[id].group) {
        if (rank.index() < plan_.schedule.size()) visit(rank.index(), id);
      }
    }
  }

  // `members` is sorted. A rank that occurs twice in a group was reported already. A list in the order of ids, as
  // planners make it, is compared as it is.
  void check_list(std::size_t rank, std::span<const MicroBatchId> members) {
    const std::vector<MicroBatchId>& list = plan_.schedule[rank];
    const bool none_twice = std::adjacent_find(members.begin(), members.end()) == members.end();
    if (none_twice && std::equal(members.begin(), members.end(), list.begin(), list.end())) return;
    std::vector<std::size_t> due;
    for (const MicroBatchId id : members) due.push_back(id.index());
    due.erase(std::unique(due.begin(), due.end()), due.end());
    std::vector<std::size_t> listed;
    for (const MicroBatchId id : list) listed.push_back(id.index());
    std::sort(listed.begin(), listed.end());
    auto expected = due.begin();
    for (std::size_t i = 0; i < listed.size(); ++i) {
      if (i > 0 && listed[i] == listed[i - 1]) {
        rank_problem(rank, "runs micro-batch {} twice", listed[i]);
        continue;
      }
      for (; expected != due.end() && *expected < listed[i]; ++expected) never_run(rank, *expected);
      if (expected != due.end() && *expected == listed[i]) {
        ++expected;
      } else {
        not_of_its_own(rank, listed[i]);
      }
    }
    for (; expected != due.end(); ++expected) never_run(rank, *expected);
  }

  void never_run(std::size_t rank, std::size_t id) { rank_problem(rank, "never runs micro-batch {} of its group", id); }

  void not_of_its_own(std::size_t rank, std::size_t id) {
    if (id >= plan_.micro_batches.size()) {
      rank_problem(rank, "runs micro-batch {}, the plan has {}", id, plan_.micro_batches.size());
    } else {
      rank_problem(rank, "runs micro-batch {}, whose group it is not in", id);
    }
  }

  // All ranks of an expert group must take part in its all-to-alls the same number of times.
  void check_waves() {
    const std::int64_t ranks = plan_.expert_ranks;
    if (ranks < 1 || plan_.ranks % std::max<std::int64_t>(1, ranks) != 0) {
      return plan_problem("expert groups of {} ranks do not divide a pool of {}", ranks, plan_.ranks);
    }
    if (ranks == 1 || std::ssize(plan_.schedule) != plan_.ranks) return;
    for (std::size_t rank = 0; rank < plan_.schedule.size(); ++rank) {
      const std::size_t first = rank / static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
      if (plan_.schedule[rank].size() == plan_.schedule[first].size()) continue;
      rank_problem(rank, "runs {} micro-batches, rank {} of its expert group {}", plan_.schedule[rank].size(), first,
                   plan_.schedule[first].size());
    }
  }

  void check_updates() {
    std::int64_t update = 0;
    for (std::size_t id = 0; id < plan_.micro_batches.size(); ++id) {
      const std::int64_t own = plan_.micro_batches[id].update;
      const bool follows = own == update || (id > 0 && own == update + 1);
      if (!follows) {
        micro_batch_problem(id, "belongs to update {}, behind those of {}: list micro-batches by update, from 0 on",
                            own, update);
      }
      update = own;
    }
    if (update == 0 || !problems_.empty()) return;
    if (has_chunks_in_order(plan_)) plan_problem("chunks continue others in a plan of {} updates", update + 1);
    for (std::size_t rank = 0; rank < plan_.schedule.size(); ++rank) check_updates_of(rank);
  }

  void check_updates_of(std::size_t rank) {
    const std::vector<MicroBatchId>& list = plan_.schedule[rank];
    const std::vector<MicroBatchId>& first = plan_.schedule[rank - rank % static_cast<std::size_t>(plan_.expert_ranks)];
    const auto update = [&](MicroBatchId id) { return plan_.micro_batches[id.index()].update; };
    for (std::size_t k = 0; k < list.size(); ++k) {
      if (k > 0 && update(list[k]) < update(list[k - 1])) {
        rank_problem(rank, "runs micro-batch {} of update {} after one of update {}", list[k].index(), update(list[k]),
                     update(list[k - 1]));
      }
      if (update(list[k]) != update(first[k])) {
        rank_problem(rank, "runs micro-batch {} of update {} in a wave of update {}", list[k].index(), update(list[k]),
                     update(first[k]));
      }
    }
  }

  // Chunks run forward and backward apart, which only single ranks do without waiting for each other.
  void check_chunks() {
    for (std::size_t id = 0; id < plan_.micro_batches.size(); ++id) {
      const MicroBatch& micro_batch = plan_.micro_batches[id];
      const std::size_t ranks = micro_batch.group.size();
      if (ranks > 1) micro_batch_problem(id, "has {} ranks, in a plan with chunks that continue others", ranks);
      if (micro_batch.continues && micro_batch.spans.size() != 1) {
        micro_batch_problem(id, "continues another one with {} spans, not with one", micro_batch.spans.size());
      }
    }
    if (plan_.expert_ranks > 1) {
      plan_problem("chunks continue others in expert groups of {} ranks, which run waves", plan_.expert_ranks);
    }
    for (std::size_t rank = 0; rank < plan_.schedule.size(); ++rank) {
      const MicroBatch* before = nullptr;
      for (const MicroBatchId id : plan_.schedule[rank]) {
        if (id.index() >= plan_.micro_batches.size()) break;
        const MicroBatch& micro_batch = plan_.micro_batches[id.index()];
        if (micro_batch.continues && !follows(micro_batch, before)) {
          rank_problem(rank, "runs micro-batch {}, which does not continue the one before it", id.index());
        }
        before = &micro_batch;
      }
    }
  }

  // Whether the span begins where that of the chunk before ends, and the first chunk has the begin of the sequence.
  static bool follows(const MicroBatch& micro_batch, const MicroBatch* before) {
    if (before == nullptr || before->spans.size() != 1 || micro_batch.spans.empty()) return false;
    const Span& span = micro_batch.spans.front();
    const Span& earlier = before->spans.front();
    return span.sequence == earlier.sequence && span.begin == earlier.begin + earlier.tokens &&
           (before->continues || earlier.begin == 0);
  }

  // Finds a cycle of waits: a micro-batch that cannot run waits for one of its ranks, which is stuck before another
  // micro-batch of its list.
  void check_order() {
    const std::vector<MicroBatchId> order = order_of_execution(plan_);
    if (order.size() == plan_.micro_batches.size()) return;
    const WaveTable waves(plan_);
    std::vector<bool> ran(plan_.micro_batches.size());
    for (const MicroBatchId id : order) ran[id.index()] = true;
    std::size_t at = static_cast<std::size_t>(std::find(ran.begin(), ran.end(), false) - ran.begin());
    std::vector<std::size_t> path;
    std::vector<std::size_t> seen_at(ran.size(), ran.size());
    std::vector<std::size_t> via;  // the rank that makes path[i] wait for path[i + 1]
    while (seen_at[at] == ran.size()) {
      seen_at[at] = path.size();
      path.push_back(at);
      const auto [rank, blocker] = blocked_by(at, ran, waves);
      via.push_back(rank);
      at = blocker;
    }
    std::vector<std::string> waits;
    for (std::size_t i = seen_at[at]; i < path.size(); ++i) {
      const std::size_t next = i + 1 < path.size() ? path[i + 1] : at;
      waits.push_back(fmt::format("rank {} runs {} before {}", via[i], next, path[i]));
    }
    plan_problem("deadlock: {}", joined(waits, ", "));
  }

  // A rank of the micro-batch's group, or of one that runs together with it, that is stuck before an earlier
  // micro-batch of its list; and that earlier micro-batch.
  std::pair<std::size_t, std::size_t> blocked_by(std::size_t id, const std::vector<bool>& ran,
                                                 const WaveTable& waves) const {
    for (const MicroBatchId member : waves.members(waves.wave(MicroBatchId(id)))) {
      for (const HdpRank rank : plan_.micro_batches[member.index()].group) {
        for (const MicroBatchId listed : plan_.schedule[rank.index()]) {
          if (listed == member) break;
          if (!ran[listed.index()]) return {rank.index(), listed.index()};
        }
      }
    }
    HDPSIM_CHECK(false, "micro-batch {} did not run and waits for none", id);
    return {};
  }

  const Plan& plan_;
  std::vector<PlanProblem> problems_;
};

}  // namespace

std::vector<PlanProblem> plan_problems(const Plan& plan) {
  return Checker(plan).run();
}

std::vector<std::string> check_plan(const Plan& plan) {
  std::vector<std::string> texts;
  for (PlanProblem& problem : plan_problems(plan)) texts.push_back(std::move(problem.text));
  return texts;
}

void require_sound(const Plan& plan) {
  const std::vector<std::string> problems = check_plan(plan);
  HDPSIM_CHECK(problems.empty(), "the plan of '{}' for step {}: {}", plan.policy, plan.step, joined(problems, "; "));
}

std::vector<std::string> over_capacity(const Plan& plan) {
  std::vector<std::string> problems;
  for (std::size_t id = 0; id < plan.micro_batches.size(); ++id) {
    if (std::string text = capacity_problem(plan, id); !text.empty()) problems.push_back(std::move(text));
  }
  return problems;
}

std::string capacity_excess(std::int64_t held, std::int64_t capacity) {
  return held <= capacity ? "" : fmt::format("{} of {} tokens on a rank", count_text(held), count_text(capacity));
}

}  // namespace hdpsim
