#include "kernels/ring/chunk_keys.h"

#include <array>

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
  const std::size_t element = element_bytes(backend_.element());
  const std::int64_t query_width = heads_.heads * heads_.dim;
  std::byte* const keys = kept(layer).kv.reserve(count(place_.all) * element);
  backend_.copy(keys + count(place_.begin) * element, op.kv, count(place_.rows) * element);
  const std::array blocks = {block()};
  backend_.run(AttentionForward{.heads = heads_,
                                .blocks = blocks,
                                .q = {op.q, query_width},
                                .k = {keys, 2 * width()},
                                .v = {keys + static_cast<std::size_t>(width()) * element, 2 * width()},
                                .o = {op.o, query_width},
                                .lse = op.lse,
                                .lse_stride = place_.rows});
}

void ChunkKeys::attend(std::int64_t layer, const RingBackward& op) {
  const std::size_t element = element_bytes(backend_.element());
  const std::int64_t query_width = heads_.heads * heads_.dim;
  Kept& of_layer = kept(layer);
  const std::size_t d_bytes = count(place_.all) * sizeof(float);
  float* const d_keys = reinterpret_cast<float*>(of_layer.d_kv.reserve(d_bytes));
  if (place_.begin + place_.rows == place_.all) backend_.fill_bytes(d_keys, 0, d_bytes);
  (void)delta_.reserve(static_cast<std::size_t>(place_.rows * heads_.heads) * sizeof(float));
  backend_.run(AttentionDelta{.heads = heads_,
                              .rows = place_.rows,
                              .o = {op.o, query_width},
                              .d_o = {op.d_o, query_width},
                              .delta = delta_.floats()});
  backend_.fill_bytes(op.d_q, 0, static_cast<std::size_t>(place_.rows * query_width) * sizeof(float));
  const std::byte* const keys = of_layer.kv.data();
  const std::array blocks = {block()};
  backend_.run(AttentionBackward{.heads = heads_,
                                 .blocks = blocks,
                                 .q = {op.q, query_width},
                                 .k = {keys, 2 * width()},
                                 .v = {keys + static_cast<std::size_t>(width()) * element, 2 * width()},
                                 .d_o = {op.d_o, query_width},
                                 .lse = op.lse,
                                 .delta = delta_.floats(),
                                 .lse_stride = place_.rows,
                                 .d_q = {op.d_q, query_width},
                                 .d_k = {d_keys, 2 * width()},
                                 .d_v = {d_keys + width(), 2 * width()},
                                 .deterministic = op.deterministic});
  backend_.copy(op.d_kv, d_keys + count(place_.begin), count(place_.rows) * sizeof(float));
  if (place_.begin > 0) return;
  const auto ended = kept_.find({place_.document, layer});
  spare_.push_back(std::move(ended->second));
  kept_.erase(ended);
}

}  // namespace hdpsim::kernels
