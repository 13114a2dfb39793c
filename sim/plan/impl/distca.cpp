#include "sim/plan/impl/attention_servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/base/division.h"
#include "sim/plan/impl/loads.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/served_cut.h"

namespace hdpsim {
namespace {

/// Queries of one document on the rank that holds them, as far as they have not moved.
struct Item {
  std::size_t holder = 0;
  CutPiece piece;
};

double pairs_in(const CutPiece& piece) {
  return static_cast<double>(piece.pairs());
}

// The real number n of first tokens that have n (n + 1) / 2 = `pairs` pairs.
double tokens_with(double pairs) {
  return (std::sqrt(1 + 8 * std::max(0.0, pairs)) - 1) / 2;
}

double pairs_of_first(std::int64_t tokens) {
  const auto count = static_cast<double>(tokens);
  return count * (count + 1) / 2;
}

/// One half of a pack.
class HalfSchedule {
 public:
  HalfSchedule(const ServerRules& rules, const std::vector<CutPiece>* parts, std::vector<ServedQueries>& moved)
      : rules_(rules), moved_(moved), loads_(static_cast<std::size_t>(rules.ranks)), held_(loads_.size()) {
    for (std::size_t rank = 0; rank < loads_.size(); ++rank) {
      held_[rank] = parts[rank];
      for (const CutPiece& piece : parts[rank]) {
        loads_[rank] += pairs_in(piece);
        mean_ += pairs_in(piece);
      }
    }
    mean_ /= static_cast<double>(rules.ranks);
    for (std::size_t rank = 0; rank < loads_.size(); ++rank) {
      if (!has_too_much(rank)) continue;
      for (const CutPiece& piece : parts[rank]) items_.push_back({rank, piece});
    }
  }

  void run() {
    for (const std::size_t server : least_first()) {
      if (items_.empty()) return;
      serve(server);
    }
  }

 private:
  /// What could move to a server, and the pairs per byte.
  struct Offer {
    std::size_t item = 0;
    CutPiece queries;
    double value = 0;
  };

  [[nodiscard]] bool has_too_much(std::size_t rank) const { return loads_[rank] > mean_ * (1 + rules_.tolerance); }

  [[nodiscard]] std::vector<std::size_t> least_first() const {
    std::vector<std::size_t> servers;
    for (std::size_t rank = 0; rank < loads_.size(); ++rank) {
      if (loads_[rank] < mean_) servers.push_back(rank);
    }
    std::stable_sort(servers.begin(), servers.end(),
                     [&](std::size_t a, std::size_t b) { return loads_[a] < loads_[b]; });
    return servers;
  }

  void serve(std::size_t server) {
    known_.clear();
    for (const CutPiece& piece : held_[server]) known_[piece.document] = piece.end();
    while (loads_[server] < mean_) {
      const std::optional<Offer> best = best_offer(mean_ - loads_[server]);
      if (!best) return;
      take(server, *best);
    }
  }

  [[nodiscard]] std::optional<Offer> best_offer(double lacking) const {
    std::optional<Offer> best;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      // A query costs its bytes and has no more pairs than the last one.
      const double at_most = static_cast<double>(item.piece.end()) / static_cast<double>(rules_.query_bytes);
      if (best && at_most <= best->value) continue;
      const double most = std::min(lacking, loads_[item.holder] - mean_);
      for (const CutPiece& queries : movable(item.piece, most)) {
        if (queries.tokens == 0) continue;
        const double value = pairs_in(queries) / bytes_of(queries);
        if (!best || value > best->value) best = {i, queries, value};
      }
    }
    return best;
  }

  // The whole of the queries where they have no more than so many pairs, otherwise their first or their last tiles.
  // Some of these have no tokens.
  [[nodiscard]] std::array<CutPiece, 2> movable(const CutPiece& piece, double most) const {
    if (pairs_in(piece) <= most) return {piece, CutPiece{}};
    const auto in_tiles = [&](double tokens) {
      return static_cast<std::int64_t>(tokens) / rules_.tile_tokens * rules_.tile_tokens;
    };
    const auto begin = static_cast<double>(piece.begin);
    const auto end = static_cast<double>(piece.end());
    const auto within = [&](std::int64_t tokens) { return std::clamp<std::int64_t>(tokens, 0, piece.tokens); };
    const std::int64_t first = within(in_tiles(tokens_with(pairs_of_first(piece.begin) + most) - begin));
    const std::int64_t last = within(in_tiles(end - std::ceil(tokens_with(pairs_of_first(piece.end()) - most))));
    return {CutPiece{piece.document, piece.begin, first}, CutPiece{piece.document, piece.end() - last, last}};
  }

