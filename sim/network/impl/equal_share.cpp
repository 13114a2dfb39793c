#include "sim/network/impl/equal_share.h"

#include <algorithm>

#include "sim/base/check.h"

namespace hdpsim {

std::unique_ptr<NetworkModel> make_equal_share(const ClusterSpec& cluster, const LinkEfficiency& efficiency) {
  return std::make_unique<EqualShare>(cluster, efficiency);
}

EqualShare::EqualShare(const ClusterSpec& cluster, const LinkEfficiency& efficiency)
    : links_(cluster, efficiency), link_states_(links_.count()) {
  for (std::size_t index = 0; index < link_states_.size(); ++index) {
    link_states_[index].share = links_.rate(LinkId(index));
  }
}

FlowId EqualShare::add(const Route& route, Bandwidth cap) {
  HDPSIM_CHECK(cap > Bandwidth{} && route.link_count > 0, "a flow of {} B/s over {} links", cap.bytes_per_second(),
               route.link_count);
  const FlowId id = free_slot();
  Flow& flow = flows_[id.index()];
  flow.route = route;
  flow.cap = std::min(cap, route.alone);
  flow.rate = Bandwidth{};
  flow.under_way = true;
  for (std::size_t k = 0; k < route.link_count; ++k) {
    sit_down(link_states_[route.links[k].index()], static_cast<Seat>(id.index() * Route::most_links + k));
  }
  share_out(route);
  update_rate(id);
  note_change(id);
  return id;
}

void EqualShare::remove(FlowId id) {
  HDPSIM_CHECK(id.index() < flows_.size() && flows_[id.index()].under_way, "flow {} is not under way", id.index());
  Flow& flow = flows_[id.index()];
  flow.under_way = false;
  for (std::size_t k = 0; k < flow.route.link_count; ++k) {
    stand_up(link_states_[flow.route.links[k].index()], static_cast<Seat>(id.index() * Route::most_links + k));
  }
  share_out(flow.route);
  free_.push_back(id);
}

Bandwidth EqualShare::rate(FlowId id) const {
  HDPSIM_CHECK(id.index() < flows_.size() && flows_[id.index()].under_way, "flow {} is not under way", id.index());
  return flows_[id.index()].rate;
}

void EqualShare::take_changed(std::vector<FlowId>& changed) {
  changed.clear();
  for (const FlowId id : changed_) {
    flows_[id.index()].in_changed = false;
    if (flows_[id.index()].under_way) changed.push_back(id);
  }
  changed_.clear();
  std::sort(changed.begin(), changed.end());
}

bool EqualShare::is_private(const Route& route) const {
  const auto used = route.binding_links();
  return std::all_of(used.begin(), used.end(), [&](LinkId link) { return links_.has_one_owner(link); });
}

FlowId EqualShare::free_slot() {
  if (free_.empty()) {
    HDPSIM_CHECK(flows_.size() < nobody / Route::most_links, "{} flows at once", flows_.size());
    flows_.emplace_back();
    return FlowId(flows_.size() - 1);
  }
  const FlowId id = free_.back();
  free_.pop_back();
  return id;
}

void EqualShare::sit_down(Link& link, Seat seat) {
  const Bandwidth cap = flow_of(seat).cap;
  Seat before = nobody;
  Seat next = link.first;
  while (next != nobody && flow_of(next).cap < cap) {
    before = next;
    next = after(next);
  }
  flow_of(seat).before[seat % Route::most_links] = before;
  flow_of(seat).after[seat % Route::most_links] = next;
  (before == nobody ? link.first : flow_of(before).after[before % Route::most_links]) = seat;
  if (next != nobody) flow_of(next).before[next % Route::most_links] = seat;
  ++link.flows;
}

void EqualShare::stand_up(Link& link, Seat seat) {
  const Seat before = flow_of(seat).before[seat % Route::most_links];
  const Seat next = after(seat);
  (before == nobody ? link.first : flow_of(before).after[before % Route::most_links]) = next;
  if (next != nobody) flow_of(next).before[next % Route::most_links] = before;
  --link.flows;
}

// The x that solves sum of min(cap, x) = rate, rounded down: in the order of the caps, each flow that wants less than
// an equal part of what is left gets its cap. If all do, the link does not bind.
Bandwidth EqualShare::share_of(const Link& link, Bandwidth rate) {
  std::int64_t left = rate.bytes_per_second();
  std::int64_t sharing = link.flows;
  for (Seat seat = link.first; seat != nobody; seat = after(seat), --sharing) {
    const std::int64_t cap = flow_of(seat).cap.bytes_per_second();
    if (cap > left / sharing) return Bandwidth::bytes_per_second(left / sharing);
    left -= cap;
  }
  return rate;
}

void EqualShare::share_out(const Route& route) {
  std::array<bool, Route::most_links> differs{};
  for (std::size_t k = 0; k < route.link_count; ++k) {
    Link& link = link_states_[route.links[k].index()];
    const Bandwidth share = share_of(link, links_.rate(route.links[k]));
    differs[k] = share != link.share;
    link.share = share;
  }
  for (std::size_t k = 0; k < route.link_count; ++k) {
    if (!differs[k]) continue;
    const Link& link = link_states_[route.links[k].index()];
    for (Seat seat = link.first; seat != nobody; seat = after(seat)) update_rate(FlowId(seat / Route::most_links));
  }
}

void EqualShare::update_rate(FlowId id) {
  Flow& flow = flows_[id.index()];
  Bandwidth rate = flow.cap;
  for (const LinkId link : flow.route.binding_links()) rate = std::min(rate, link_states_[link.index()].share);
  if (rate == flow.rate) return;
  flow.rate = rate;
  note_change(id);
}

void EqualShare::note_change(FlowId id) {
  if (flows_[id.index()].in_changed) return;
  flows_[id.index()].in_changed = true;
  changed_.push_back(id);
}

}  // namespace hdpsim
