#include "sim/program/impl/served_attention.h"

#include <optional>

#include "sim/model/shares.h"
#include "sim/program/impl/layer_passes.h"

namespace hdpsim {
namespace {

/// What a half of a layer sends to attention servers and gets back, on the rank that sends or receives most.
struct Messages {
  Bytes tasks;
  Bytes results;
};

Messages messages_of(PassWriter& writer, const ServedHalf& half, Direction direction) {
  const Transformer& layer = writer.layer();
  const Bytes queries = query_bytes(layer, half.queries, writer.tp());
  const Bytes outputs = attention_output_bytes(layer, half.queries, writer.tp());
  const Bytes keys = kv_bytes(layer, half.keys, writer.tp());
  if (direction == Direction::forward) return {queries + keys, outputs};
  const Bytes gradients = keys * writer.recipe().dkv_bytes_per_element / layer.element_bytes;
  return {queries + keys + outputs * 2, queries + gradients};
}

/// Writes both halves of a layer. `first` writes what precedes attention, `last` what follows it.
class ServedLayer {
 public:
  using Part = void (*)(PassWriter&);

  ServedLayer(PassWriter& writer, Direction direction, Part first, Part last)
      : writer_(writer), direction_(direction), first_(first), last_(last) {}

  void write() {
    const std::int64_t all = writer_.tokens();
    writer_.continue_with_tokens(all - all / 2);
    run(first_);
    const auto tasks_a = send(messages(0).tasks, SharedTensor::served);
    writer_.continue_with_tokens(all / 2);
    const Index last_of_b = run(last_);
    run(first_);
    const auto tasks_b = send(messages(1).tasks, SharedTensor::served);
    const auto results_a = attend(0, tasks_a);
    const auto results_b = attend(1, tasks_b);
    if (results_b) writer_.body()[last_of_b].after(*results_b, 1);
    writer_.continue_with_tokens(all - all / 2);
    if (results_a) writer_.await(*results_a);
    run(last_);
    writer_.continue_with_tokens(all);
  }

 private:
  // Returns its first instruction.
  Index run(Part part) {
    const Index first = writer_.next();
    part(writer_);
    writer_.end_stretch();
    return first;
  }

  [[nodiscard]] Messages messages(std::size_t half) {
    return messages_of(writer_, writer_.served_halves()[half], direction_);
  }

  // Sends from the end of the last instruction on. Empty if no rank has something to send.
  std::optional<Index> send(Bytes most, SharedTensor tensor) {
    if (most == Bytes{}) return std::nullopt;
    // (N - 1) / N of the bytes of an all-to-all reach a rank.
    const std::int64_t ranks = writer_.sharing().ranks();
    const Bytes all(divided(most.count() * ranks, ranks - 1));
    return writer_.share_overlapped({CollectiveKind::all_to_all, all, tensor, direction_ == Direction::backward},
                                    writer_.last());
  }

  std::optional<Index> attend(std::size_t half, std::optional<Index> tasks) {
    writer_.attend(busiest_launch(writer_.served_halves()[half].attended), 0, tasks);
    return send(messages(half).results, SharedTensor::outputs);
  }

  PassWriter& writer_;
  Direction direction_;
  Part first_;
  Part last_;
};

void before_attention(PassWriter& writer) {
  writer.run(DensePart::attention_norm);
  qkv_forward(writer);
}

void behind_attention(PassWriter& writer) {
  projection_forward(writer);
  writer.run(DensePart::mlp_norm);
  mlp_forward(writer);
  writer.run(DensePart::mlp_residual);
}

void before_attention_backward(PassWriter& writer) {
  mlp_backward(writer);
  writer.run(DensePart::mlp_norm);
  projection_backward(writer);
}

}  // namespace

void served_forward(PassWriter& writer) {
  ServedLayer(writer, Direction::forward, before_attention, behind_attention).write();
}

void served_backward(PassWriter& writer) {
  ServedLayer(writer, Direction::backward, before_attention_backward, qkv_backward).write();
}

}  // namespace hdpsim