  // Queries and outputs, and the keys that the server has not for other queries of the document.
  [[nodiscard]] double bytes_of(const CutPiece& queries) const {
    const auto known = known_.find(queries.document);
    const std::int64_t keys = std::max<std::int64_t>(0, queries.end() - (known == known_.end() ? 0 : known->second));
    return static_cast<double>(queries.tokens) * static_cast<double>(rules_.query_bytes) +
           static_cast<double>(keys) * static_cast<double>(rules_.key_bytes);
  }

  void take(std::size_t server, const Offer& offer) {
    Item& item = items_[offer.item];
    const std::size_t holder = item.holder;
    moved_.push_back({offer.queries.document, offer.queries.begin, offer.queries.tokens, server});
    std::int64_t& known = known_[offer.queries.document];
    known = std::max(known, offer.queries.end());
    loads_[server] += pairs_in(offer.queries);
    loads_[holder] -= pairs_in(offer.queries);
    if (offer.queries.begin == item.piece.begin) item.piece.begin = offer.queries.end();
    item.piece.tokens -= offer.queries.tokens;
    const bool is_done = !has_too_much(holder);
    std::erase_if(items_, [&](const Item& i) { return i.piece.tokens == 0 || (is_done && i.holder == holder); });
  }

  const ServerRules& rules_;
  std::vector<ServedQueries>& moved_;
  double mean_ = 0;            // pairs
  std::vector<double> loads_;  // pairs, by rank
  std::vector<std::vector<CutPiece>> held_;
  std::vector<Item> items_;                    // of ranks with too much
  std::map<std::size_t, std::int64_t> known_;  // by document, the keys that the server being served has anyway
};

// One half of a pack, by the code's planner.
void move_as_code(const std::vector<std::int64_t>& lengths, const ServerRules& rules,
                  const std::vector<CutPiece>* parts, std::vector<ServedQueries>& moved) {
  std::vector<ServedShare> shares;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(rules.ranks); ++rank) {
    for (const CutPiece& piece : parts[rank]) shares.push_back({rank, rank, {piece}});
  }
  balance_shares(lengths, rules, shares);
  for (const ServedShare& share : shares) {
    for (const CutPiece& piece : share.pieces) {
      if (share.server == share.holder || piece.tokens == 0) continue;
      moved.push_back({piece.document, piece.begin, piece.tokens, share.server});
    }
  }
}

/// DistCA (Zhuang et al. 2025, arXiv 2510.18121), core attention disaggregation: whole documents are packed, ranks hold
/// equal numbers of their tokens, whatever the documents, and attend for each other so that attention is equal, too.
///
/// The paper does not say which documents share a micro-batch. Here they are dealt to as few as hold them, longest
/// first to the one with fewest tokens, and within it in the same way to its halves. Micro-batches go to groups in
/// turn.
///
/// As in the authors' code (ServerRules::as_code), documents fill micro-batches and ranks in the order of the data. The
/// code gives a rank that holds part of a document as much of its end as of its begin, which TokenCut::served does not:
/// here it holds consecutive tokens, and gives queries from their middle.
class DistCa final : public BuildingPlanner {
 public:
  DistCa(const PlanningContext& context, const ServerRules& rules)
      : BuildingPlanner("distca", context), rules_(rules) {}

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    std::int64_t next = 0;
    for (const SequenceList& pack : packs_of(batch)) {
      if (pack.empty()) continue;
      std::vector<std::int64_t> lengths;
      const SequenceList order = rules_.as_code ? pack : in_halves(batch, pack);
      for (const std::size_t sequence : order) lengths.push_back(batch.sequences[sequence].tokens);
      const auto first_rank = static_cast<std::size_t>(next++ % groups() * rules_.ranks);
      builder.add_served(first_rank, rules_.ranks, order, queries_to_move(lengths, rules_));
    }
  }

  [[nodiscard]] std::int64_t groups() const { return context_.ranks / rules_.ranks; }

  [[nodiscard]] std::vector<SequenceList> packs_of(const Batch& batch) const {
    const SequenceList sorted = longest_first(batch);
    const std::int64_t all = std::max<std::int64_t>(1, batch.tokens());
    // A group of any capacity needs no more room than for all.
    const std::int64_t room = context_.capacity > all / rules_.ranks ? all : context_.capacity * rules_.ranks;
    if (rules_.as_code) return in_data_order_to(batch, room);
    std::int64_t count = rounded_up(divided(all, room), groups());
    while (true) {
      std::vector<double> tokens(static_cast<std::size_t>(count));
      std::vector<SequenceList> packs = dealt(batch, sorted, tokens);
      if (*std::max_element(tokens.begin(), tokens.end()) <= static_cast<double>(room)) return packs;
      count = rounded_up(count + count / 8 + 1, groups());
    }
  }

  [[nodiscard]] static std::vector<SequenceList> in_data_order_to(const Batch& batch, std::int64_t room) {
    std::vector<SequenceList> packs;
    for (SequencePack& pack : next_fit(batch, in_data_order(batch), room)) packs.push_back(std::move(pack.sequences));
    return packs;
  }

  // To the pack with fewest tokens.
  [[nodiscard]] static std::vector<SequenceList> dealt(const Batch& batch, const SequenceList& longest_first,
                                                       std::vector<double>& tokens) {
    return deal_to_least_loaded(longest_first, tokens, [&](std::size_t sequence) {
      return static_cast<double>(batch.sequences[sequence].tokens);
    });
  }

  [[nodiscard]] static SequenceList in_halves(const Batch& batch, const SequenceList& pack) {
    std::vector<double> tokens(2);
    std::vector<SequenceList> halves = dealt(batch, pack, tokens);
    halves[0].insert(halves[0].end(), halves[1].begin(), halves[1].end());
    return std::move(halves[0]);
  }

  ServerRules rules_;
};

