#include "sim/program/impl/layer.h"

#include "sim/model/parameters.h"
#include "sim/program/impl/recomputation.h"
#include "sim/program/impl/ring.h"

namespace hdpsim {
namespace {

void mlp_backward(PassWriter& writer) {
  writer.all_gather(DensePart::mlp);
  writer.run(DensePart::mlp);
  writer.gather_input_again(DensePart::mlp);
  writer.reduce_scatter(DensePart::mlp);
}

// From the gradient of the attention branch's output to the gradient of its input.
void attention_backward(PassWriter& writer) {
  writer.all_gather(DensePart::attention_output);
  writer.run(DensePart::attention_output);
  writer.end_stretch();
  const std::optional<Index> last_exchange = backward_ring(writer, writer.last());
  const auto behind_ring = static_cast<std::size_t>(writer.last()) + 1;
  writer.run(DensePart::qkv);
  writer.gather_input_again(DensePart::qkv);
  writer.reduce_scatter(DensePart::qkv);
  writer.run(DensePart::attention_norm);
  writer.end_stretch();
  if (last_exchange) writer.body()[behind_ring].after(*last_exchange);
}

}  // namespace

void qkv_forward(PassWriter& writer) {
  writer.all_gather(DensePart::attention_norm);
  writer.run(DensePart::qkv);
}

void attention_forward(PassWriter& writer) {
  writer.end_stretch();
  forward_ring(writer, has_kernel(writer) ? std::optional(writer.last()) : std::nullopt);
}

void projection_forward(PassWriter& writer) {
  writer.run(DensePart::attention_output);
  writer.reduce_scatter(DensePart::attention_output);
  writer.run(DensePart::attention_residual);
}

void mlp_forward(PassWriter& writer, const LayerRun& of) {
  if (of.has_experts) return writer.experts();
  writer.all_gather(DensePart::mlp_norm);
  writer.run(DensePart::mlp);
  writer.reduce_scatter(DensePart::mlp);
}

void layer_forward(PassWriter& writer, const LayerRun& of) {
  if (!writer.has_tokens()) return writer.experts();
  writer.run(DensePart::attention_norm);
  qkv_forward(writer);
  attention_forward(writer);
  projection_forward(writer);
  writer.run(DensePart::mlp_norm);
  mlp_forward(writer, of);
  writer.run(DensePart::mlp_residual);
  writer.end_stretch();
}

void layer_backward(PassWriter& writer, const LayerRun& of) {
  compute_mlp_again(writer, of);
  of.has_experts ? writer.experts() : mlp_backward(writer);
  if (writer.has_tokens()) {
    writer.run(DensePart::mlp_norm);
    compute_attention_again(writer);
    attention_backward(writer);
  }
  writer.issue();
}

void layer_weights(PassWriter& writer, const LayerRun& of) {
  if (of.has_experts) {
    writer.experts();
  } else {
    writer.run(DensePart::mlp);
  }
  if (writer.has_tokens()) {
    writer.run(DensePart::attention_output);
    writer.run(DensePart::qkv);
    writer.end_stretch();
  }
  writer.issue();
}

}  // namespace hdpsim
