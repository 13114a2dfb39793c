#include "sim/program/impl/layer.h"

#include "sim/program/impl/ring.h"

namespace hdpsim {
namespace {

void mlp_forward(PassWriter& writer) {
  writer.all_gather(DensePart::mlp_norm);
  writer.run(DensePart::mlp);
  writer.reduce_scatter(DensePart::mlp);
}

void mlp_backward(PassWriter& writer) {
  writer.all_gather(DensePart::mlp);
  writer.run(DensePart::mlp);
  writer.reduce_scatter(DensePart::mlp);
}

// From the gradient of the output of attention's branch to that of its input.
void attention_backward(PassWriter& writer) {
  writer.all_gather(DensePart::attention_output);
  writer.run(DensePart::attention_output);
  writer.end_stretch();
  const std::optional<Index> last_exchange = backward_ring(writer, writer.last());
  const auto behind_ring = static_cast<std::size_t>(writer.last()) + 1;
  writer.run(DensePart::qkv);
  writer.reduce_scatter(DensePart::qkv);
  writer.run(DensePart::attention_norm);
  writer.end_stretch();
  if (last_exchange) writer.body()[behind_ring].after(*last_exchange);
}

}  // namespace

void layer_forward(PassWriter& writer, const LayerRun& of) {
  if (!writer.has_tokens()) return writer.experts();
  writer.run(DensePart::attention_norm);
  writer.all_gather(DensePart::attention_norm);
  writer.run(DensePart::qkv);
  writer.end_stretch();
  forward_ring(writer, writer.last());
  writer.run(DensePart::attention_output);
  writer.reduce_scatter(DensePart::attention_output);
  writer.run(DensePart::mlp_norm);
  of.has_experts ? writer.experts() : mlp_forward(writer);
  writer.run(DensePart::mlp_residual);
  writer.end_stretch();
}

void layer_backward(PassWriter& writer, const LayerRun& of) {
  of.has_experts ? writer.experts() : mlp_backward(writer);
  if (writer.has_tokens()) {
    writer.run(DensePart::mlp_norm);
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
