#include "sim/network/fair_share.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// Rates are sums and quotients of a few numbers: values that differ by less than this count as equal.
constexpr double tolerance = 1e-12;
constexpr double infinity = std::numeric_limits<double>::infinity();

bool exceeds(double a, double b) {
  return a > b + tolerance * std::abs(b);
}

// Orders a heap anew whose front has become smaller. It mostly stays near the front: taking it off and putting it in
// again would move it through the whole heap.
template <class T>
void sink_front(std::vector<T>& heap) {
  const T sinking = heap.front();
  std::size_t hole = 0;
  for (std::size_t child = 1; child < heap.size(); child = 2 * hole + 1) {
    if (child + 1 < heap.size() && heap[child] < heap[child + 1]) ++child;
    if (!(sinking < heap[child])) break;
    heap[hole] = heap[child];
    hole = child;
  }
  heap[hole] = sinking;
}

}  // namespace

FairShare::FairShare(std::vector<double> capacities) : links_(capacities.size()) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    HDPSIM_CHECK(capacities[i] > 0, "link {} carries {} B/s", i, capacities[i]);
    links_[i].capacity = capacities[i];
  }
}

FairShare::Variable FairShare::add(std::span<const Link> links, double cap, double weight, std::int64_t multiplicity) {
  const Variable id = begin(links.size(), cap, weight, static_cast<double>(multiplicity));
  for (const Link link : links) take_seat(id, link, 1);
  return id;
}

FairShare::Variable FairShare::add_coupled(std::span<const Load> loads, double cap, double weight) {
  const Variable id = begin(loads.size(), cap, weight, 1);
  for (const Load& load : loads) take_seat(id, load.link, load.flows);
  return id;
}

FairShare::Variable FairShare::begin(std::size_t hops, double cap, double weight, double flows) {
  HDPSIM_CHECK(cap > 0 && weight > 0 && flows > 0, "{} flows of weight {} capped at {} B/s", flows, weight, cap);
  HDPSIM_CHECK(hops > 0 || std::isfinite(cap), "a flow over no link needs a cap");
  if (unused_.empty()) {
    unused_.push_back(static_cast<Variable>(variables_.size()));
    variables_.emplace_back();
    shares_.emplace_back();
  }
  const Variable id = unused_.back();
  unused_.pop_back();
  VariableState& variable = variables_[id];
  variable.hops.clear();
  variable.hops.reserve(hops);
  variable.cap = cap;
  variable.weight = weight;
  variable.flows = flows;
  variable.under_way = true;
  shares_[id] = {};
  arrived_.push_back(id);
  return id;
}

void FairShare::take_seat(Variable id, Link index, double flows) {
  HDPSIM_CHECK(index < links_.size() && flows > 0, "{} flows on link {} of {}", flows, index, links_.size());
  std::vector<Hop>& hops = variables_[id].hops;
  LinkState& link = links_[index];
  HDPSIM_CHECK(link.seats.empty() || link.seats.back().variable != id, "link {} twice in one route", index);
  const auto hop = static_cast<std::uint32_t>(hops.size());
  hops.push_back({index, static_cast<std::uint32_t>(link.seats.size()), flows});
  link.seats.push_back({id, hop, flows});
  mark(index);
}

void FairShare::remove(Variable id) {
  HDPSIM_CHECK(id < variables_.size() && variables_[id].under_way, "variable {} is not under way", id);
  VariableState& variable = variables_[id];
  for (const Hop& hop : variable.hops) {
    std::vector<Seat>& seats = links_[hop.link].seats;
    const Seat last = seats.back();
    seats[hop.place] = last;
    variables_[last.variable].hops[last.hop].place = hop.place;
    seats.pop_back();
    mark(hop.link);
  }
  variable.under_way = false;
  unused_.push_back(id);
}

