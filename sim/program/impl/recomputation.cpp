#include "sim/program/impl/recomputation.h"

#include <cmath>

#include "sim/base/check.h"
#include "sim/program/impl/layer.h"
#include "sim/program/impl/offload.h"
#include "sim/program/impl/ring.h"

namespace hdpsim {
namespace {

std::int64_t split_tokens(const PassWriter& writer) {
  const std::int64_t all = writer.tokens();
  return all - std::llround(writer.micro_batch().offload * static_cast<double>(all));
}

// From the layer's input and attention's output, all that lies between and behind them.
void around_attention(PassWriter& writer) {
  using enum DensePart;
  writer.run(attention_norm);
  writer.all_gather(attention_norm);
  writer.run(qkv);
  writer.run(attention_output);
  writer.reduce_scatter(attention_output);
  writer.run(mlp_norm);
  writer.all_gather(mlp_norm);
  writer.run(mlp_inner);
  writer.end_stretch();
}

// Of the tokens that token-wise offload leaves: layer's input and attention's output came back. The two layers that
// stayed have all.
void compute_split_again(PassWriter& writer, const LayerRun& of) {
  HDPSIM_CHECK(!of.has_experts, "token-wise offload of layers with experts of {}", writer.model().name);
  const std::size_t first = writer.body().size();
  const std::int64_t all = writer.tokens();
  writer.continue_with_tokens(split_tokens(writer));
  if (writer.has_tokens()) around_attention(writer);
  writer.continue_with_tokens(all);
  for (std::size_t i = first; i < writer.body().size(); ++i) writer.body()[i].first_iteration = resident_layers;
}

}  // namespace

void compute_again(PassWriter& writer, const LayerRun& of) {
  const Recompute recompute = writer.options().recompute;
  writer.turn(Direction::forward);
  if (writer.micro_batch().token_wise && recompute != Recompute::full) compute_split_again(writer, of);
  if (recompute == Recompute::full) layer_forward(writer, of);
  if (recompute == Recompute::selective && writer.has_tokens()) forward_ring(writer, std::nullopt);
  writer.turn(Direction::backward);
}

void begin_behind_last_layer(PassWriter& writer) {
  Instruction& first = first_of_layer(writer);
  if (first.opcode == Opcode::exchange) first.after(writer.last(), 1);
}

}  // namespace hdpsim
