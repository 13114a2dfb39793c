#include "sim/program/impl/recomputation.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/model/layers.h"
#include "sim/program/impl/activation_copies.h"
#include "sim/program/impl/group_lowering.h"
#include "sim/program/impl/layer_passes.h"

namespace hdpsim {
namespace {

using enum LayerModule;

bool is_again(const PassWriter& writer, LayerModule module) {
  return writer.recipe().recompute.has(module);
}

// Whether the projection is recomputed: attention's half is then recomputed before the MLP's backward.
bool attention_is_first(const PassWriter& writer) {
  return is_again(writer, projection);
}

// A recomputed input of a product is all-gathered again, whether or not the product itself is recomputed, unless
// backward gathers it anyway.
void attention_half(PassWriter& writer) {
  if (is_again(writer, norm)) writer.run(DensePart::attention_norm);
  if (is_again(writer, qkv)) {
    qkv_forward(writer);
  } else if (is_again(writer, norm) && !writer.recipe().gathers_inputs_again()) {
    writer.all_gather(DensePart::attention_norm);
  }
  if (is_again(writer, attention)) attention_forward(writer);
  if (is_again(writer, projection)) projection_forward(writer);
}

void mlp_half(PassWriter& writer) {
  if (!has_mlp(writer.layer())) return writer.end_stretch();
  if (is_again(writer, norm) && writer.has_tokens()) writer.run(DensePart::mlp_norm);
  if (is_again(writer, writer.layer().moe ? experts : mlp)) {
    mlp_forward(writer);
  } else {
    const bool gathers = is_again(writer, norm) && !writer.layer().moe && !writer.recipe().gathers_inputs_again();
    if (gathers) writer.all_gather(DensePart::mlp_norm);
    if (is_again(writer, activation)) {
      writer.layer().moe ? writer.expert_activations() : writer.run(DensePart::mlp_activation);
    }
  }
  writer.end_stretch();
}

// The outputs of every second product, of attention and of sums over devices are there. What attention's projection
// makes is then only needed for such a sum, which a compiled layer leaves out.
void per_operation(PassWriter& writer) {
  const Recipe& recipe = writer.recipe();
  if (mixes_tokens(writer.layer())) {
    writer.run(DensePart::attention_norm);
    writer.all_gather(DensePart::attention_norm);
    writer.run(DensePart::qkv_again);
    if (!recipe.flash_attention) attention_forward(writer);
    if (recipe.layers != LayerKernels::compiled || writer.tp() == 1) writer.run(DensePart::attention_output_again);
    writer.run(DensePart::attention_residual);
  }
  if (has_mlp(writer.layer())) {
    writer.run(DensePart::mlp_norm);
    writer.all_gather(DensePart::mlp_norm);
    writer.run(DensePart::mlp_again);
  }
  writer.end_stretch();
}

// The layer as a whole, with all of its products or without the last one.
void whole_layer(PassWriter& writer) {
  const bool is_in_parts = lowering_of(writer.sharing()).layer_forward == parts_forward;
  const bool ends_with_mlp = has_mlp(writer.layer()) && !writer.layer().moe;
  if (!writer.recipe().stops_early() || !writer.has_tokens() || !is_in_parts || !ends_with_mlp) {
    return layer_forward(writer);
  }
  if (mixes_tokens(writer.layer())) {
    writer.run(DensePart::attention_norm);
    qkv_forward(writer);
    attention_forward(writer);
    projection_forward(writer);
  }
  writer.run(DensePart::mlp_norm);
  writer.all_gather(DensePart::mlp_norm);
  writer.run(DensePart::mlp_inner);
  writer.end_stretch();
}

// Recomputes what comes between the layer's input and attention's output, and what follows the latter, except modules
// that are recomputed for all tokens anyway.
void around_attention(PassWriter& writer) {
  if (mixes_tokens(writer.layer())) {
    if (!is_again(writer, norm)) writer.run(DensePart::attention_norm);
    if (!is_again(writer, qkv)) qkv_forward(writer);
    if (!is_again(writer, projection)) projection_forward(writer);
  }
  if (has_mlp(writer.layer())) {
    if (!is_again(writer, norm)) writer.run(DensePart::mlp_norm);
    if (!is_again(writer, mlp)) {
      writer.all_gather(DensePart::mlp_norm);
      writer.run(DensePart::mlp_inner);
    }
  }
  writer.end_stretch();
}

std::int64_t split_tokens(const PassWriter& writer) {
  const std::int64_t all = writer.tokens();
  return all - std::llround(writer.micro_batch().offload * static_cast<double>(all));
}

// Recomputes the activations of the tokens that token-wise offload does not copy, from the layer's input and
// attention's output, which came back from the host. The two layers that stayed on the device have all activations.
void compute_split_again(PassWriter& writer) {
  HDPSIM_CHECK(!writer.layer().moe, "token-wise offload of layers with experts of {}", writer.model().name);
  const std::int64_t all = writer.tokens();
  writer.begin_at_iteration(resident_here(writer));
  writer.continue_with_tokens(split_tokens(writer));
  if (writer.has_tokens()) around_attention(writer);
  writer.continue_with_tokens(all);
  writer.begin_at_iteration(0);
}

}  // namespace

void compute_mlp_again(PassWriter& writer) {
  const Recompute recompute = writer.recipe().recompute;
  writer.turn(Direction::forward);
  if (recompute == Recompute::full) {
    whole_layer(writer);
  } else {
    if (writer.micro_batch().token_wise) compute_split_again(writer);
    if (recompute == Recompute::per_operation && writer.has_tokens()) per_operation(writer);
    const bool attends = mixes_tokens(writer.layer()) && writer.has_tokens();
    if (attention_is_first(writer) && attends) attention_half(writer);
    mlp_half(writer);
  }
  writer.turn(Direction::backward);
}

void compute_attention_again(PassWriter& writer) {
  const bool has_any = is_again(writer, norm) || is_again(writer, qkv) || is_again(writer, attention);
  if (!has_any || attention_is_first(writer)) return;
  writer.end_stretch();  // the backward parts so far
  writer.turn(Direction::forward);
  attention_half(writer);
  writer.end_stretch();
  writer.turn(Direction::backward);
}

void begin_ring_behind_last_layer(PassWriter& writer) {
  if (writer.rings().empty()) return;
  const std::size_t first = writer.rings().front().first;
  if (first < writer.first_kernel_of_all()) writer.body()[first].after(writer.last(), 1);
}

}  // namespace hdpsim
