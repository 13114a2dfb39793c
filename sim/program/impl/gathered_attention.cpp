#include "sim/program/impl/gathered_attention.h"

#include <utility>

#include "sim/base/check.h"
#include "sim/model/shares.h"
#include "sim/program/impl/gathered_chunks.h"
#include "sim/program/ring_launches.h"

namespace hdpsim {
namespace {

// Of layers that see few tokens the halo, otherwise the keys that a rank's queries see of other ranks.
std::int64_t needed_keys(PassWriter& writer) {
  const RingAttention steps =
      ring_attention(writer.micro_batch(), writer.layer(), writer.tp(), writer.sharing(), Direction::forward);
  return steps.halo ? *steps.halo : writer.group_work().most_remote_keys();
}

/// Keys and values that are moved, as nccl-tests count: what an all-gather leaves on a rank, or of what (N - 1) / N
/// reach it in an all-to-all.
struct Moved {
  Bytes all;
  CollectiveKind there;
  CollectiveKind back;
};

Moved all_keys(PassWriter& writer) {
  const std::int64_t tokens = writer.shared_tokens() * writer.sharing().ranks();
  return {kv_bytes(writer.layer(), tokens, writer.tp()), CollectiveKind::all_gather, CollectiveKind::reduce_scatter};
}

Moved needed_alone(PassWriter& writer) {
  const std::int64_t ranks = writer.sharing().ranks();
  const std::int64_t tokens = divided(needed_keys(writer) * ranks, ranks - 1);
  return {kv_bytes(writer.layer(), tokens, writer.tp()), CollectiveKind::all_to_all, CollectiveKind::all_to_all};
}

// Gathers what `needed` has made. The attention of what ranks hold alone runs beside it.
void gather(PassWriter& writer, const Moved& both, std::optional<Index> needed) {
  if (both.all == Bytes{}) return writer.attend_local();  // no query sees a key of another rank
  const SharingCollective keys{both.there, both.all / 2, SharedTensor::keys};
  const SharingCollective values{both.there, both.all - both.all / 2, SharedTensor::values};
  std::optional<Index> gathered;
  if (writer.has_local_spans()) {
    writer.share_overlapped(keys, needed);
    gathered = writer.share_overlapped(values, needed);
    writer.attend_local();
  } else {
    writer.share(keys);
    writer.share(values);
  }
  writer.add_ring(Opcode::merge, Stream::compute, writer.memory_bound({both.all * 2, 1}), 0);
  if (gathered) writer.body().back().after(*gathered);
}

void attend_gathered(PassWriter& writer, Direction direction) {
  HDPSIM_CHECK(!writer.layer().indexer || !is_uneven(writer.micro_batch()), "unequal ranks choose keys");
  if (is_uneven(writer.micro_batch())) return void(writer.attend(writer.group_work().with_all_keys(), 0));
  RingAttention all = gathered_attention(writer.micro_batch(), writer.layer(), writer.tp(), direction);
  writer.choose_keys(all, 0);
  writer.add_ring(Opcode::attention, Stream::compute, writer.attention(std::move(all.own), SpanLaunch::Part::gathered),
                  0);
}

void forward_moved(PassWriter& writer, const Moved& both, std::optional<Index> projected) {
  gather(writer, both, projected);
  attend_gathered(writer, Direction::forward);
}

std::optional<Index> backward_moved(PassWriter& writer, const Moved& both, Index differentiated) {
  gather(writer, both, differentiated);
  attend_gathered(writer, Direction::backward);
  if (both.all == Bytes{}) return std::nullopt;
  const Bytes gradients = both.all * writer.recipe().dkv_bytes_per_element / writer.layer().element_bytes;
  writer.share({both.back, gradients / 2, SharedTensor::keys, true});
  writer.share({both.back, gradients - gradients / 2, SharedTensor::values, true});
  return std::nullopt;
}

}  // namespace

void forward_gathered(PassWriter& writer, std::optional<Index> projected) {
  if (attends_by_chunks(writer)) return forward_by_chunks(writer, projected);
  forward_moved(writer, all_keys(writer), projected);
}

std::optional<Index> backward_gathered(PassWriter& writer, Index differentiated) {
  if (attends_by_chunks(writer)) return backward_by_chunks(writer, differentiated);
  return backward_moved(writer, all_keys(writer), differentiated);
}

void forward_cast(PassWriter& writer, std::optional<Index> projected) {
  forward_moved(writer, needed_alone(writer), projected);
}

std::optional<Index> backward_cast(PassWriter& writer, Index differentiated) {
  return backward_moved(writer, needed_alone(writer), differentiated);
}

}  // namespace hdpsim
