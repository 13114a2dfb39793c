#include "sim/program/impl/linear_mixing.h"

#include <algorithm>
#include <numeric>

#include "sim/model/mixing.h"
#include "sim/model/shares.h"
#include "sim/model/sharing_form.h"

namespace hdpsim {
namespace {

/// A way to share linear mixing: `traders` consecutive ranks trade tokens for heads, so that each has all tokens of its
/// party for a part of the heads, and the parties pass states on.
struct Way {
  std::int64_t traders = 1;
  Bytes inputs;   ///< Of a rank's tokens, which it trades if `traders` is above 1 ...
  Bytes outputs;  ///< ... and those of the mixing.
  Bytes states;   ///< Those that every rank gets.

  [[nodiscard]] Bytes all() const { return states + (inputs + outputs) * (traders - 1) / traders; }
};

// The states at the ends of all parts, two a party, of which the first of a sequence needs none and the last gives
// none.
std::int64_t states_among(const MicroBatch& micro_batch, std::int64_t parties) {
  std::int64_t states = 0;
  const auto add = [&](std::int64_t tokens) { states += std::max<std::int64_t>(0, std::min(tokens, 2 * parties) - 2); };
  for (const Span& span : micro_batch.spans) add(span.tokens);
  add(micro_batch.padding);
  return states;
}

Way way_of(PassWriter& writer, std::int64_t traders) {
  const Transformer& layer = writer.layer();
  const std::int64_t tokens = writer.shared_tokens();
  const std::int64_t states = states_among(writer.micro_batch(), writer.sharing().ranks() / traders);
  return {traders, Bytes(tokens * divided(layer.linear->inputs, writer.tp()) * layer.element_bytes),
          attention_output_bytes(layer, tokens, writer.tp()),
          state_bytes(*layer.linear, writer.tp()) * states / traders};
}

// O(spans x divisors of the heads).
Way chosen_way(PassWriter& writer) {
  const MixingExchange exchange = writer.recipe().mixing_exchange;
  if (exchange == MixingExchange::states) return way_of(writer, 1);
  const std::int64_t heads = std::max<std::int64_t>(1, writer.layer().linear->heads / writer.tp());
  const std::int64_t most = std::gcd(writer.sharing().ranks(), heads);
  if (exchange == MixingExchange::heads) return way_of(writer, most);
  Way best = way_of(writer, 1);
  for (std::int64_t traders = 2; traders <= most; ++traders) {
    if (most % traders != 0) continue;
    const Way way = way_of(writer, traders);
    if (way.all() < best.all()) best = way;
  }
  return best;
}

void trade(PassWriter& writer, Bytes bytes, const Way& way, bool gradients) {
  if (way.traders == 1) return;
  writer.share({CollectiveKind::all_to_all, bytes, SharedTensor::mixed, gradients, way.traders});
}

// Without a ring an all-gather. Returns the exchange in a ring, for which nothing waits yet.
std::optional<Index> exchange_states(PassWriter& writer, const Way& way) {
  const Index mixed = writer.last();
  if (form_of(writer.sharing()).hops(writer.sharing()) == 0) {
    writer.share({CollectiveKind::all_gather, way.states, SharedTensor::states});
    return std::nullopt;
  }
  const auto once = static_cast<std::size_t>(writer.sharing().parties) + 1;
  const Index received = writer.add_ring(Opcode::exchange, Stream::comm, writer.bytes(way.states), once);
  writer.body().back().after(mixed);
  writer.end_ring(received);
  return received;
}

// Mixes, between the trade of what it reads and of what it writes. Returns an exchange for which nothing waits yet.
std::optional<Index> mix(PassWriter& writer, bool backward) {
  if (writer.sharing().ranks() == 1) {
    writer.run(DensePart::mixing);
    writer.end_stretch();
    return std::nullopt;
  }
  const Way way = chosen_way(writer);
  trade(writer, backward ? way.outputs : way.inputs, way, backward);
  writer.run(DensePart::mixing);
  writer.end_stretch();
  const bool passes_states = way.traders < writer.sharing().ranks();
  const std::optional<Index> received = passes_states ? exchange_states(writer, way) : std::nullopt;
  if (way.traders == 1) return received;
  trade(writer, backward ? way.inputs : way.outputs, way, backward);
  if (received) writer.body().back().after(*received);
  return std::nullopt;
}

}  // namespace

void mixing_forward(PassWriter& writer) {
  if (const auto received = mix(writer, false)) writer.await(*received);
}

std::optional<Index> mixing_backward(PassWriter& writer) {
  return mix(writer, true);
}

}  // namespace hdpsim
