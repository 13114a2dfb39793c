#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/impl/job_port.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The messages between the stages of a pipeline that are under way, in every grain. A worker has two lanes to each stage
/// that it sends to, one for activations and one for their gradients; on each it sends one message after another, in the
/// order of its passes and beside its kernels, and receivers are always ready. A message over private links takes its time alone, as if the
/// rings of its devices left them idle; others are flows, and share links with rings and with each other.
class StageMessages {
 public:
  /// `contention` false gives every message its links alone. What is sent is added to `link_bytes`, by LinkId.
  StageMessages(const Program& program, const Machine& machine, JobPort& port, std::vector<Bytes>& link_bytes,
                bool contention);
  ~StageMessages();
  StageMessages(const StageMessages&) = delete;
  StageMessages& operator=(const StageMessages&) = delete;

  /// The worker has ended a pass: what its target needs is sent, if it has one.
  void send(WorkerId from, PassId pass);

  /// A message for a worker, which it needs for this pass.
  struct Arrival {
    WorkerId worker;
    PassId pass;
  };
  /// Handles an event of a message. Nothing if that message flows on.
  [[nodiscard]] std::optional<Arrival> handle(const Event& event);
  /// Events of messages have a tag from this on.
  static constexpr std::uint32_t first_tag = 1U << 31;

  /// A flow that was added with this key, one of ours, has another rate.
  void rate_changed(std::uint32_t key);
  /// Keys of their flows have this bit.
  static constexpr std::uint32_t key_bit = 1U << 31;

  /// Takes from the bytes what is under way and has not been sent yet.
  void take_back_unsent();

 private:
  struct Lane;

  [[nodiscard]] std::uint32_t lane_between(WorkerId from, std::int64_t stage, bool is_forward);
  void start_next(std::uint32_t index);
  void begin_flow(std::uint32_t index);
  void set_rate(std::uint32_t index);
  void add_bytes(const Lane& lane, double share);
  [[nodiscard]] double share_left(const Lane& lane) const;
  void schedule(std::uint32_t index, Duration delay, std::uint32_t kind);

  const Program& program_;
  const Machine& machine_;
  JobPort& port_;
  std::vector<Bytes>& link_bytes_;
  bool contention_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<std::uint32_t>> lanes_of_;  // by worker that sends
};

}  // namespace hdpsim
