#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/plan/impl/group_cuts.h"
#include "sim/plan/served_cut.h"

namespace hdpsim {
namespace {

/// Tokens of parts that are sent, range by range of the pack.
class SentTokens {
 public:
  explicit SentTokens(const PartDealing& parts, std::int64_t count)
      : parts_(parts), covers_(static_cast<std::size_t>(count) + 1), uncovered_(static_cast<std::size_t>(count)) {}

  // The tokens [begin, end) of the pack, at least one. O(log parts).
  void add(std::int64_t begin, std::int64_t end) {
    const std::int64_t first = part_of(begin);
    const std::int64_t last = part_of(end - 1);
    ++covers_[static_cast<std::size_t>(first)];
    --covers_[static_cast<std::size_t>(last) + 1];
    uncovered_[static_cast<std::size_t>(first)] += begin - parts_.begin(first);
    uncovered_[static_cast<std::size_t>(last)] += parts_.begin(last + 1) - end;
  }
  void take_back(std::int64_t part, std::int64_t tokens) { uncovered_[static_cast<std::size_t>(part)] += tokens; }

  // By part.
  [[nodiscard]] std::vector<std::int64_t> tokens() const {
    std::vector<std::int64_t> sums;
    std::int64_t covers = 0;
    for (std::size_t part = 0; part < uncovered_.size(); ++part) {
      covers += covers_[part];
      const auto place = static_cast<std::int64_t>(part);
      sums.push_back(covers * (parts_.begin(place + 1) - parts_.begin(place)) - uncovered_[part]);
    }
    return sums;
  }

 private:
  [[nodiscard]] std::int64_t part_of(std::int64_t token) const {
    std::int64_t first = 0;
    for (std::int64_t count = std::ssize(uncovered_); count > 0;) {
      const std::int64_t half = count / 2;
      const bool is_before = parts_.begin(first + half + 1) <= token;
      first = is_before ? first + half + 1 : first;
      count = is_before ? count - half - 1 : half;
    }
    return first;
  }

  const PartDealing& parts_;
  std::vector<std::int64_t> covers_;     // differences of the number of ranges from part to part
  std::vector<std::int64_t> uncovered_;  // tokens of a part that ranges over it do not include
};

class Served final : public GroupCut {
 public:
  Served(const std::vector<std::int64_t>& lengths, std::int64_t ranks, const std::vector<ServedQueries>& moved)
      : ranks_(ranks), pack_(lengths), parts_(pack_.tokens(), ranks, 0), moved_(moved) {}

  [[nodiscard]] std::int64_t ranks() const override { return ranks_; }
  [[nodiscard]] std::int64_t chunks() const override { return 2 * ranks_; }
  [[nodiscard]] std::vector<std::int64_t> chunks_of(std::int64_t rank) const override { return {rank, ranks_ + rank}; }
  [[nodiscard]] std::vector<CutPiece> pieces(std::int64_t chunk) const override {
    return pack_.pieces(parts_.begin(chunk), parts_.begin(chunk + 1));
  }
  [[nodiscard]] std::vector<RankWork> work() const override {
    std::vector<RankWork> all(static_cast<std::size_t>(ranks_));
    for (const ServedHalf& half : halves()) {
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        for (const CutPiece& piece : half.attended[rank]) all[rank].pairs += piece.pairs();
        all[rank].remote_keys += half.received_keys[rank];
      }
    }
    for (std::int64_t part = 0; part < chunks(); ++part) {
      all[static_cast<std::size_t>(part % ranks_)].tokens += parts_.begin(part + 1) - parts_.begin(part);
    }
    return all;
  }

  [[nodiscard]] std::array<ServedHalf, 2> halves() const {
    std::array<ServedHalf, 2> both;
    auto next = moved_.begin();
    for (std::size_t half = 0; half < both.size(); ++half) {
      both[half].attended.resize(static_cast<std::size_t>(ranks_));
      const std::int64_t first = static_cast<std::int64_t>(half) * ranks_;
      attend(both[half], first, next);
      count_keys(both[half]);
    }
    return both;
  }

 private:
  using Moved = std::vector<ServedQueries>::const_iterator;

  // Who attends to the queries of the N parts from `first` on. `next` is the first of the moved queries that do not
  // precede them.
  void attend(ServedHalf& half, std::int64_t first, Moved& next) const {
    std::vector<std::int64_t> sent(half.attended.size());
    std::vector<std::int64_t> received(half.attended.size());
    for (std::size_t holder = 0; holder < sent.size(); ++holder) {
      for (const CutPiece& piece : pieces(first + static_cast<std::int64_t>(holder))) {
        for_each_server(piece, next, [&](std::int64_t begin, std::int64_t end, std::optional<std::size_t> server) {
          const std::size_t at = server.value_or(holder);
          half.attended[at].push_back({piece.document, begin, end - begin});
          if (at == holder) return;
          sent[holder] += end - begin;
          received[at] += end - begin;
        });
      }
    }
    for (std::size_t rank = 0; rank < sent.size(); ++rank) {
      half.queries = std::max({half.queries, sent[rank], received[rank]});
      std::sort(half.attended[rank].begin(), half.attended[rank].end(), [](const CutPiece& a, const CutPiece& b) {
        return std::tie(a.document, a.begin) < std::tie(b.document, b.begin);
      });
    }
  }

