#include "kernels/exec/impl/in_flight.h"

#include <algorithm>

namespace hdpsim::kernels::exec {

void InFlight::begin(MicroBatchId id, std::int64_t number, const ModelChunk& chunk, const Keeping& keeping) {
  auto& held = held_[{id, number}];
  if (spare_.empty()) {
    held = std::make_unique<Activations>(backend_, copies_, model_, shard_, workspace_);
  } else {
    held = std::move(spare_.back());
    spare_.pop_back();
  }
  held->begin(share(id), chunk, keeping);
}

void InFlight::drop(MicroBatchId id, std::int64_t number) {
  const auto ended = held_.find({id, number});
  spare_.push_back(std::move(ended->second));
  held_.erase(ended);
}

void InFlight::keep_received(MicroBatchId id, std::int64_t number, const void* from, std::size_t bytes) {
  Received& kept = received_[{id, number}] = {backend_.allocate(bytes), bytes};
  backend_.copy(kept.memory.get(), from, bytes);
}

void InFlight::restore(MicroBatchId id, std::int64_t number, void* to) {
  const auto kept = received_.find({id, number});
  backend_.copy(to, kept->second.memory.get(), kept->second.bytes);
  backend_.synchronize();  // the copy may still read what is freed here
  received_.erase(kept);
}

void InFlight::end(MicroBatchId id, std::int64_t number) {
  drop(id, number);
  const auto is_of_it = [id](const auto& entry) { return entry.first.first == id; };
  if (std::none_of(held_.begin(), held_.end(), is_of_it)) shares_.erase(id);
}

}  // namespace hdpsim::kernels::exec