/// `distca: {servers: N, tolerance: 0.1, as: paper | code}`.
struct DistCaPolicy final : PolicyOptions {
  std::optional<std::int64_t> servers;
  double tolerance = 0.1;
  bool as_code = false;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const PlanningContext& context = pool.context();
    const Value& where = pool.where("servers");
    pool.require_servers(where);
    if (!servers) pool.require_room();
    const std::int64_t ranks = servers.value_or(context.ranks);
    if (ranks > context.ranks || context.ranks % ranks != 0) {
      pool.error(where,
                 fmt::format("'servers' is {}, which does not divide the pool of {} ranks", ranks, context.ranks),
                 "leave it out, or write a number that does");
    } else if (servers && (context.context - 1) / context.capacity >= ranks) {
      pool.error(where,
                 fmt::format("a context of {} tokens does not fit on {} ranks with {} tokens each", context.context,
                             ranks, context.capacity),
                 "use more ranks, a larger capacity or a shorter context");
    }
    return std::make_unique<DistCa>(
        context, ServerRules{ranks, context.served_bytes.query, context.served_bytes.key, tolerance, 128, as_code});
  }
};

}  // namespace

std::vector<ServedQueries> queries_to_move(const std::vector<std::int64_t>& lengths, const ServerRules& rules) {
  const std::vector<std::vector<CutPiece>> parts = served_parts(lengths, rules.ranks);
  std::vector<ServedQueries> moved;
  for (const std::int64_t first : {std::int64_t{0}, rules.ranks}) {
    if (rules.as_code) {
      move_as_code(lengths, rules, parts.data() + first, moved);
    } else {
      HalfSchedule(rules, parts.data() + first, moved).run();
    }
  }
  std::sort(moved.begin(), moved.end(), [](const ServedQueries& a, const ServedQueries& b) {
    return std::tie(a.span, a.begin) < std::tie(b.span, b.begin);
  });
  return moved;
}

PolicyKind distca_policy() {
  KeyTable<DistCaPolicy> keys("distca");
  keys.count("servers", {1, limits::most_tokens_of_sequence}, at(&DistCaPolicy::servers),
             "consecutive ranks that attend for each other", {.unit = "ranks", .otherwise = "all ranks of the pool"});
  keys.number("tolerance", {0, 1}, at(&DistCaPolicy::tolerance),
              "share by which a rank may attend to more (query, key) pairs than the mean rank");
  keys.word(
      "as", "description", {{"paper", false}, {"code", true}}, at(&DistCaPolicy::as_code),
      "the paper's scheduler, or that of the authors' code: documents in the order of the data, and each rank that "
      "lacks pairs is looked at once, without regard to which rank has most");
  return policy_kind(
      "distca",
      "DistCA: ranks hold equal numbers of tokens of packed documents and attend for each other, so that "
      "attention is equal, too; the messages of one half of a micro-batch overlap with the other half's kernels",
      std::move(keys));
}

}  // namespace hdpsim
