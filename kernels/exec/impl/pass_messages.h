#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/exec/parameters.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"
#include "sim/program/program.h"

namespace hdpsim::kernels::exec {

/// What the passes of one device send to and need from other stages: hidden states forward, their gradients backward,
/// of the device's own rows. Each message has memory of its own, so that it travels beside the passes that follow, and
/// the next one from each stage is received before it is needed.
///
/// The messages of two stages match in the order in which they are sent. That is the order of the sender's passes, and
/// need not be the one in which the receiver needs them: what comes early is kept.
class PassMessages {
 public:
  /// `stages`: the devices with the same shard of all stages of the HDP rank, in their order. Both outlive this.
  PassMessages(Backend& backend, Transport& stages)
      : backend_(backend), transport_(stages), lanes_(static_cast<std::size_t>(stages.size())) {}
  PassMessages(const PassMessages&) = delete;
  PassMessages& operator=(const PassMessages&) = delete;
  /// Where an error has left messages under way, their memory stays until the process ends.
  ~PassMessages();

  /// `rank`: of whose pipeline the device is.
  void begin_step(const Program& program, HdpRank rank, const TensorShard& shard);
  /// Waits until there is what a pass needs; does nothing for one that needs nothing. DeviceError if a stage fails:
  /// which pass, and whom the transport waits for.
  void wait(PassId pass);
  /// Moves it to `to`, [own rows, h]. Nothing likewise.
  void take(PassId pass, void* to);
  /// Starts the message that a pass has to send from `from`, [own rows, h], which may be used again at once. Where this
  /// stage has the next chunk, too, the message stays here.
  void send(PassId pass, const void* from);
  /// Waits until all that was sent has arrived.
  void end_step();

 private:
  using Memory = std::unique_ptr<float[]>;
  /// What a pass of this stage or another one needs. `place`: of the other stage's pass in the order there.
  struct Message {
    PassId pass;
    std::size_t place = 0;
    std::int64_t floats = 0;
    Memory memory{};
    Ticket ticket = 0;
  };
  /// What goes to and comes from one other stage.
  struct Lane {
    std::deque<Message> expected;  ///< In the order of its sender; the first of them is under way, if `receives`.
    bool receives = false;
    std::deque<Message> sent;              ///< Not known to have arrived.
    std::map<PassId, std::size_t> places;  ///< Of passes there that need something from here.
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
  std::map<MicroBatchId, std::int64_t> floats_;  ///< Of each message of a micro-batch.
  std::map<PassId, Message> arrived_;            ///< Not taken yet, by the pass that needs it.
  std::vector<Memory> spare_;
  std::int64_t spare_floats_ = 0;  ///< Of each.
};

}  // namespace hdpsim::kernels::exec
