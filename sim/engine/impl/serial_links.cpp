#include "sim/engine/impl/serial_links.h"

#include <algorithm>

namespace hdpsim {
namespace {

// The number of a hop's shards that use the link.
std::int64_t shards_on(const Hop& hop, LinkId link) {
  return std::count_if(hop.routes.begin(), hop.routes.end(), [&](const HopRoute& of_shard) {
    const auto links = of_shard.route.binding_links();
    return std::any_of(links.begin(), links.end(), [&](const RouteLink& one) { return one.link == link; });
  });
}

}  // namespace

SerialLinks::SerialLinks(const Program& program, const Machine& machine)
    : machine_(machine), users_(machine.network->link_count()) {
  add_rings(program);
  if (program.pipeline().stages() > 1) add_stage_messages(program);
}

// All passes of a micro-batch on one stage have the same ring.
void SerialLinks::add_rings(const Program& program) {
  const Pipeline& pipeline = program.pipeline();
  for (const MicroBatch& micro_batch : program.plan().micro_batches) {
    const GroupSharing sharing = program.sharing(micro_batch);
    for (std::int64_t stage = 0; stage < pipeline.stages(); ++stage) {
      const std::vector<Hop> hops = ring_hops(sharing, micro_batch.group, stage, machine_);
      for (std::size_t i = 0; i < hops.size(); ++i) {
        const WorkerId from = pipeline.worker(micro_batch.group[i], stage);
        const WorkerId to = pipeline.worker(micro_batch.group[sharing.next(i)], stage);
        add(hops[i], static_cast<std::uint32_t>(from.index()), static_cast<std::uint32_t>(to.index()));
      }
    }
  }
}

// Stage messages that share links are flows and overlap with the rings of both workers.
void SerialLinks::add_stage_messages(const Program& program) {
  const Pipeline& pipeline = program.pipeline();
  const ChunkMap& chunks = pipeline.chunk_map();
  const auto add_message = [&](std::size_t rank, std::int64_t from, std::int64_t to) {
    const Hop hop = stage_hop(HdpRank(rank), from, to, machine_);
    if (!hop.is_private) add(hop, Users::several, Users::several);
  };
  for (std::size_t rank = 0; rank < program.plan().schedule.size(); ++rank) {
    for (std::int64_t copy = 0; copy < chunks.copies(); ++copy) {
      for (std::int64_t chunk = 0; chunk + 1 < chunks.chunks(); ++chunk) {
        const std::int64_t from = chunks.stage_of(chunk, copy);
        const std::int64_t to = chunks.stage_of(chunk + 1, copy);
        if (from == to) continue;
        add_message(rank, from, to);
        add_message(rank, to, from);
      }
    }
  }
}

void SerialLinks::add(const Hop& hop, std::uint32_t sender, std::uint32_t receiver) {
  const auto join = [](std::uint32_t& known, std::uint32_t user) {
    known = known == Users::nobody || known == user ? user : Users::several;
  };
  for (const HopRoute& part : hop.routes) {
    for (const auto& [link, share] : part.route.binding_links()) {
      join(users_[link.index()].sender, sender);
      join(users_[link.index()].receiver, receiver);
    }
  }
}

bool SerialLinks::is_serial(LinkId link) const {
  const Users& users = users_[link.index()];
  return users.sender != Users::several || users.receiver != Users::several;
}

// The lowest max-min fair rate is the equal share of each flow on the fullest link.
void SerialLinks::make_private(Hop& hop) const {
  const bool has_parts =
      std::any_of(hop.routes.begin(), hop.routes.end(), [](const HopRoute& r) { return r.share < 1; });
  if (hop.is_private || has_parts) return;
  Bandwidth slowest = hop.alone;
  for (const HopRoute& of_shard : hop.routes) {
    for (const auto& [link, share] : of_shard.route.binding_links()) {
      if (!is_serial(link) || share < 1) return;
      slowest = std::min(slowest, machine_.network->link_rate(link) / shards_on(hop, link));
    }
  }
  hop.is_private = true;
  hop.alone = slowest;
}

}  // namespace hdpsim
