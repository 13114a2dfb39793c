#include "sim/program/impl/gathered_keys.h"

#include <utility>

#include "sim/base/check.h"
#include "sim/model/shares.h"
#include "sim/program/ring_attention.h"

namespace hdpsim {
namespace {

// Of layers that see few tokens the halo, otherwise the keys that a rank's queries see of other ranks.
std::int64_t needed_keys(PassWriter& writer) {
  GroupSharing ring = writer.sharing();
  ring.gathers = false;
  const RingAttention steps =
      ring_attention(writer.micro_batch(), writer.layer(), writer.tp(), ring, Direction::forward);
  return steps.halo ? *steps.halo : writer.group_work().most_remote_keys();
}

// The tokens whose keys and values are moved, as nccl-tests count: what an all-gather leaves on a rank, or of what
// (N - 1) / N reach it in an all-to-all.
std::int64_t moved_tokens(PassWriter& writer) {
  const std::int64_t ranks = writer.sharing().ranks();
  return writer.sharing().needed ? divided(needed_keys(writer) * ranks, ranks - 1) : writer.shared_tokens() * ranks;
}

struct Moved {
  Bytes all;
  CollectiveKind there;
  CollectiveKind back;
};

Moved moved(PassWriter& writer) {
  const Bytes all = kv_bytes(writer.layer(), moved_tokens(writer), writer.tp());
  if (writer.sharing().needed) return {all, CollectiveKind::all_to_all, CollectiveKind::all_to_all};
  return {all, CollectiveKind::all_gather, CollectiveKind::reduce_scatter};
}

// Gathers what `needed` has made. The attention of what ranks hold alone runs beside it.
void gather(PassWriter& writer, const Moved& both, std::optional<Index> needed) {
  if (both.all == Bytes{}) return writer.attend_local();  // no query sees a key of another rank
  const SharingCollective keys{both.there, both.all / 2, SharedTensor::keys};
  const SharingCollective values{both.there, both.all - both.all / 2, SharedTensor::values};
  std::optional<Index> gathered;
  if (writer.has_local_spans()) {
    writer.share_beside(keys, needed);
    gathered = writer.share_beside(values, needed);
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
  RingAttention all = ring_attention(writer.micro_batch(), writer.layer(), writer.tp(), writer.sharing(), direction);
  writer.choose_keys(all, 0);
  writer.add_ring(Opcode::attention, Stream::compute, writer.attention(std::move(all.own)), 0);
}

}  // namespace

void forward_gathered(PassWriter& writer, std::optional<Index> projected) {
  gather(writer, moved(writer), projected);
  attend_gathered(writer, Direction::forward);
}

void backward_gathered(PassWriter& writer, Index differentiated) {
  const Moved both = moved(writer);
  gather(writer, both, differentiated);
  attend_gathered(writer, Direction::backward);
  if (both.all == Bytes{}) return;
  const Bytes gradients = both.all * writer.recipe().dkv_bytes_per_element / writer.layer().element_bytes;
  writer.share({both.back, gradients / 2, SharedTensor::keys, true});
  writer.share({both.back, gradients - gradients / 2, SharedTensor::values, true});
}

}  // namespace hdpsim