double FairShare::rate(Variable id) {
  HDPSIM_CHECK(id < variables_.size() && variables_[id].under_way, "variable {} is not under way", id);
  settle();
  return shares_[id].level * variables_[id].weight;
}

std::optional<FairShare::Link> FairShare::bottleneck(Variable id) {
  HDPSIM_CHECK(id < variables_.size() && variables_[id].under_way, "variable {} is not under way", id);
  settle();
  const Link link = shares_[id].bottleneck;
  return link == no_link ? std::nullopt : std::optional(link);
}

double FairShare::load(Link link) {
  settle();
  double sum = 0;
  for (const Seat& seat : links_[link].seats) sum += shares_[seat.variable].rate * seat.flows;
  return sum;
}

void FairShare::take_changed(std::vector<Variable>& changed) {
  settle();
  changed.clear();
  for (const Variable id : changed_) {
    variables_[id].in_changed = false;
    if (variables_[id].under_way) changed.push_back(id);
  }
  changed_.clear();
  std::sort(changed.begin(), changed.end());
}

void FairShare::mark(Link link) {
  if (links_[link].dirty) return;
  links_[link].dirty = true;
  dirty_.push_back(link);
}

void FairShare::settle() {
  if (dirty_.empty() && arrived_.empty()) return;
  start_region();
  do fill();
  while (grow());
  commit();
}

void FairShare::start_region() {
  for (const Variable id : arrived_) {
    if (variables_[id].under_way) join(id);
  }
  for (const Link link : dirty_) {
    links_[link].dirty = false;
    for (const Seat& seat : links_[link].seats) {
      if (shares_[seat.variable].bottleneck == link) join(seat.variable);
    }
  }
  arrived_.clear();
  dirty_.clear();
}

void FairShare::join(Variable id) {
  if (shares_[id].place != nowhere) return;
  const auto place = static_cast<std::uint32_t>(region_.size());
  shares_[id].place = place;
  region_.push_back({id, static_cast<std::uint32_t>(region_hops_.size())});
  const VariableState& variable = variables_[id];
  Filling limit{variable.cap / variable.weight, no_link, id};
  for (const Hop& hop : variable.hops) {
    LinkState& link = links_[hop.link];
    const double load = variable.load_of(hop);
    if (link.seats.size() == 1) {
      const Filling own{link.capacity / load, hop.link, id};
      if (own.comes_before(limit)) limit = own;
      continue;
    }
    if (link.place == nowhere) {
      touch(hop.link);
    } else {
      region_links_[link.place].free += shares_[id].rate * hop.flows;
    }
    RegionLink& state = region_links_[link.place];
    state.weight += load;
    ++state.members;
    region_hops_.push_back({link.place, load});
  }
  if (std::isfinite(limit.level)) limits_.push_back(limit);
}

// All variables on the link count as fixed but the one that joins just now.
void FairShare::touch(Link link) {
  LinkState& state = links_[link];
  state.place = static_cast<std::uint32_t>(region_links_.size());
  RegionLink touched{link, state.capacity};
  for (const Seat& seat : state.seats) {
    if (shares_[seat.variable].place == nowhere) touched.free -= shares_[seat.variable].rate * seat.flows;
  }
  region_links_.push_back(touched);
}

// Progressive filling of the region. A link's level only rises while others freeze, so a level in the heap is a lower
// bound: an outdated one is pushed again.
void FairShare::fill() {
  start_filling();
  auto limits_end = limits_.end();  // what is taken off the heap stays behind it, for the next filling
  std::size_t open = region_.size();
  while (open > 0) {
    if (limits_end != limits_.begin() && (heap_.empty() || limits_.front().comes_before(heap_.front()))) {
      const Filling limit = limits_.front();
      std::pop_heap(limits_.begin(), limits_end--);
      const std::uint32_t place = shares_[limit.of].place;
      if (region_[place].frozen) continue;
      freeze(place, limit.level, limit.link);
      --open;
      continue;
    }
    HDPSIM_CHECK(!heap_.empty(), "{} flows that nothing holds back", open);
    Filling& lowest = heap_.front();
    RegionLink& state = region_links_[lowest.of];
    const double level = state.open == 0 ? lowest.level : std::max(0.0, state.left) / state.thawed;
    if (exceeds(level, lowest.level)) {
      lowest.level = level;
      sink_front(heap_);
      continue;
    }
    if (state.open > 0) open -= freeze_link(state, level);
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }
}

