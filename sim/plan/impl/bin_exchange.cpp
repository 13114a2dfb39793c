#include "sim/plan/impl/bin_exchange.h"

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/plan/impl/loads.h"

namespace hdpsim {
namespace {

constexpr std::size_t partner_bins = 16;  // bins with which the last one may exchange items
constexpr std::size_t most_paired = 32;   // items of a bin that exchanges pairs
constexpr std::ptrdiff_t near_best = 3;   // looked at on each side of the answer that would let both bins end together
constexpr int random_exchanges = 3;       // before a search starts again
constexpr double least_gain = 1e-9;       // as a share, so that rounding does not keep a search going

/// Up to two items of one bin that another one may get, the larger one first.
struct MovedItems {
  std::array<std::size_t, 2> items{};
  std::size_t count = 0;
  std::int64_t tokens = 0;
  double in_from = 0;  ///< Their cost in the bin that ends last,
  double in_to = 0;    ///< and in the other one.
  double moved = 0;    ///< By how much the ends of both come closer together if the last one gives them.

  [[nodiscard]] bool has(std::size_t item) const {
    return (count > 0 && items[0] == item) || (count > 1 && items[1] == item);
  }
};

struct Exchange {
  double end = never;  ///< The later one of both bins.
  std::size_t to = 0;
  MovedItems given;
  MovedItems taken;
};

/// All exchanges of the bin that ends last with another one.
class Pairing {
 public:
  Pairing(const std::vector<Bin>& bins, std::size_t from, std::size_t to, const ItemCosts& costs)
      : from_(bins[from]),
        to_(bins[to]),
        index_(to),
        from_costs_(costs.of_kind[from_.kind]),
        to_costs_(costs.of_kind[to_.kind]),
        costs_(costs) {}

  /// Replaces `best` by a better one.
  void search(Exchange& best, std::int64_t& budget) const {
    std::vector<MovedItems> taken = parts_of(to_);
    taken.push_back({});
    std::sort(taken.begin(), taken.end(), [](const MovedItems& a, const MovedItems& b) { return a.moved < b.moved; });
    const double gap = from_.end(costs_) - to_.end(costs_);
    for (const MovedItems& given : parts_of(from_)) {
      const auto at = std::lower_bound(taken.begin(), taken.end(), given.moved - gap,
                                       [](const MovedItems& part, double moved) { return part.moved < moved; });
      const auto first = at - std::min(near_best, at - taken.begin());
      const auto last = at + std::min(near_best, taken.end() - at);
      for (auto part = first; part != last; ++part) compare(given, *part, best);
      budget -= last - first;
    }
    budget -= std::ssize(taken);
  }

  /// Whether both bins have room for what they get.
  [[nodiscard]] bool allows(const MovedItems& given, const MovedItems& taken) const {
    return fits(from_, given, taken) && fits(to_, taken, given);
  }
  /// One item of a bin; none if it has no such place.
  [[nodiscard]] MovedItems single(const Bin& bin, std::size_t place) const {
    return place < bin.items.size() ? with({}, bin.items[place]) : MovedItems{};
  }

 private:
  [[nodiscard]] std::vector<MovedItems> parts_of(const Bin& bin) const {
    std::vector<MovedItems> parts;
    for (const std::size_t item : bin.items) parts.push_back(with({}, item));
    if (bin.items.size() > most_paired) return parts;
    const std::size_t singles = parts.size();
    for (std::size_t i = 0; i < singles; ++i) {
      for (std::size_t j = i + 1; j < singles; ++j) parts.push_back(with(parts[i], bin.items[j]));
    }
    return parts;
  }

  [[nodiscard]] MovedItems with(MovedItems part, std::size_t item) const {
    part.items[part.count++] = item;
    part.tokens += costs_.tokens[item];
    part.in_from += from_costs_[item];
    part.in_to += to_costs_[item];
    part.moved = from_.weight * part.in_from + to_.weight * part.in_to;
    return part;
  }

  void compare(const MovedItems& given, const MovedItems& taken, Exchange& best) const {
    if (!allows(given, taken)) return;
    const double from_end = end_of(from_, from_costs_, from_.cost - given.in_from + taken.in_from, given, taken);
    if (from_end >= best.end) return;
    const double end = std::max(from_end, end_of(to_, to_costs_, to_.cost - taken.in_to + given.in_to, taken, given));
    if (end < best.end) best = {end, index_, given, taken};
  }

  [[nodiscard]] bool fits(const Bin& bin, const MovedItems& gone, const MovedItems& come) const {
    return bin.tokens - gone.tokens + come.tokens <= bin.room &&
           (come.count == 0 || costs_.tokens[come.items[0]] <= bin.longest);
  }

