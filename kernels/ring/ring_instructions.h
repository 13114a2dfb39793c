#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/ring/rank_attention.h"
#include "kernels/ring/sharding.h"
#include "kernels/spec/attention.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// A ring as one of its ranks sees it. What it points to outlives its use.
struct RingPlace {
  const ShardedDocuments* documents = nullptr;
  const std::vector<int>* members = nullptr;  ///< Ranks of the transport, in the order of the ring.
  int position = 0;                           ///< Of the calling rank among them.
};

/// Ring attention as the instructions of a program: one exchange, one launch at a time, for whoever follows a program
/// step by step. As in the programs that are priced, a rank's own share of the gradient of its keys and values travels
/// the whole ring.
///
/// With n ranks and B = kv_width() x (rows of the rank whose keys they are), a rank sends and receives
///   forward   n - 1 messages of B elements: exchange 1 ... n - 1, each before the launch of its step
///   backward  the same, and in exchange 2 ... n + 1 one of B fp32: the gradient of keys and values, which grows on its
///             way round the ring. What arrives is added after the step that it travels under. Only its last hop hides
///             behind nothing.
/// A ring of one exchanges nothing. In a ring of several every token sees all before it: HaloKeys is for those that do
/// not.
///
/// Sums are fp32 whatever the element: with another one, steps add up in memory of their own and are rounded when the
/// last is done. One exchange is under way at a time; std::logic_error if that is not so.
///
/// Memory of the backend, kept between calls, M the largest B of the ring: 2 M elements; for backward 3 M fp32 more and
/// heads x rows fp32; for elements other than fp32 also heads x rows x (value_width() + 1) fp32.
class RingSteps {
 public:
  RingSteps(Backend& backend, Transport& transport) : backend_(backend), transport_(transport) {}
  RingSteps(const RingSteps&) = delete;
  RingSteps& operator=(const RingSteps&) = delete;
  /// Waits for messages that an error has left under way: their buffers are about to go.
  ~RingSteps();

  /// From now on this ring.
  void join(const RingPlace& place, const AttentionHeads& heads);
  void begin(const RingForward& op);
  void begin(const RingBackward& op);

  /// The exchange that ends the pass; 0 in a ring of one.
  [[nodiscard]] int last_exchange() const { return steps() == 1 ? 0 : is_backward_ ? steps() + 1 : steps() - 1; }
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
  [[nodiscard]] const ShardedDocuments& documents() const { return *place_.documents; }
  [[nodiscard]] int steps() const { return documents().ranks(); }
  [[nodiscard]] std::int64_t rows() const { return documents().rows(place_.position); }
  [[nodiscard]] int source(int step) const { return (place_.position + 2 * steps() - step) % steps(); }
  [[nodiscard]] int member(int position) const {
    return (*place_.members)[static_cast<std::size_t>(position % steps())];
  }
  [[nodiscard]] std::int64_t kv_count(int step) const { return documents().rows(source(step)) * kv_width(heads_); }
  [[nodiscard]] const void* kv(int step);
  [[nodiscard]] std::vector<AttentionBlock> blocks(int step, const Reach& reach) const;
  [[nodiscard]] RankLaunch launch(const std::vector<AttentionBlock>& blocks) const {
    return {heads_, blocks, rows(), backend_.element()};
  }
  [[nodiscard]] float* d_kv(int step);
  void attend_forward(int step);
  void launch_forward(int step, void* o, bool accumulate);
  void* begin_sum();
  [[nodiscard]] const float* minus_infinity(std::int64_t count);
  void attend_backward(int step);

  Backend& backend_;
  Transport& transport_;
  AttentionHeads heads_;
  RingPlace place_;
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

/// Moves a transport's messages between tiles of attention (Backend::set_progress_hook), for as long as it lives. Both
/// outlive it.
class MessageDriver {
 public:
  MessageDriver(Backend& backend, Transport& transport) : backend_(backend) {
    backend_.set_progress_hook([&transport] { transport.progress(); });
  }
  MessageDriver(const MessageDriver&) = delete;
  MessageDriver& operator=(const MessageDriver&) = delete;
  ~MessageDriver() { backend_.set_progress_hook({}); }

 private:
  Backend& backend_;
};

}  // namespace hdpsim::kernels