void FairShare::start_filling() {
  heap_.clear();
  for (std::uint32_t place = 0; place < region_links_.size(); ++place) {
    RegionLink& state = region_links_[place];
    state.left = std::max(0.0, state.free);
    state.thawed = state.weight;
    state.top = 0;
    state.open = state.members;
    state.binds = false;
    heap_.push_back({state.left / state.thawed, state.link, place});
  }
  std::make_heap(heap_.begin(), heap_.end());
  for (RegionVariable& variable : region_) variable.frozen = false;
  std::make_heap(limits_.begin(), limits_.end());
}

std::size_t FairShare::freeze_link(RegionLink& state, double level) {
  const std::size_t count = state.open;
  for (const Seat& seat : links_[state.link].seats) {
    const std::uint32_t place = shares_[seat.variable].place;
    if (place == nowhere || region_[place].frozen) continue;
    freeze(place, level, state.link);
    if (state.open == 0) break;
  }
  state.binds = true;
  state.left = 0;
  return count;
}

void FairShare::freeze(std::uint32_t place, double level, Link bottleneck) {
  RegionVariable& variable = region_[place];
  variable.frozen = true;
  variable.level = level;
  variable.bottleneck = bottleneck;
  for (const RegionHop& hop : hops_of(place)) {
    RegionLink& state = region_links_[hop.link];
    state.left -= level * hop.load;
    state.thawed -= hop.load;
    state.top = std::max(state.top, level);
    --state.open;
  }
}

std::span<const FairShare::RegionHop> FairShare::hops_of(std::uint32_t place) const {
  const std::size_t end = place + 1 < region_.size() ? region_[place + 1].first_hop : region_hops_.size();
  return std::span(region_hops_).subspan(region_[place].first_hop, end - region_[place].first_hop);
}

// True if a link of the region no longer justifies the rate of a fixed variable.
bool FairShare::is_violated(const Share& share, const RegionLink& state, bool is_full) {
  if (share.bottleneck == state.link && (!is_full || exceeds(state.top, share.level))) return true;
  // Where a variable of the region is held back, no other may have a higher level.
  return state.binds && exceeds(share.level, state.top);
}

bool FairShare::grow() {
  const std::size_t before = region_.size();
  const std::size_t links_before = region_links_.size();
  for (std::size_t i = 0; i < links_before; ++i) {
    const RegionLink state = region_links_[i];
    const LinkState& link = links_[state.link];
    if (state.members == link.seats.size()) continue;
    const bool is_full = state.left <= tolerance * link.capacity;
    for (const Seat& seat : link.seats) {
      const Share& share = shares_[seat.variable];
      if (share.place == nowhere && is_violated(share, state, is_full)) join(seat.variable);
    }
  }
  return region_.size() > before;
}

void FairShare::commit() {
  for (const RegionVariable& member : region_) {
    Share& share = shares_[member.id];
    share.place = nowhere;
    share.bottleneck = member.bottleneck;
    if (share.level == member.level) continue;
    VariableState& variable = variables_[member.id];
    share.level = member.level;
    share.rate = member.level * variable.weight * variable.flows;
    if (!variable.in_changed) {
      variable.in_changed = true;
      changed_.push_back(member.id);
    }
  }
  for (const RegionLink& state : region_links_) links_[state.link].place = nowhere;
  region_.clear();
  region_hops_.clear();
  region_links_.clear();
  limits_.clear();
}

}  // namespace hdpsim
