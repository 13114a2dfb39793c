#include "kernels/exec/impl/pass_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "kernels/exec/impl/activations.h"
#include "kernels/exec/impl/float_bytes.h"
#include "kernels/exec/share.h"
#include "sim/base/check.h"

namespace hdpsim::kernels::exec {
namespace {

// Peers may still read or write this memory. Waiting for them would hide the error here behind their own time limit.
void keep_for_good(std::unique_ptr<float[]> memory) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<float[]>> kept;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(memory));
}

}  // namespace

PassMessages::~PassMessages() {
  for (Lane& lane : lanes_) {
    if (lane.receives) keep_for_good(std::move(lane.expected.front().memory));
    for (Message& message : lane.sent) keep_for_good(std::move(message.memory));
  }
}

void PassMessages::begin_step(const Program& program, HdpRank rank, const TensorShard& shard) {
  program_ = &program;
  if (transport_.size() == 1) return;
  const Plan& plan = program.plan();
  std::int64_t most = 0;
  floats_.clear();
  for (const MicroBatchId id : plan.schedule[rank.index()]) {
    const std::int64_t rows = rows_on(shard, rows_of(plan.micro_batches[id.index()], rank)).own;
    floats_[id] = rows * program.options().model.hidden;
    most = std::max(most, floats_[id]);
  }
  if (most > spare_floats_) {
    spare_.clear();
    spare_floats_ = most;
  }
  for (int stage = 0; stage < transport_.size(); ++stage) {
    if (stage == transport_.rank()) continue;
    note_lane(stage, rank);
    receive_ahead(stage);
  }
}

void PassMessages::note_lane(int stage, HdpRank rank) {
  const Pipeline& pipeline = program_->pipeline();
  const std::vector<PassId>& there = pipeline.orders()[pipeline.worker(rank, stage).index()];
  Lane& lane = lanes_[static_cast<std::size_t>(stage)];
  for (std::size_t place = 0; place < there.size(); ++place) {
    const auto target = pipeline.target(there[place]);
    const auto source = pipeline.source(there[place]);
    if (target && stage_of(*target) == transport_.rank()) {
      lane.expected.push_back(
          {.pass = *target, .place = place, .floats = floats_.at(pipeline.micro_batch_id(*target))});
    }
    if (source && stage_of(*source) == transport_.rank()) lane.places[there[place]] = place;
  }
}

int PassMessages::stage_of(PassId pass) const {
  return static_cast<int>(program_->pipeline().pass(pass).stage);
}

PassMessages::Memory PassMessages::memory() {
  if (spare_.empty()) return std::make_unique<float[]>(static_cast<std::size_t>(spare_floats_));
  Memory memory = std::move(spare_.back());
  spare_.pop_back();
  return memory;
}

void PassMessages::wait(PassId pass) {
  const auto source = program_->pipeline().source(pass);
  if (!source) return;
  while (!arrived_.contains(pass)) receive_next(stage_of(*source));
}

void PassMessages::take(PassId pass, void* to) {
  const auto arrived = arrived_.find(pass);
  if (arrived == arrived_.end()) return;
  backend_.upload(to, arrived->second.memory.get(), float_bytes(arrived->second.floats));
  spare_.push_back(std::move(arrived->second.memory));
  arrived_.erase(arrived);
}

void PassMessages::receive_ahead(int stage) {
  Lane& lane = lanes_[static_cast<std::size_t>(stage)];
  if (lane.receives || lane.expected.empty()) return;
  Message& next = lane.expected.front();
  next.memory = memory();
  const Receive receive{stage, next.memory.get(), float_bytes(next.floats)};
  next.ticket = transport_.start({}, {&receive, 1});
  lane.receives = true;
}

void PassMessages::receive_next(int stage) {
  Lane& lane = lanes_[static_cast<std::size_t>(stage)];
  HDPSIM_CHECK(lane.receives, "stage {} has nothing more to send", stage);
  wait_for(lane.expected.front(), stage, "from");
  Message message = std::move(lane.expected.front());
  lane.expected.pop_front();
  lane.receives = false;
  free_arrived(stage, message.place);
  const PassId pass = message.pass;
  arrived_.emplace(pass, std::move(message));
  receive_ahead(stage);
}

// The pass that needs what this one computes, if both are on one stage.
std::optional<PassId> PassMessages::next_here(PassId pass) const {
  const Pipeline& pipeline = program_->pipeline();
  const StagePass at = pipeline.pass(pass);
  if (!sends_forward(at.kind) && !sends_backward(at.kind)) return std::nullopt;
  const std::int64_t chunk = at.chunk + (sends_forward(at.kind) ? 1 : -1);
  if (chunk < 0 || chunk >= pipeline.chunks()) return std::nullopt;
  const PassId next = pipeline.id_of(at.micro_batch, chunk, at.kind);
  return pipeline.pass(next).stage == at.stage ? std::optional(next) : std::nullopt;
}

void PassMessages::send(PassId pass, const void* from) {
  if (const auto next = next_here(pass)) {
    Message message{.pass = *next, .floats = floats_.at(program_->pipeline().micro_batch_id(pass))};
    message.memory = memory();
    backend_.download(message.memory.get(), from, float_bytes(message.floats));
    arrived_.emplace(*next, std::move(message));
    return;
  }
  const auto target = program_->pipeline().target(pass);
  if (!target) return;
  const int stage = stage_of(*target);
  Lane& lane = lanes_[static_cast<std::size_t>(stage)];
  Message message{.pass = *target,
                  .place = lane.places.at(*target),
                  .floats = floats_.at(program_->pipeline().micro_batch_id(pass))};
  message.memory = memory();
  backend_.download(message.memory.get(), from, float_bytes(message.floats));
  const Send send{stage, message.memory.get(), float_bytes(message.floats)};
  message.ticket = transport_.start({&send, 1}, {});
  lane.sent.push_back(std::move(message));
}

// A stage runs its passes in order: a message that it sent after some pass shows that it has received those for earlier
// passes.
void PassMessages::free_arrived(int stage, std::size_t place) {
  std::deque<Message>& sent = lanes_[static_cast<std::size_t>(stage)].sent;
  while (!sent.empty() && sent.front().place < place) {
    wait_for(sent.front(), stage, "to");
    spare_.push_back(std::move(sent.front().memory));
    sent.pop_front();
  }
}

void PassMessages::wait_for(const Message& message, int stage, const char* what) {
  try {
    transport_.wait(message.ticket);
  } catch (const DeviceError& error) {
    throw DeviceError(fmt::format("micro-batch {} {} stage {}: {}",
                                  program_->pipeline().micro_batch_id(message.pass).index(), what, stage,
                                  error.what()));
  }
}

void PassMessages::end_step() {
  for (int stage = 0; stage < transport_.size(); ++stage) {
    free_arrived(stage, ~std::size_t{0});
    lanes_[static_cast<std::size_t>(stage)].places.clear();
  }
}

}  // namespace hdpsim::kernels::exec