  // With other items: without those of `gone`, and with those of `come`.
  [[nodiscard]] static double end_of(const Bin& bin, const std::vector<double>& costs, double cost,
                                     const MovedItems& gone, const MovedItems& come) {
    if (bin.items.size() + come.count == gone.count) return 0;
    const double end = bin.weight * (cost + bin.fixed);
    if (bin.tail == 0) return end;
    double largest = 0;
    for (std::size_t i = 0; i < come.count; ++i) largest = std::max(largest, costs[come.items[i]]);
    const auto stays =
        std::find_if(bin.items.begin(), bin.items.end(), [&](std::size_t item) { return !gone.has(item); });
    if (stays != bin.items.end()) largest = std::max(largest, costs[*stays]);
    return end + bin.tail * largest;
  }

  const Bin& from_;
  const Bin& to_;
  std::size_t index_;
  const std::vector<double>& from_costs_;
  const std::vector<double>& to_costs_;
  const ItemCosts& costs_;
};

// The sums are taken anew, so that they do not depend on the exchanges that led here.
void replace(Bin& bin, const MovedItems& gone, const MovedItems& come, const ItemCosts& costs) {
  std::vector<std::size_t> items;
  for (const std::size_t item : bin.items) {
    if (!gone.has(item)) items.push_back(item);
  }
  items.insert(items.end(), come.items.begin(), come.items.begin() + static_cast<std::ptrdiff_t>(come.count));
  std::sort(items.begin(), items.end());
  bin.items.clear();
  bin.cost = 0;
  bin.tokens = 0;
  for (const std::size_t item : items) bin.add(item, costs);
}

// A few items, the first one of the bin that ends last, change places with those of other bins, or simply move there.
void disturb(std::vector<Bin>& bins, const ItemCosts& costs, RandomStream& random) {
  std::size_t from = 0;
  for (std::size_t i = 1; i < bins.size(); ++i) {
    if (bins[i].end(costs) > bins[from].end(costs)) from = i;
  }
  for (int i = 0; i < random_exchanges; ++i) {
    const std::size_t to = (from + 1 + random.below(bins.size() - 1)) % bins.size();
    const Pairing pairing(bins, from, to, costs);
    const MovedItems given = pairing.single(bins[from], random.below(bins[from].items.size() + 1));
    const MovedItems taken = pairing.single(bins[to], random.below(bins[to].items.size() + 1));
    if (pairing.allows(given, taken)) {
      replace(bins[from], given, taken, costs);
      replace(bins[to], taken, given, costs);
    }
    from = random.below(bins.size());
  }
}

class BinExchange final : public ExchangeSearch {
 public:
  BinExchange(std::vector<Bin>& bins, const ItemCosts& costs, double enough, std::int64_t& budget)
      : ExchangeSearch(partner_bins), bins_(bins), costs_(costs), enough_(enough), budget_(budget) {
    ends_.reserve(bins.size());
    for (const Bin& bin : bins) ends_.push_back(bin.end(costs));
  }

 private:
  [[nodiscard]] bool is_enough(double last_end) override { return budget_ <= 0 || last_end <= enough_; }

  bool exchange(std::size_t from, std::span<const std::size_t> partners) override {
    budget_ -= std::ssize(bins_);
    Exchange best;
    const double unchanged = best.end = ends_[from] * (1 - least_gain);
    for (const std::size_t to : partners) Pairing(bins_, from, to, costs_).search(best, budget_);
    if (best.end >= unchanged) return false;
    replace(bins_[from], best.given, best.taken, costs_);
    replace(bins_[best.to], best.taken, best.given, costs_);
    ends_[from] = bins_[from].end(costs_);
    ends_[best.to] = bins_[best.to].end(costs_);
    return true;
  }

  std::vector<Bin>& bins_;
  const ItemCosts& costs_;
  double enough_;
  std::int64_t& budget_;
};

/// Values that stay together. `places` is in the order in which they came, which decides between equal sums.
struct FilledBin {
  ExactWork sum = 0;
  std::list<std::size_t> places;

  void append(FilledBin&& other) {
    sum += other.sum;
    places.splice(places.end(), other.places);
  }
};

bool operator>(const FilledBin& a, const FilledBin& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  if (a.places.size() != b.places.size()) return a.places.size() > b.places.size();
  return a.places > b.places;
}

struct Descending {
  bool operator()(const FilledBin& a, const FilledBin& b) const { return a > b; }
};

/// `parts` bins, of which only those that are not empty exist.
class State {
 public:
  explicit State(std::size_t parts) : parts_(parts) {}

  void add(FilledBin bin) { bins_.insert(std::move(bin)); }

  [[nodiscard]] ExactWork spread() const {
    const ExactWork least = bins_.size() < parts_ ? 0 : bins_.rbegin()->sum;
    return bins_.begin()->sum - least;
  }
  [[nodiscard]] const FilledBin& largest() const { return *bins_.begin(); }
  [[nodiscard]] const std::multiset<FilledBin, Descending>& bins() const { return bins_; }