  // Calls visit(begin, end, server) for the parts of a piece that one rank attends to, its holder if none is
  // stated.
  template <class Visit>
  void for_each_server(const CutPiece& piece, Moved& next, Visit visit) const {
    const auto precedes = [&](const ServedQueries& queries) {
      return std::pair(queries.span, queries.end()) <= std::pair(piece.document, piece.begin);
    };
    while (next != moved_.end() && precedes(*next)) ++next;
    std::int64_t at = piece.begin;
    for (auto queries = next; queries != moved_.end() && queries->span == piece.document; ++queries) {
      if (queries->begin >= piece.end()) break;
      if (queries->begin > at) visit(at, queries->begin, std::nullopt);
      const std::int64_t end = std::min(queries->end(), piece.end());
      visit(std::max(at, queries->begin), end, std::optional(queries->server));
      at = end;
    }
    if (at < piece.end()) visit(at, piece.end(), std::nullopt);
  }

  // A server receives of every document the keys up to its last query of it which it does not hold.
  void count_keys(ServedHalf& half) const {
    SentTokens sent(parts_, chunks());
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      std::int64_t& received = half.received_keys.emplace_back();
      const std::vector<CutPiece>& pieces = half.attended[static_cast<std::size_t>(rank)];
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (i + 1 < pieces.size() && pieces[i + 1].document == pieces[i].document) continue;
        const std::int64_t begin = pack_.begin(pieces[i].document);
        const std::int64_t end = begin + pieces[i].end();
        sent.add(begin, end);
        received += end - begin;
        for (const std::int64_t own : chunks_of(rank)) {
          const std::int64_t held = std::min(end, parts_.begin(own + 1)) - std::max(begin, parts_.begin(own));
          if (held <= 0) continue;
          sent.take_back(own, held);
          received -= held;
        }
      }
      half.keys = std::max(half.keys, received);
    }
    const std::vector<std::int64_t> part_tokens = sent.tokens();
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      const auto first = static_cast<std::size_t>(rank);
      half.keys = std::max(half.keys, part_tokens[first] + part_tokens[static_cast<std::size_t>(ranks_) + first]);
    }
  }

  std::int64_t ranks_;
  Pack pack_;
  PartDealing parts_;
  std::vector<ServedQueries> moved_;
};

// The problems of queries that move, whatever others move.
void add_problems(const MicroBatch& micro_batch, const ServedQueries& queries, std::vector<std::string>& problems) {
  if (queries.server >= micro_batch.group.size()) {
    problems.push_back(fmt::format("moves queries to rank {} of its {}", queries.server, micro_batch.group.size()));
  }
  if (queries.span >= micro_batch.spans.size()) {
    problems.push_back(fmt::format("moves queries of span {} of its {}", queries.span, micro_batch.spans.size()));
    return;
  }
  const std::int64_t tokens = micro_batch.spans[queries.span].tokens;
  if (queries.begin >= 0 && queries.tokens >= 1 && queries.tokens <= tokens &&
      queries.begin <= tokens - queries.tokens) {
    return;
  }
  problems.push_back(fmt::format("moves {} queries from {} of span {}, which has {} tokens", queries.tokens,
                                 queries.begin, queries.span, tokens));
}

}  // namespace

std::unique_ptr<GroupCut> served_cut(const std::vector<std::int64_t>& lengths, std::int64_t ranks,
                                     const std::vector<ServedQueries>& moved) {
  return std::make_unique<Served>(lengths, ranks, moved);
}

std::vector<std::string> served_problems(const MicroBatch& micro_batch) {
  std::vector<std::string> problems;
  const std::vector<ServedQueries>& moved = micro_batch.moved;
  const bool is_served = micro_batch.cut == TokenCut::served && micro_batch.group.size() > 1;
  if (!moved.empty() && micro_batch.cut != TokenCut::served) {
    problems.emplace_back("moves queries, and has a cut that is not served");
  }
  if (is_served && micro_batch.offloads()) {
    problems.emplace_back("is served and offloads activations, which is not known of its halves");
  }
  if (is_served && micro_batch.tokens() < 2 * std::ssize(micro_batch.group)) {
    problems.push_back(
        fmt::format("is served with less than two tokens on each of its {} ranks", micro_batch.group.size()));
  }
  for (std::size_t i = 0; i < moved.size(); ++i) {
    add_problems(micro_batch, moved[i], problems);
    if (moved[i].span >= micro_batch.spans.size() || i == 0) continue;
    if (std::pair(moved[i - 1].span, moved[i - 1].end()) > std::pair(moved[i].span, moved[i].begin)) {
      problems.push_back(fmt::format("moves queries from {} of span {} twice", moved[i].begin, moved[i].span));
    }
  }
  return problems;
}

OwnExchange own_exchange_load(const MicroBatch& micro_batch, KeyExchange exchange) {
  const std::array<ServedHalf, 2> halves = served_halves(micro_batch);
  return {exchange, std::max(halves[0].queries, halves[1].queries), std::max(halves[0].keys, halves[1].keys)};
}

std::array<ServedHalf, 2> served_halves(const MicroBatch& micro_batch) {
  return Served(span_lengths(micro_batch), std::ssize(micro_batch.group), micro_batch.moved).halves();
}

std::vector<std::vector<CutPiece>> served_parts(const std::vector<std::int64_t>& lengths, std::int64_t ranks) {
  const Served cut(lengths, ranks, {});
  std::vector<std::vector<CutPiece>> parts;
  for (std::int64_t part = 0; part < cut.chunks(); ++part) parts.push_back(cut.pieces(part));
  return parts;
}

}  // namespace hdpsim
