#include "sim/engine/impl/exchange_board.h"

#include <algorithm>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// Two kinds of events; the rest of the tag is the version of a message's arrival.
enum HopEvent : std::uint32_t { hop_latency_over = 0, hop_arrived = 1 };

constexpr std::uint32_t tag_of(HopEvent kind, std::uint32_t version) {
  return ExchangeBoard::first_tag | (kind << 28) | version;
}

}  // namespace

// One hop of one ring and the message on it.
struct ExchangeBoard::Lane {
  Hop hop;
  std::uint32_t sent = 0;      // exchanges that the sender has posted
  std::uint32_t awaited = 0;   // exchanges that the receiver has posted
  std::uint32_t started = 0;   // messages that have begun
  std::uint32_t finished = 0;  // messages that have arrived
  Bytes posted;                // size of the newest exchange: a rank posts one at a time
  Instant began;               // begin of the newest message
  std::vector<FlowId> flows;   // of the newest message, while it shares links
  double remaining = 0;        // bytes
  Bandwidth rate;
  Instant since;  // begin of that rate
  std::uint32_t version = 0;

  // The time until the message has arrived at the current rate; exact to the picosecond if none of it has been sent
  // yet, as over private links.
  [[nodiscard]] Duration time_left() const {
    if (remaining == static_cast<double>(posted.count())) return posted / rate;
    return Duration::seconds(std::max(0.0, remaining) / static_cast<double>(rate.bytes_per_second()));
  }
};

ExchangeBoard::ExchangeBoard(const Pipeline& pipeline, JobFlows& flows, JobQueue& queue)
    : pipeline_(pipeline), flows_(flows), queue_(queue) {
  for (std::size_t p = 0; p < pipeline.passes(); ++p) {
    first_slot_.push_back(static_cast<std::uint32_t>(places_.size()));
    const std::size_t ranks = ranks_of(PassId(p));
    for (std::size_t i = 0; i < ranks; ++i) places_.push_back({PassId(p), static_cast<std::uint32_t>(i)});
  }
  lanes_.resize(places_.size());
  sharing_.resize(pipeline.passes());
}

ExchangeBoard::~ExchangeBoard() = default;

ExchangeBoard::Lane& ExchangeBoard::lane(PassId id, std::size_t index) {
  return lanes_[first_slot_[id.index()] + index];
}

const ExchangeBoard::Lane& ExchangeBoard::lane(PassId id, std::size_t index) const {
  return lanes_[first_slot_[id.index()] + index];
}

void ExchangeBoard::open(PassId id, std::vector<Hop> hops, const GroupSharing& sharing) {
  sharing_[id.index()] = sharing;
  for (std::size_t i = 0; i < hops.size(); ++i) lane(id, i).hop = std::move(hops[i]);
}

void ExchangeBoard::close(PassId id) {
  for (std::size_t i = 0; i < ranks_of(id); ++i) lane(id, i) = Lane{};
}

void ExchangeBoard::post(PassId id, std::size_t index, Bytes bytes) {
  const std::size_t before = sharing_[id.index()].before(index);
  Lane& to_next = lane(id, index);
  ++to_next.sent;
  to_next.posted = bytes;
  ++lane(id, before).awaited;
  try_start(id, index);
  try_start(id, before);
}

std::uint32_t ExchangeBoard::ended(PassId id, std::size_t index) const {
  return std::min(lane(id, index).finished, lane(id, sharing_[id.index()].before(index)).finished);
}

Instant ExchangeBoard::last_received_began(PassId id, std::size_t index) const {
  return lane(id, sharing_[id.index()].before(index)).began;
}

void ExchangeBoard::try_start(PassId id, std::size_t index) {
  Lane& hop = lane(id, index);
  if (hop.started == std::min(hop.sent, hop.awaited)) return;
  const std::uint32_t slot = first_slot_[id.index()] + static_cast<std::uint32_t>(index);
  ++hop.started;
  hop.began = queue_.now();
  if (hop.hop.is_private) {
    queue_.schedule_after(hop.hop.transfer(hop.posted), slot, tag_of(hop_arrived, hop.version));
  } else {
    queue_.schedule_after(hop.hop.latency, slot, tag_of(hop_latency_over, hop.version));
  }
}

void ExchangeBoard::begin_flow(std::uint32_t slot) {
  Lane& hop = lanes_[slot];
  for (const HopRoute& part : hop.hop.routes) {
    hop.flows.push_back(flows_.add(part.route, part.route.alone, slot));
  }
  hop.remaining = static_cast<double>(hop.posted.count());
  hop.rate = Bandwidth{};
  hop.since = queue_.now();
  set_rate(slot);
}

// The slowest part of a shard's message decides when it is complete.
void ExchangeBoard::set_rate(std::uint32_t slot) {
  Lane& hop = lanes_[slot];
  const auto rate = [&](std::size_t i) { return hop.hop.routes[i].of_message(flows_.rate(hop.flows[i])); };
  Bandwidth slowest = rate(0);
  for (std::size_t i = 1; i < hop.flows.size(); ++i) slowest = std::min(slowest, rate(i));
  if (slowest == hop.rate) return;
  const double elapsed = (queue_.now() - hop.since).seconds();
  hop.remaining -= elapsed * static_cast<double>(hop.rate.bytes_per_second());
  hop.rate = slowest;
  hop.since = queue_.now();
  hop.version = queue_.fresh_version();
  queue_.schedule_after(hop.time_left(), slot, tag_of(hop_arrived, hop.version));
}

std::vector<ExchangeBoard::Member> ExchangeBoard::handle(const Event& event) {
  const std::uint32_t slot = event.actor;
  if (slot >= lanes_.size()) return {};  // an outdated event of an earlier step
  Lane& hop = lanes_[slot];
  if ((event.tag & JobQueue::version_mask) != hop.version) return {};
  const bool is_latency = ((event.tag - first_tag) >> 28) == hop_latency_over;
  if (is_latency) {
    begin_flow(slot);
    return {};
  }
  arrive(hop);
  const Place& place = places_[slot];
  return {{place.pass, place.index}, {place.pass, sharing_[place.pass.index()].next(place.index)}};
}

void ExchangeBoard::arrive(Lane& hop) {
  for (const FlowId flow : hop.flows) flows_.remove(flow);
  hop.flows.clear();
  ++hop.finished;
  hop.version = queue_.fresh_version();
}

}  // namespace hdpsim
