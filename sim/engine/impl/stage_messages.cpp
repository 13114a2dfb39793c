#include "sim/engine/impl/stage_messages.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/engine/impl/group_run.h"

namespace hdpsim {
namespace {

// Two kinds of events; the rest of the tag is the version of the message's arrival.
enum MessageEvent : std::uint32_t { latency_over = 0, arrived = 1 };
constexpr std::uint32_t kind_shift = 28;

}  // namespace

// The lane from one worker to another worker of its rank, and the messages on it.
struct StageMessages::Lane {
  WorkerId from;
  WorkerId to;
  bool is_forward = true;
  Hop hop;
  std::vector<PassId> waiting;  // targets of messages; that of `next` is under way if `busy`
  std::size_t next = 0;
  bool busy = false;
  Bytes bytes;                // size of the message under way
  Instant began;              // when that message began
  std::vector<FlowId> flows;  // of that message, while it shares links
  double remaining = 0;       // bytes
  Bandwidth rate;
  Instant since;  // begin of that rate
  std::uint32_t version = 0;
};

StageMessages::StageMessages(const Program& program, const Machine& machine, JobPort& port, LinkTraffic& links,
                             bool contention)
    : program_(program), machine_(machine), port_(port), links_(links), contention_(contention) {
  const Pipeline& pipeline = program.pipeline();
  if (pipeline.stages() > 1) lanes_of_.resize(pipeline.workers());
}

StageMessages::~StageMessages() = default;

bool StageMessages::send(WorkerId from, PassId pass) {
  const Pipeline& pipeline = program_.pipeline();
  const auto target = pipeline.target(pass);
  if (!target) return false;
  const StagePass sender = pipeline.pass(pass);
  const StagePass receiver = pipeline.pass(*target);
  const std::uint32_t index = lane_between(from, receiver.stage, sends_forward(sender.kind));
  lanes_[index].waiting.push_back(*target);
  if (!lanes_[index].busy) start_next(index);
  return true;
}

// A worker sends to one or two others, so that a linear search is enough.
std::uint32_t StageMessages::lane_between(WorkerId from, std::int64_t stage, bool is_forward) {
  const Pipeline& pipeline = program_.pipeline();
  const HdpRank rank = pipeline.rank_of(from);
  const WorkerId to = pipeline.worker(rank, stage);
  std::vector<std::uint32_t>& known = lanes_of_[from.index()];
  for (const std::uint32_t index : known) {
    if (lanes_[index].to == to && lanes_[index].is_forward == is_forward) return index;
  }
  known.push_back(static_cast<std::uint32_t>(lanes_.size()));
  Lane& lane = lanes_.emplace_back();
  lane.from = from;
  lane.to = to;
  lane.is_forward = is_forward;
  lane.hop = stage_hop(rank, pipeline.stage_of(from), stage, machine_);
  return known.back();
}

void StageMessages::start_next(std::uint32_t index) {
  Lane& lane = lanes_[index];
  lane.busy = lane.next < lane.waiting.size();
  if (!lane.busy) return;
  lane.bytes = program_.message(lane.waiting[lane.next]);
  lane.began = port_.queue.now();
  lane.remaining = static_cast<double>(lane.bytes.count());
  lane.version = port_.queue.fresh_version();
  add_bytes(lane, 1);
  if (lane.hop.is_private || !contention_) {
    schedule(index, lane.hop.transfer(lane.bytes), arrived);
  } else {
    schedule(index, lane.hop.latency, latency_over);
  }
}

void StageMessages::begin_flow(std::uint32_t index) {
  Lane& lane = lanes_[index];
  for (const HopRoute& of_shard : lane.hop.routes) {
    lane.flows.push_back(port_.flows.add(of_shard.route, of_shard.route.alone, key_bit | index));
  }
  lane.rate = Bandwidth{};
  lane.since = port_.queue.now();
  set_rate(index);
}

// The slowest shard's flow decides when the message is complete.
void StageMessages::set_rate(std::uint32_t index) {
  Lane& lane = lanes_[index];
  Bandwidth slowest = port_.flows.rate(lane.flows.front());
  for (const FlowId flow : lane.flows) slowest = std::min(slowest, port_.flows.rate(flow));
  if (slowest == lane.rate) return;
  const double elapsed = (port_.queue.now() - lane.since).seconds();
  lane.remaining -= elapsed * static_cast<double>(lane.rate.bytes_per_second());
  lane.rate = slowest;
  lane.since = port_.queue.now();
  lane.version = port_.queue.fresh_version();
  const double rest = std::max(0.0, lane.remaining) / static_cast<double>(slowest.bytes_per_second());
  schedule(index, Duration::seconds(rest), arrived);
}

std::optional<StageMessages::Arrival> StageMessages::handle(const Event& event) {
  const std::uint32_t index = event.actor;
  if (index >= lanes_.size()) return std::nullopt;  // an outdated event of an earlier step
  Lane& lane = lanes_[index];
  if (!lane.busy || (event.tag & JobQueue::version_mask) != lane.version) return std::nullopt;
  if (((event.tag - first_tag) >> kind_shift) == latency_over) {
    begin_flow(index);
    return std::nullopt;
  }
  for (const FlowId flow : lane.flows) port_.flows.remove(flow);
  lane.flows.clear();
  const Arrival arrival{lane.from, lane.to, lane.waiting[lane.next++]};
  start_next(index);
  return arrival;
}

void StageMessages::rate_changed(std::uint32_t key) {
  set_rate(key & ~key_bit);
}

void StageMessages::take_back_unsent() {
  for (const Lane& lane : lanes_) {
    if (lane.busy) add_bytes(lane, -share_left(lane));
  }
}

double StageMessages::share_left(const Lane& lane) const {
  const auto now = port_.queue.now();
  if (lane.flows.empty()) {
    const Duration whole = lane.hop.transfer(lane.bytes);
    return 1 - std::min(1.0, (now - lane.began).seconds() / whole.seconds());
  }
  const double sent = (now - lane.since).seconds() * static_cast<double>(lane.rate.bytes_per_second());
  return std::max(0.0, lane.remaining - sent) / static_cast<double>(lane.bytes.count());
}

void StageMessages::add_bytes(const Lane& lane, double share) {
  const Bytes bytes = share == 1 ? lane.bytes : lane.bytes.scaled(share);
  for (const HopRoute& of_shard : lane.hop.routes) {
    add_route_bytes(of_shard.route, bytes, links_);
  }
}

void StageMessages::schedule(std::uint32_t index, Duration delay, std::uint32_t kind) {
  port_.queue.schedule_after(delay, index, first_tag | kind << kind_shift | lanes_[index].version);
}

}  // namespace hdpsim
