#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "kernels/exec/impl/dense.h"
#include "kernels/exec/impl/group_core.h"
#include "kernels/exec/impl/in_flight.h"
#include "kernels/exec/impl/layer_mixing.h"
#include "kernels/exec/impl/pass_messages.h"
#include "kernels/exec/impl/recorder.h"
#include "kernels/exec/impl/step_losses.h"
#include "kernels/exec/tokens.h"
#include "kernels/spec/host_copies.h"
#include "sim/program/program.h"

namespace hdpsim::kernels::exec {

/// Runs the programs of passes on one device, instruction by instruction in the order of the body, which their
/// dependencies allow: kernels run at once; a send/recv overlaps with what follows it until something needs it or the
/// next one needs its stream. Copies to and from the host overlap with both, messages to other stages with the
/// following passes.
///
/// On a backend that runs ahead, kernels are queued and every wait is a wait of its queue: nothing here waits for the
/// device, except to grow memory.
class Interpreter {
 public:
  struct Parts {
    Backend& backend;
    Dense& dense;
    GroupCore& core;
    LayerMixing& mixing;
    InFlight& in_flight;
    PassMessages& messages;
    Recorder& recorder;
    HostCopies& copies;
    StepLosses& losses;
  };
  explicit Interpreter(const Parts& parts) : parts_(parts) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
  /// Waits for copies that an error has left under way, because their memory is about to be freed.
  ~Interpreter();

  /// The source of a step's tokens, and the weight of each token in the loss.
  struct Batch {
    const TokenSource& tokens;
    float loss_scale = 1;
  };
  /// Runs one pass of a micro-batch. The losses of its rows are known after the backward pass of the chunk with the
  /// head.
  void run(const Program& program, PassId id, HdpRank rank, const Batch& batch);

 private:
  void run_block(std::uint32_t index);
  /// Runs the loops [first, end) over kinds of layers, layer by layer.
  void run_layers(std::uint32_t first, std::uint32_t end);
  /// The block behind the loops over kinds of layers that begin with this block, or behind the block.
  [[nodiscard]] std::uint32_t end_of_layers(std::uint32_t first) const;
  const Block& enter_block(std::uint32_t index);
  void run_iteration(const Block& block);
  [[nodiscard]] bool begins_ring(const Instruction& instruction) const;
  [[nodiscard]] Direction ring_direction() const;
  void begin_ring();
  /// Whether the tokens of the layer are mixed in linear time.
  [[nodiscard]] bool mixes() const { return parts_.mixing.has(at_.layer); }
  [[nodiscard]] GroupCore::Tensors core_tensors() const {
    return {at_.activations->layer(at_.layer), at_.activations->shared(), at_.layer};
  }
  [[nodiscard]] Dense::Place dense_place() const { return {*at_.activations, at_.layer, at_.batch->loss_scale}; }
  void issue(const Instruction& instruction);
  void wait_for_dependencies(const Instruction& instruction);
  void wait_for_exchange();
  void compute(const Instruction& instruction);
  void exchange(const Instruction& instruction);
  /// Runs a collective of the group. The wait in it is recorded as that for a send/recv is.
  void share(const Instruction& instruction);
  /// Starts the copies of one layer for an instruction of the device-to-host or host-to-device stream.
  void copy(const Instruction& instruction, std::uint32_t iteration);
  /// Starts copies back to the device ahead of the iteration that needs them, as soon as the copies that they wait for
  /// are done.
  void prefetch_ahead(const Block& block);
  void wait_for_first_copy();
  void take_share();
  /// The place of the micro-batch's span, if it is one of the chunks of a sequence in order.
  [[nodiscard]] std::optional<ChunkPlace> chunk_place() const;
  /// Whether the micro-batch drops its activations between its passes.
  [[nodiscard]] bool drops_activations() const;
  /// Gets the activations of a pass, and the message from another stage.
  void enter_pass();
  void begin_activations();
  /// Sends the result of the pass to the next stage.
  void leave_pass();
  /// The direction in which the pass goes through the stages.
  [[nodiscard]] Direction pass_direction() const {
    return keeps_activations(at_.pass.kind) ? Direction::forward : Direction::backward;
  }
  [[nodiscard]] InstructionRecord record_of(const Instruction& instruction) const;
  [[nodiscard]] std::int64_t layer_of(std::uint32_t iteration) const;

  /// The current place of the interpreter.
  struct Place {
    const Program* program = nullptr;
    PassId id;
    StagePass pass;
    HdpRank rank;
    const Batch* batch = nullptr;
    const Share* share = nullptr;
    const Activations* activations = nullptr;
    std::uint32_t block = 0;
    std::uint32_t iteration = 0;
    std::uint32_t instruction = 0;
    Direction direction = Direction::forward;  ///< Direction of the block.
    std::int64_t layer = 0;
  };
  struct UnderWay {
    std::uint64_t record = 0;
    std::uint32_t instruction = 0;
    std::uint32_t iteration = 0;
    bool of_states = false;  ///< An exchange of linear mixing.
  };
  Parts parts_;
  Place at_;
  MicroBatchProgram instructions_;
  std::optional<UnderWay> under_way_;
  struct CopyUnderWay {
    UnderWay what;
    HostCopies::Ticket ticket = 0;
  };
  std::deque<CopyUnderWay> copies_under_way_;
  std::uint32_t next_prefetch_ = 0;  ///< Next iteration of the block to prefetch.
};

}  // namespace hdpsim::kernels::exec
