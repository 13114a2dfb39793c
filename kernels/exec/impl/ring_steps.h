#pragma once

#include <array>
#include <cstdint>

#include "kernels/exec/share.h"
#include "kernels/ring/ring_attention.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels::exec {

/// Ring attention of one layer as the instructions of a program: one exchange, one launch at a time, for whoever
/// follows a program step by step. What kernels/ring does in one call, with one difference: as in the programs that are
/// priced, a rank's own share of the gradient of its keys and values travels the whole ring, n hops instead of n - 1.
///
/// Sums are fp32 whatever the element: with another one, steps add up in memory of their own and are rounded when the
/// last is done. One exchange is under way at a time.
class RingSteps {
 public:
  RingSteps(Backend& backend, Transport& transport, const AttentionHeads& heads)
      : backend_(backend), transport_(transport), heads_(heads) {}
  RingSteps(const RingSteps&) = delete;
  RingSteps& operator=(const RingSteps&) = delete;
  /// Waits for messages that an error has left under way: their buffers are about to go.
  ~RingSteps();

  /// From now on the ranks of this share, which must live until the next call.
  void join(const Share& share);
  void begin(const RingForward& op);
  void begin(const RingBackward& op);

  /// Starts exchange `step` of the pass, as Instruction::ring_step has it. The one before it has been waited for, and
  /// what it brought has been added.
  void exchange(int step);
  [[nodiscard]] bool under_way() const { return under_way_; }
  /// For the exchange under way. DeviceError if a peer fails: which step of which ring, and whom the transport waits
  /// for.
  void wait();
  /// Adds the gradients that have arrived, if any have, to those of this rank, which go on with the next exchange.
  void add_arrived();
  /// The launch of a step, whose keys and values are here.
  void attend(int step);

 private:
  struct Buffer {
    DeviceMemory memory;
    std::size_t bytes = 0;
  };
  void* reserve(Buffer& buffer, std::size_t bytes);
  float* reserve_fp32(Buffer& buffer, std::int64_t count);
  [[nodiscard]] std::size_t elements(std::int64_t count) const {
    return static_cast<std::size_t>(count) * element_bytes(backend_.element());
  }
  [[nodiscard]] bool rounds_at_the_end() const { return backend_.element() != Element::fp32 && steps() > 1; }
  [[nodiscard]] int steps() const { return share_->documents.ranks(); }
  [[nodiscard]] int source(int step) const { return (share_->position + 2 * steps() - step) % steps(); }
  [[nodiscard]] int member(int position) const { return share_->members[static_cast<std::size_t>(position % steps())]; }
  [[nodiscard]] std::int64_t kv_width() const { return 2 * heads_.kv_heads * heads_.dim; }
  [[nodiscard]] std::int64_t kv_count(int step) const { return share_->documents.rows(source(step)) * kv_width(); }
  [[nodiscard]] const void* kv(int step);
  [[nodiscard]] const void* values(const void* kv) const;
  [[nodiscard]] float* d_kv(int step);
  void attend_forward(int step);
  void launch_forward(int step, void* o, bool accumulate);
  void* begin_sum();
  [[nodiscard]] const float* minus_infinity(std::int64_t count);
  void prepare_backward();
  void attend_backward(int step);

  Backend& backend_;
  Transport& transport_;
  AttentionHeads heads_;
  const Share* share_ = nullptr;
  std::int64_t most_kv_ = 0;  ///< Of any rank of the ring.
  bool is_backward_ = false;
  RingForward forward_;
  RingBackward backward_;
  int step_ = 0;          ///< Of the exchange that was started last.
  int arrived_for_ = -1;  ///< The step whose gradient has arrived and is not added yet.
  bool under_way_ = false;
  Ticket ticket_ = 0;
  std::array<Buffer, 2> kv_;    ///< One is read and sent while the other fills.
  std::array<Buffer, 2> d_kv_;  ///< One is computed while the other is sent.
  Buffer arriving_;
  Buffer delta_;
  Buffer sum_;  ///< Of o, where the element is not fp32.
  Buffer minus_infinity_;
};

}  // namespace hdpsim::kernels::exec
