#include "sim/plan/impl/differencing.h"

#include <algorithm>
#include <list>
#include <memory>
#include <set>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

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
