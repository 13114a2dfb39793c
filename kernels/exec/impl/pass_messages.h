#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/exec/parameter_tensors.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"
#include "sim/program/program.h"

namespace hdpsim::kernels::exec {

/// Messages between the passes of one device and other stages: hidden states in forward, their gradients in backward,
/// of the device's own rows. Each message has memory of its own, so that it overlaps with the following passes, and the
/// next one from each stage is received before it is needed.
///
/// The messages of two stages match in the order in which they are sent. That is the order of the sender's passes,
/// which may differ from the order in which the receiver needs them: early messages are kept.
class PassMessages {
 public:
  /// `stages` are the devices with the same shard of all stages of the HDP rank, in their order. Both must outlive
  /// this.
  PassMessages(Backend& backend, Transport& stages)
      : backend_(backend), transport_(stages), lanes_(static_cast<std::size_t>(stages.size())) {}
  PassMessages(const PassMessages&) = delete;
  PassMessages& operator=(const PassMessages&) = delete;
  /// If an error has left messages under way, their memory stays until the process ends.
  ~PassMessages();

  /// `rank` is the HDP rank of the device's pipeline.
  void begin_step(const Program& program, HdpRank rank, const TensorShard& shard);
  /// Waits for the message that a pass needs; does nothing for a pass that needs none. DeviceError if a stage fails: it
  /// names the pass, and the rank that the transport waits for.
  void wait(PassId pass);
  /// Moves the message to `to`, [own rows, h]; does nothing for a pass that needs none.
  void take(PassId pass, void* to);
  /// Starts the message that a pass has to send from `from`, [own rows, h], which may be used again at once. Where this
  /// stage has the next chunk, too, the message stays here.
  void send(PassId pass, const void* from);
  /// Waits until all sent messages have arrived.
  void end_step();

 private:
  using Memory = std::unique_ptr<float[]>;
  /// A message for a pass of this stage or another one. `place` is the index of the other stage's pass in the order
  /// there.
  struct Message {
    PassId pass;
    std::size_t place = 0;
    std::int64_t floats = 0;
    Memory memory{};
    Ticket ticket = 0;
  };
  /// Messages to and from one other stage.
  struct Lane {
    std::deque<Message> expected;  ///< In the order of the sender; the first one is under way if `receives`.
    bool receives = false;
    std::deque<Message> sent;              ///< Messages that may not have arrived yet.
    std::map<PassId, std::size_t> places;  ///< Indices of passes there that need a message from here.
  };

  void note_lane(int stage, HdpRank rank);
  [[nodiscard]] Memory memory();
  [[nodiscard]] int stage_of(PassId pass) const;
  [[nodiscard]] std::optional<PassId> next_here(PassId pass) const;
  void receive_ahead(int stage);
  void receive_next(int stage);
  void wait_for(const Message& message, int stage, const char* what);
  void free_arrived(int stage, std::size_t place);

  Backend& backend_;
  Transport& transport_;
  std::vector<Lane> lanes_;  ///< By stage.
  const Program* program_ = nullptr;
  std::map<MicroBatchId, std::int64_t> floats_;  ///< Size of each message of a micro-batch.
  std::map<PassId, Message> arrived_;            ///< Messages that are not taken yet, by the pass that needs them.
  std::vector<Memory> spare_;
  std::int64_t spare_floats_ = 0;  ///< Size of each spare.
};

}  // namespace hdpsim::kernels::exec
