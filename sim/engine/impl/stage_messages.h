#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/impl/job_port.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The messages between pipeline stages, in every fidelity. A worker has two lanes to each stage that it sends to: one
/// for activations and one for their gradients. On each lane it sends one message after another, in the order of its
/// passes; StepRun decides whether they overlap with kernels. Receivers are always ready. A message over private links
/// takes its time without other traffic, as if the rings of its devices left these links idle; other messages are
/// flows, which share links with rings and with each other.
class StageMessages {
 public:
  /// If `contention` is false, every message has its links to itself. The bytes sent are added to `links`, by
  /// LinkId.
  StageMessages(const Program& program, const Machine& machine, JobPort& port, LinkTraffic& links, bool contention);
  ~StageMessages();
  StageMessages(const StageMessages&) = delete;
  StageMessages& operator=(const StageMessages&) = delete;

  /// The worker has ended a pass: its result is sent to the pass's target. False if it has none.
  bool send(WorkerId from, PassId pass);

  /// A message that has arrived: the worker needs it for this pass.
  struct Arrival {
    WorkerId sender;
    WorkerId worker;
    PassId pass;
  };
  /// Handles an event of a message. Returns no value if the message has not arrived yet.
  [[nodiscard]] std::optional<Arrival> handle(const Event& event);
  /// Events of messages have tags from this one on.
  static constexpr std::uint32_t first_tag = 1U << 31;

  /// The rate of the flow of a message has changed; `key` is the flow's key.
  void rate_changed(std::uint32_t key);
  /// The keys of messages' flows have this bit.
  static constexpr std::uint32_t key_bit = 1U << 31;

  /// Subtracts from `links` what the messages under way have not sent yet.
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
  LinkTraffic& links_;
  bool contention_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<std::uint32_t>> lanes_of_;  // by sending worker
};

}  // namespace hdpsim
