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
  }
  const Variable id = unused_.back();
  unused_.pop_back();
  VariableState& variable = variables_[id];
  variable.hops.clear();
  variable.hops.reserve(hops);
  variable.cap = cap;
  variable.weight = weight;
  variable.flows = flows;
  variable.level = 0;
  variable.bottleneck = no_link;
  variable.under_way = true;
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
  return variables_[id].level * variables_[id].weight;
}

std::optional<FairShare::Link> FairShare::bottleneck(Variable id) {
  HDPSIM_CHECK(id < variables_.size() && variables_[id].under_way, "variable {} is not under way", id);
  settle();
  const Link link = variables_[id].bottleneck;
  return link == no_link ? std::nullopt : std::optional(link);
}

double FairShare::load(Link link) {
  settle();
  double sum = 0;
  for (const Seat& seat : links_[link].seats) sum += variables_[seat.variable].rate() * seat.flows;
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
      if (variables_[seat.variable].bottleneck == link) join(seat.variable);
    }
  }
  arrived_.clear();
  dirty_.clear();
}

void FairShare::join(Variable id) {
  VariableState& variable = variables_[id];
  if (variable.in_region) return;
  variable.in_region = true;
  region_.push_back(id);
  for (const Hop& hop : variable.hops) {
    LinkState& state = links_[hop.link];
    if (state.in_region) {
      state.free += variable.rate() * hop.flows;
      state.weight += variable.weight * variable.flows * hop.flows;
    } else {
      touch(hop.link);  // counts this variable with the region's
    }
  }
}

void FairShare::touch(Link link) {
  LinkState& state = links_[link];
  state.in_region = true;
  state.free = state.capacity;
  state.weight = 0;
  region_links_.push_back(link);
  for (const Seat& seat : state.seats) {
    const VariableState& variable = variables_[seat.variable];
    if (variable.in_region) {
      state.weight += variable.weight * variable.flows * seat.flows;
    } else {
      state.free -= variable.rate() * seat.flows;
    }
  }
}

// Progressive filling of the region. A link's level only rises while others freeze, so a level in the heap is a lower
// bound: an outdated one is pushed again.
void FairShare::fill() {
  start_filling();
  std::size_t next_cap = 0;
  std::size_t open = region_.size();
  while (open > 0) {
    while (next_cap < by_cap_.size() && variables_[by_cap_[next_cap]].frozen) ++next_cap;
    const double cap_level = next_cap < by_cap_.size() ? variables_[by_cap_[next_cap]].cap_level() : infinity;
    if (heap_.empty() || cap_level <= heap_.front().level) {
      HDPSIM_CHECK(next_cap < by_cap_.size(), "{} flows that nothing holds back", open);
      freeze(by_cap_[next_cap], cap_level, no_link);
      --open;
      continue;
    }
    std::pop_heap(heap_.begin(), heap_.end());
    const Filling lowest = heap_.back();
    heap_.pop_back();
    const LinkState& state = links_[lowest.link];
    if (state.open == 0) continue;
    const double level = std::max(0.0, state.left) / state.thawed;
    if (exceeds(level, lowest.level)) {
      heap_.push_back({level, lowest.link});
      std::push_heap(heap_.begin(), heap_.end());
    } else {
      open -= freeze_link(lowest.link, level);
    }
  }
}

void FairShare::start_filling() {
  heap_.clear();
  for (const Link link : region_links_) {
    LinkState& state = links_[link];
    state.left = std::max(0.0, state.free);
    state.thawed = state.weight;
    state.top = 0;
    state.open = 0;
    state.binds = false;
    if (state.seats.size() > 1) heap_.push_back({state.left / state.thawed, link});
  }
  by_cap_.clear();
  for (const Variable id : region_) {
    VariableState& variable = variables_[id];
    variable.frozen = false;
    // Among the links that a variable has for itself, only the narrowest can ever bind: this drops most links of a
    // quiet network.
    Filling narrowest{infinity, no_link};
    for (const Hop& hop : variable.hops) {
      LinkState& state = links_[hop.link];
      ++state.open;
      if (state.seats.size() == 1) narrowest = std::max(narrowest, {state.left / state.thawed, hop.link});
    }
    if (narrowest.link != no_link) heap_.push_back(narrowest);
    if (std::isfinite(variable.cap)) by_cap_.push_back(id);
  }
  std::make_heap(heap_.begin(), heap_.end());
  std::sort(by_cap_.begin(), by_cap_.end(), [&](Variable a, Variable b) {
    return std::pair(variables_[a].cap_level(), a) < std::pair(variables_[b].cap_level(), b);
  });
}

std::size_t FairShare::freeze_link(Link link, double level) {
  std::size_t count = 0;
  for (const Seat& seat : links_[link].seats) {
    if (!variables_[seat.variable].in_region || variables_[seat.variable].frozen) continue;
    freeze(seat.variable, level, link);
    ++count;
  }
  links_[link].binds = true;
  links_[link].left = 0;
  return count;
}

void FairShare::freeze(Variable id, double level, Link bottleneck) {
  VariableState& variable = variables_[id];
  variable.frozen = true;
  variable.new_level = level;
  variable.new_bottleneck = bottleneck;
  for (const Hop& hop : variable.hops) {
    LinkState& state = links_[hop.link];
    const double weight = variable.weight * variable.flows * hop.flows;
    state.left -= level * weight;
    state.thawed -= weight;
    state.top = std::max(state.top, level);
    --state.open;
  }
}

// True if a link of the region no longer justifies the rate of a fixed variable.
bool FairShare::is_violated(const VariableState& variable, Link link) const {
  const LinkState& state = links_[link];
  if (variable.bottleneck == link) {
    const bool full = state.left <= tolerance * state.capacity;
    if (!full || exceeds(state.top, variable.level)) return true;
  }
  // Where a variable of the region is held back, no other may have a higher level.
  return state.binds && exceeds(variable.level, state.top);
}

bool FairShare::grow() {
  const std::size_t before = region_.size();
  const std::size_t links_before = region_links_.size();
  for (std::size_t i = 0; i < links_before; ++i) {
    const Link link = region_links_[i];
    for (const Seat& seat : links_[link].seats) {
      const VariableState& variable = variables_[seat.variable];
      if (!variable.in_region && is_violated(variable, link)) join(seat.variable);
    }
  }
  return region_.size() > before;
}

void FairShare::commit() {
  for (const Variable id : region_) {
    VariableState& variable = variables_[id];
    variable.in_region = false;
    variable.bottleneck = variable.new_bottleneck;
    if (variable.level == variable.new_level) continue;
    variable.level = variable.new_level;
    if (!variable.in_changed) {
      variable.in_changed = true;
      changed_.push_back(id);
    }
  }
  for (const Link link : region_links_) links_[link].in_region = false;
  region_.clear();
  region_links_.clear();
}

}  // namespace hdpsim
