#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/ring/sharding.h"
#include "kernels/spec/attention.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// Who works on which documents. members: the ranks of the transport in the order of the ring, the calling rank among
/// them; its place there is its position in `documents`. Rings over disjoint members run side by side, and a rank may
/// be in another ring with every call: nothing is set up for a group.
struct RingGroup {
  AttentionHeads heads;
  const ShardedDocuments* documents = nullptr;
  std::vector<int> members;
};

/// Tensors of the backend's memory, dense, `rows` the rows that this rank holds:
///   q   element [rows, heads, dim]
///   kv  element [rows, 2, kv_heads, dim]: the keys of a token, then its values. The buffer is sent as it is.
///   o   element [rows, heads, dim], written
///   lse fp32 [heads, rows], natural logarithm over the keys of all ranks, written
struct RingForward {
  const void* q = nullptr;
  const void* kv = nullptr;
  void* o = nullptr;
  float* lse = nullptr;
};

/// o, lse: what forward wrote. d_o: element [rows, heads, dim]. d_q: fp32 [rows, heads, dim]; d_kv: fp32 [rows, 2,
/// kv_heads, dim]; both are written.
struct RingBackward {
  const void* q = nullptr;
  const void* kv = nullptr;
  const void* o = nullptr;
  const float* lse = nullptr;
  const void* d_o = nullptr;
  float* d_q = nullptr;
  float* d_kv = nullptr;
  bool deterministic = false;
};

/// Causal attention of packed documents whose rows are spread over a ring of n ranks: what one device would compute on
/// the whole documents.
///
/// Step t (0 ... n - 1) attends to the keys and values of the rank t places before this one; while it computes, they go
/// on to the next rank and those of step t + 1 arrive. The exchange starts before the attention of its step and is
/// waited for after it; meanwhile the backend's progress hook drives the transport. Only key-value heads travel.
///
/// With B = 2 kv_heads dim x (rows of the rank whose keys they are), a rank sends and receives
///   forward   n - 1 messages of B elements
///   backward  the same, and n - 1 messages of B fp32: the gradient of keys and values, which grows on its way round
///             the ring. Its owner keeps its own share, so the sum starts at the next rank; what arrives is added after
///             the step that it travels under. Only its last hop hides behind nothing.
/// Sums are fp32 throughout, whatever the element.
///
/// Memory of the backend, kept between calls, M the largest B of the ring: 2 M elements; for backward 3 M fp32 more and
/// heads x rows fp32; for elements other than fp32 also heads x rows x (dim + 1) fp32.
///
/// DeviceError if a rank fails or stays away: which step of which ring, and whom the transport waits for.
/// UnsupportedInput if the group does not fit the transport or the documents. An object belongs to the thread of its
/// backend and transport, which outlive it.
class RingAttention {
 public:
  RingAttention(Backend& backend, Transport& transport) : backend_(backend), transport_(transport) {}

  void forward(const RingGroup& group, const RingForward& op);
  void backward(const RingGroup& group, const RingBackward& op);

 private:
  /// Memory that grows to what has been asked for.
  struct Buffer {
    DeviceMemory memory;
    std::size_t bytes = 0;
  };
  class Ring;
  class Exchange;

  void* reserve(Buffer& buffer, std::size_t bytes);
  float* reserve_fp32(Buffer& buffer, std::int64_t count);
  const float* minus_infinity(std::int64_t count);
  void attend(const Ring& ring, int step, const RingForward& op, const void* kv, void* o, bool accumulate);
  void attend_back(const Ring& ring, int step, const RingBackward& op, const void* kv, float* d_kv);
  const void* pass_on(const Ring& ring, int step, const void* kv, Exchange& exchange);
  void pass_on_gradient(const Ring& ring, int step, const float* d_kv, Exchange& exchange);
  void add_arrived(const Ring& ring, int step, float* d_kv);

  Backend& backend_;
  Transport& transport_;
  Buffer kv_[2];    // one is read and sent while the other fills
  Buffer d_kv_[3];  // one is computed and one sent while the last fills
  Buffer delta_;
  Buffer sum_;  // of o, where the element is not fp32
  Buffer minus_infinity_;
};

}  // namespace hdpsim::kernels