  // The i-th largest bin of this state and the i-th smallest of the other become one. Pairs are formed from the state
  // with fewer bins, so that most bins of the other stay where they are.
  void join(State&& other) {
    const bool other_is_smaller = other.bins_.size() <= bins_.size();
    if (!other_is_smaller) std::swap(bins_, other.bins_);
    std::size_t empty = parts_ - bins_.size();
    std::vector<FilledBin> joined;
    while (!other.bins_.empty()) {
      FilledBin bin = std::move(other.bins_.extract(other.bins_.begin()).value());
      if (empty > 0) {
        --empty;
      } else {
        FilledBin smallest = std::move(bins_.extract(std::prev(bins_.end())).value());
        if (other_is_smaller) std::swap(bin, smallest);
        bin.append(std::move(smallest));
      }
      joined.push_back(std::move(bin));
    }
    for (FilledBin& bin : joined) bins_.insert(std::move(bin));
  }

 private:
  std::size_t parts_;
  std::multiset<FilledBin, Descending> bins_;
};

// The state to join first: the one of the largest spread or, of equal ones, of the largest bin.
struct JoinedFirst {
  bool operator()(const std::unique_ptr<State>& a, const std::unique_ptr<State>& b) const {
    if (a->spread() != b->spread()) return a->spread() > b->spread();
    return a->largest() > b->largest();
  }
};
using States = std::multiset<std::unique_ptr<State>, JoinedFirst>;

States first_states(std::span<const ExactWork> values, std::size_t parts, bool equal_sizes) {
  std::vector<std::size_t> ascending(values.size());
  for (std::size_t i = 0; i < ascending.size(); ++i) ascending[i] = i;
  std::stable_sort(ascending.begin(), ascending.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  const std::size_t together = equal_sizes ? parts : 1;
  States states;
  for (std::size_t first = 0; first < ascending.size(); first += together) {
    auto state = std::make_unique<State>(parts);
    for (std::size_t i = first; i < first + together; ++i) state->add({values[ascending[i]], {ascending[i]}});
    states.insert(std::move(state));
  }
  return states;
}

std::unique_ptr<State> taken(States& states) {
  return std::move(states.extract(states.begin()).value());
}

}  // namespace

void ExchangeSearch::run() {
  std::vector<std::size_t> order(ends_.size());
  const auto ends_earlier = [&](std::size_t a, std::size_t b) {
    return std::pair(ends_[a], a) < std::pair(ends_[b], b);
  };
  while (true) {
    const auto from = static_cast<std::size_t>(std::max_element(ends_.begin(), ends_.end()) - ends_.begin());
    if (is_enough(ends_[from])) return;
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(partners_, order.size()));
    std::partial_sort(order.begin(), middle, order.end(), ends_earlier);
    const auto others = std::remove(order.begin(), middle, from);
    if (!exchange(from, std::span(order).first(static_cast<std::size_t>(others - order.begin())))) return;
  }
}

void Bin::add(std::size_t item, const ItemCosts& costs) {
  cost += costs.of_kind[kind][item];
  tokens += costs.tokens[item];
  items.push_back(item);
}

double Bin::end(const ItemCosts& costs) const {
  return items.empty() ? 0 : weight * (cost + fixed) + tail * costs.of_kind[kind][items.front()];
}

double last_end(const std::vector<Bin>& bins, const ItemCosts& costs) {
  double last = 0;
  for (const Bin& bin : bins) last = std::max(last, bin.end(costs));
  return last;
}

void exchange_items(std::vector<Bin>& bins, const ItemCosts& costs, double enough, std::int64_t& budget) {
  if (bins.size() >= 2) BinExchange(bins, costs, enough, budget).run();
}

void exchange_with_restarts(std::vector<Bin>& bins, const ItemCosts& costs, double enough, int restarts,
                            std::int64_t& budget) {
  if (bins.size() < 2) return;
  exchange_items(bins, costs, enough, budget);
  RandomStream random(1, "exchanges of items between bins");
  double end = last_end(bins, costs);
  for (int i = 0; i < restarts && budget > 0 && end > enough; ++i) {
    std::vector<Bin> other = bins;
    disturb(other, costs, random);
    exchange_items(other, costs, enough, budget);
    const double other_end = last_end(other, costs);
    if (other_end >= end) continue;
    end = other_end;
    bins = std::move(other);
  }
}

std::vector<std::vector<std::size_t>> largest_differencing(std::span<const ExactWork> values, std::size_t parts,
                                                           bool equal_sizes) {
  HDPSIM_CHECK(parts > 0 && (!equal_sizes || values.size() % parts == 0), "{} values in {} equal parts", values.size(),
               parts);
  std::vector<std::vector<std::size_t>> result;
  States states = first_states(values, parts, equal_sizes);
  while (states.size() > 1) {
    std::unique_ptr<State> first = taken(states);
    first->join(std::move(*taken(states)));
    states.insert(std::move(first));
  }
  if (!states.empty()) {
    for (const FilledBin& bin : (*states.begin())->bins()) {
      result.emplace_back(bin.places.begin(), bin.places.end());
      std::sort(result.back().begin(), result.back().end());
    }
  }
  result.resize(parts);
  return result;
}

}  // namespace hdpsim
