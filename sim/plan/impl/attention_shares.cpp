#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "sim/plan/impl/attention_servers.h"

namespace hdpsim {
namespace {

double pairs_of(const ServedShare& share) {
  Int128 pairs = 0;
  for (const CutPiece& piece : share.pieces) pairs += piece.pairs();
  return static_cast<double>(pairs);
}

// A share as a head and a tail, from which equal numbers of queries can leave where they are nearest to each other.
std::pair<CutPiece, CutPiece> head_and_tail(const ServedShare& share) {
  const CutPiece& whole = share.pieces.front();
  if (share.pieces.size() > 1) return {whole, share.pieces.back()};
  const std::int64_t head = whole.tokens - whole.tokens / 2;
  return {{whole.document, whole.begin, head}, {whole.document, whole.begin + head, whole.tokens - head}};
}

class ShareBalance {
 public:
  ShareBalance(const std::vector<std::int64_t>& lengths, const ServerRules& rules, std::vector<ServedShare>& shares)
      : lengths_(lengths), rules_(rules), shares_(shares), over_(static_cast<std::size_t>(rules.ranks)) {
    of_server_.resize(over_.size());
    double mean = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      over_[shares[i].server] += pairs_of(shares[i]);
      mean += pairs_of(shares[i]);
      of_server_[shares[i].server].insert(i);
    }
    mean /= static_cast<double>(rules.ranks);
    for (double& load : over_) load -= mean;
    enough_ = rules.tolerance * mean;
    least_prices_.resize(shares.size());
    for (std::size_t server = 0; server < over_.size(); ++server) offer_all_of(server);
  }

  void run() {
    std::vector<std::size_t> needy;
    for (std::size_t server = 0; server < over_.size(); ++server) {
      if (over_[server] < 0) needy.push_back(server);
    }
    std::stable_sort(needy.begin(), needy.end(), [&](std::size_t a, std::size_t b) { return over_[a] < over_[b]; });
    for (const std::size_t server : needy) {
      while (-over_[server] > enough_ && serve(server)) {
      }
    }
  }

 private:
  // What a share gives, and what its bytes are for each (query, key) pair: those of the queries, and of all keys of the
  // document.
  [[nodiscard]] double rate_of(const ServedShare& share) const {
    const auto [head, tail] = head_and_tail(share);
    return static_cast<double>(head.end() + tail.begin + 1);  // pairs of a query of each
  }
  [[nodiscard]] double price(const ServedShare& share, double amount) const {
    const auto keys = static_cast<double>(lengths_[share.pieces.front().document] + 1);
    return (amount / rate_of(share) * static_cast<double>(rules_.query_bytes) / 2 +
            keys * static_cast<double>(rules_.key_bytes)) /
           amount;
  }

  // A share costs least where it gives as much as its server has too much. Offers are kept by that price.
  void offer_all_of(std::size_t server) {
    for (const std::size_t i : of_server_[server]) {
      withdraw(i);
      const double most = std::min(over_[server], pairs_of(shares_[i]));
      if (most <= 0) continue;
      least_prices_[i] = price(shares_[i], most);
      offers_.emplace(*least_prices_[i], i);
    }
  }
  void withdraw(std::size_t share) {
    if (least_prices_[share]) offers_.erase({*least_prices_[share], share});
    least_prices_[share].reset();
  }

  // The cheapest share, the first of equals.
  [[nodiscard]] std::optional<std::size_t> cheapest(double need) const {
    std::optional<std::pair<double, std::size_t>> best;
    for (const auto& [least, i] : offers_) {
      constexpr double rounding = 1 + 1e-12;
      if (best && least > best->first * rounding) break;
      const double amount = std::min({over_[shares_[i].server], need, pairs_of(shares_[i])});
      const std::pair offer{price(shares_[i], amount), i};
      if (!best || offer < *best) best = offer;
    }
    return best ? std::optional(best->second) : std::nullopt;
  }

  // False if nothing can move.
  bool serve(std::size_t server) {
    const double need = -over_[server];
    const std::optional<std::size_t> chosen = cheapest(need);
    if (!chosen) return false;
    const std::size_t from = shares_[*chosen].server;
    const double all = pairs_of(shares_[*chosen]);
    const double amount = std::min({over_[from], need, all});
    double moved = all;
    if (amount >= all) {
      of_server_[from].erase(*chosen);
      of_server_[server].insert(*chosen);
      shares_[*chosen].server = server;
      withdraw(*chosen);
    } else {
      const double rate = rate_of(shares_[*chosen]);
      auto queries = static_cast<std::int64_t>(amount / rate);
      if (static_cast<double>(queries) * rate > amount) --queries;
      if (queries <= 0) return false;
      shares_.push_back(split_off(shares_[*chosen], queries, server));
      least_prices_.emplace_back();
      of_server_[server].insert(shares_.size() - 1);
      moved = pairs_of(shares_.back());
    }
    over_[from] -= moved;
    over_[server] += moved;
    offer_all_of(from);
    offer_all_of(server);
    return true;
  }

  // The last queries of the head and the first of the tail.
  static ServedShare split_off(ServedShare& share, std::int64_t queries, std::size_t server) {
    auto [head, tail] = head_and_tail(share);
    head.tokens -= queries;
    ServedShare moved{
        share.holder, server, {{head.document, head.end(), queries}, {tail.document, tail.begin, queries}}};
    tail.begin += queries;
    tail.tokens -= queries;
    share.pieces = {head, tail};
    return moved;
  }

  const std::vector<std::int64_t>& lengths_;
  const ServerRules& rules_;
  std::vector<ServedShare>& shares_;
  std::vector<double> over_;                         // pairs by server, over the mean
  double enough_ = 0;                                // a server may lack so many pairs
  std::vector<std::set<std::size_t>> of_server_;     // shares
  std::vector<std::optional<double>> least_prices_;  // by share that may give some
  std::set<std::pair<double, std::size_t>> offers_;  // these with the shares
};

}  // namespace

void balance_shares(const std::vector<std::int64_t>& lengths, const ServerRules& rules,
                    std::vector<ServedShare>& shares) {
  ShareBalance(lengths, rules, shares).run();
}

}  // namespace hdpsim
