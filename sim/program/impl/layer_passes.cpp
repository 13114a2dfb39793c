#include "sim/program/impl/layer_passes.h"

#include "sim/model/layers.h"
#include "sim/model/parameters.h"
#include "sim/program/impl/group_lowering.h"
#include "sim/program/impl/linear_mixing.h"
#include "sim/program/impl/recomputation.h"

namespace hdpsim {
namespace {

// The gradients of keys and values, or of states.
std::optional<Index> tokens_backward(PassWriter& writer) {
  if (writer.layer().linear) return mixing_backward(writer);
  return lowering_of(writer.sharing()).backward(writer, writer.last());
}

// From the gradient of the attention branch's output to the gradient of its input.
void attention_backward(PassWriter& writer) {
  projection_backward(writer);
  if (const std::optional<Index> last_exchange = tokens_backward(writer)) writer.await(*last_exchange);
  qkv_backward(writer);
}

}  // namespace

void qkv_forward(PassWriter& writer) {
  writer.all_gather(DensePart::attention_norm);
  writer.run(DensePart::qkv);
}

void attention_forward(PassWriter& writer) {
  writer.end_stretch();
  if (writer.layer().linear) return mixing_forward(writer);
  lowering_of(writer.sharing()).forward(writer, writer.first_kernel() ? std::optional(writer.last()) : std::nullopt);
}

void projection_forward(PassWriter& writer) {
  writer.run(DensePart::attention_output);
  writer.reduce_scatter(DensePart::attention_output);
  writer.run(DensePart::attention_residual);
}

void mlp_forward(PassWriter& writer) {
  if (writer.layer().moe) return writer.experts();
  writer.all_gather(DensePart::mlp_norm);
  writer.run(DensePart::mlp);
  writer.reduce_scatter(DensePart::mlp);
}

void mlp_backward(PassWriter& writer) {
  writer.all_gather(DensePart::mlp);
  writer.run(DensePart::mlp);
  writer.gather_input_again(DensePart::mlp);
  writer.reduce_scatter(DensePart::mlp);
}

void projection_backward(PassWriter& writer) {
  writer.all_gather(DensePart::attention_output);
  writer.run(DensePart::attention_output);
  writer.end_stretch();
}

void qkv_backward(PassWriter& writer) {
  writer.run(DensePart::qkv);
  writer.gather_input_again(DensePart::qkv);
  writer.reduce_scatter(DensePart::qkv);
  writer.run(DensePart::attention_norm);
  writer.end_stretch();
}

void parts_forward(PassWriter& writer) {
  if (mixes_tokens(writer.layer())) {
    writer.run(DensePart::attention_norm);
    qkv_forward(writer);
    attention_forward(writer);
    projection_forward(writer);
  }
  if (has_mlp(writer.layer())) {
    writer.run(DensePart::mlp_norm);
    mlp_forward(writer);
    writer.run(DensePart::mlp_residual);
  }
  writer.end_stretch();
}

void parts_backward(PassWriter& writer) {
  compute_mlp_again(writer);
  if (has_mlp(writer.layer())) writer.layer().moe ? writer.experts() : mlp_backward(writer);
  if (writer.has_tokens()) {
    if (has_mlp(writer.layer())) writer.run(DensePart::mlp_norm);
    if (mixes_tokens(writer.layer())) {
      compute_attention_again(writer);
      attention_backward(writer);
    }
    writer.end_stretch();
  }
}

void layer_forward(PassWriter& writer) {
  if (!writer.has_tokens()) return writer.experts();
  lowering_of(writer.sharing()).layer_forward(writer);
}

void layer_backward(PassWriter& writer) {
  lowering_of(writer.sharing()).layer_backward(writer);
  writer.issue();
}

void layer_weights(PassWriter& writer) {
  if (writer.layer().moe) {
    writer.experts();
  } else if (has_mlp(writer.layer())) {
    writer.run(DensePart::mlp);
  }
  if (writer.has_tokens()) {
    if (mixes_tokens(writer.layer())) {
      writer.run(DensePart::attention_output);
      writer.run(DensePart::qkv);
    }
    writer.end_stretch();
  }
  writer.issue();
}

}  // namespace hdpsim
