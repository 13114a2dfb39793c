#include "sim/program/impl/lowering.h"

#include <algorithm>
#include <optional>

#include "sim/model/parameters.h"
#include "sim/program/impl/activation_copies.h"
#include "sim/program/impl/layer_passes.h"
#include "sim/program/impl/pass_writer.h"
#include "sim/program/impl/pool.h"
#include "sim/program/impl/recomputation.h"

namespace hdpsim {
namespace {

class Lowering {
 public:
  explicit Lowering(PassWriter& writer) : writer_(writer), work_(writer.work()) {}

  void run() {
    if (work_.forward()) forward();
    if (work_.repeats_forward && work_.backward()) compute_forward();
    if (work_.backward()) backward();
    if (work_.kind == PassKind::weight_gradient) weights();
  }

 private:
  void forward() {
    if (work_.first_of_stage) overhead();
    compute_forward();
  }

  void compute_forward() {
    if (work_.gathers) {
      PoolBytes gathered = gather_around(writer_);
      if (has_layers()) gathered += gather_of(work_.layers.front());
      gather_first(writer_, gathered);
    }
    if (!work_.embedding) writer_.gather_received(Direction::forward);
    if (work_.embedding && writer_.has_tokens()) embedding_forward();
    for (std::size_t i = 0; i < work_.layers.size(); ++i) {
      const LayerRun* next = i + 1 < work_.layers.size() ? &work_.layers[i + 1] : nullptr;
      if (writer_.has_work(work_.layers[i])) layers_forward(work_.layers[i], next);
    }
    if (work_.head && writer_.has_tokens()) head_forward();
  }

  void backward() {
    if (!work_.head) writer_.gather_received(Direction::backward);
    if (!work_.head && gathers_layers_again()) gather_first(writer_, gather_of(work_.layers.back()));
    if (work_.head && writer_.has_tokens()) head_backward();
    for (std::size_t i = work_.layers.size(); i-- > 0;) {
      const LayerRun* next = i > 0 ? &work_.layers[i - 1] : nullptr;
      if (writer_.has_work(work_.layers[i])) layers_backward(work_.layers[i], next);
    }
    if (trains_embedding() && writer_.has_tokens()) embedding_backward();
  }

  // What was gathered for the input gradients is still in memory.
  void weights() {
    if (work_.head && !writer_.recipe().lora.is_on() && writer_.has_tokens())
      weights_of(DensePart::head, head_parameters(writer_));
    for (const LayerRun& layers : work_.layers) {
      if (writer_.has_work(layers)) weights_of_layers(layers);
    }
    if (trains_embedding() && writer_.has_tokens()) weights_of(DensePart::embedding, embedding_parameters(writer_));
  }

  void weights_of_layers(const LayerRun& layers) {
    writer_.open_layers(layers, Direction::backward);
    layer_weights(writer_);
    reduce(writer_, writer_.layer_parameters(writer_.run()));
  }

  void weights_of(DensePart part, const DeviceParameters& parameters) {
    writer_.open_block(1, Direction::backward);
    writer_.run(part);
    end_block();
    reduce(writer_, parameters);
  }

  void overhead() {
    writer_.open_block(1, Direction::forward);
    writer_.add(Opcode::overhead, Stream::compute, 0);
  }

  void embedding_forward() {
    writer_.open_block(1, Direction::forward);
    writer_.run(DensePart::embedding);
    writer_.reduce_scatter(DensePart::embedding);
    end_block();
  }

  void embedding_backward() {
    writer_.open_block(1, Direction::backward);
    writer_.all_gather(DensePart::embedding);
    writer_.run(DensePart::embedding);
    end_block();
    reduce(writer_, embedding_parameters(writer_));
  }

  void head_forward() {
    writer_.open_block(1, Direction::forward);
    writer_.run(DensePart::final_norm);
    writer_.all_gather(DensePart::final_norm);
    writer_.run(DensePart::head);
    writer_.all_gather(DensePart::head);
    end_block();
  }

  void head_backward() {
    writer_.open_block(1, Direction::backward);
    if (gathers_layers_again()) gather(writer_, gather_of(work_.layers.back()));
    writer_.run(DensePart::head);
    writer_.gather_input_again(DensePart::head);
    writer_.reduce_scatter(DensePart::head);
    writer_.run(DensePart::final_norm);
    end_block();
    reduce(writer_, head_parameters(writer_));
  }

  void layers_forward(const LayerRun& layers, const LayerRun* next) {
    writer_.open_layers(layers, Direction::forward);
    const auto gathered = work_.gathers ? std::optional(gather_next(writer_, next)) : std::nullopt;
    writer_.begin_layer();
    layer_forward(writer_);
    writer_.issue();
    if (gathered) wait_for_gather(writer_, *gathered);
    offload(writer_);
  }

  void layers_backward(const LayerRun& layers, const LayerRun* next) {
    writer_.open_layers(layers, Direction::backward);
    const std::optional<Index> fetched = prefetch(writer_);
    const auto gathered = gathers_again(writer_) ? std::optional(gather_next(writer_, next)) : std::nullopt;
    writer_.begin_layer();
    layer_backward(writer_);
    if (gathered) wait_for_gather(writer_, *gathered);
    if (writer_.has_tokens()) {
      begin_ring_behind_last_layer(writer_);
      if (fetched) wait_for_prefetch(writer_, *fetched);
    }
    reduce(writer_, writer_.layer_parameters(writer_.run()));
  }

  // A chunk that is the embedding or the head alone has no layers.
  [[nodiscard]] bool has_layers() const { return !work_.layers.empty(); }
  [[nodiscard]] bool gathers_layers_again() const { return has_layers() && gathers_again(writer_); }
  [[nodiscard]] const PoolBytes& gather_of(const LayerRun& layers) const { return writer_.layer_gather(layers); }
  // Nothing before frozen layers is trained.
  [[nodiscard]] bool trains_embedding() const { return work_.embedding && !writer_.recipe().lora.is_on(); }

  void end_block() {
    writer_.end_stretch();
    writer_.issue();
  }

  PassWriter& writer_;
  const PassWork& work_;
};

}  // namespace

MicroBatchProgram lowered(const PassWork& work, const MicroBatch& micro_batch, const LoweringOptions& options,
                          const ModelParts& parts, const ExpertTokens& expert_tokens) {
  PassWriter writer(work, micro_batch, options, parts, expert_tokens);
  Lowering(writer).run();
  MicroBatchProgram program = writer.take();
  program.host_copies = host_copies(writer);
  if (work.gathers) program.gather_bucket = gather_bucket(writer);
  if (work.reduces) program.reduce_bucket = reduce_bucket(writer);
  return program;
}

}  // namespace hdpsim
