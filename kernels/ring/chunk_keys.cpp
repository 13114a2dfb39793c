#include "kernels/ring/chunk_keys.h"

namespace hdpsim::kernels {

ChunkKeys::Kept& ChunkKeys::kept(std::int64_t layer) {
  const Key key{place_.document, layer};
  if (const auto found = kept_.find(key); found != kept_.end()) return found->second;
  if (spare_.empty()) spare_.emplace_back(backend_);
  Kept& added = kept_.emplace(key, std::move(spare_.back())).first->second;
  spare_.pop_back();
  return added;
}

void ChunkKeys::attend(std::int64_t layer, const RingForward& op) {
  const Element element = backend_.element();
  const std::size_t bytes = element_bytes(element);
  std::byte* const keys = kept(layer).kv.reserve(count(place_.all) * bytes);
  backend_.copy(keys + count(place_.begin) * bytes, op.kv, count(place_.rows) * bytes);
  const std::vector<AttentionBlock> seen = blocks(op.reach);
  AttentionForward launched = forward_launch({heads_, seen, place_.rows, element}, op, keys);
  launched.sinks = op.sinks;
  backend_.run(launched);
}

void ChunkKeys::attend(std::int64_t layer, const RingBackward& op) {
  Kept& of_layer = kept(layer);
  const std::size_t d_bytes = count(place_.all) * sizeof(float);
  float* const d_keys = reinterpret_cast<float*>(of_layer.d_kv.reserve(d_bytes));
  if (place_.begin + place_.rows == place_.all) backend_.fill_bytes(d_keys, 0, d_bytes);
  (void)delta_.reserve(static_cast<std::size_t>(place_.rows * heads_.heads) * sizeof(float));
  begin_backward(backend_, heads_, place_.rows, op, delta_.floats());
  const std::vector<AttentionBlock> seen = blocks(op.reach);
  AttentionBackward launched =
      backward_launch({heads_, seen, place_.rows, backend_.element()}, op, of_layer.kv.data(), d_keys, delta_.floats());
  launched.sinks = op.sinks;
  launched.d_sinks = op.d_sinks;
  backend_.run(launched);
  backend_.copy(op.d_kv, d_keys + count(place_.begin), count(place_.rows) * sizeof(float));
  if (place_.begin > 0) return;
  const auto ended = kept_.find({place_.document, layer});
  spare_.push_back(std::move(ended->second));
  kept_.erase(ended);
}

}  // namespace hdpsim::kernels
