#include "sim/engine/impl/ring_traffic.h"

namespace hdpsim {

void add_route_bytes(const Route& route, Bytes bytes, LinkTraffic& links) {
  for (const auto& [link, share] : route.binding_links()) {
    links.add(link, share == 1 ? bytes : bytes.scaled(share));
  }
}

void add_ring_traffic(const MicroBatchProgram& program, const std::vector<Hop>& hops, double share,
                      LinkTraffic& links) {
  if (hops.empty()) return;
  const Bytes whole = program.sent_around_ring();
  const Bytes bytes = share == 1 ? whole : whole.scaled(share);
  for (const Hop& hop : hops) {
    for (const HopRoute& part : hop.routes) {
      add_route_bytes(part.route, part.part(bytes), links);
    }
  }
}

double share_sent(const MicroBatchProgram& program, std::size_t block, std::int64_t iterations) {
  const Bytes all = program.sent_around_ring();
  if (all == Bytes{}) return 1;
  double sent = 0;
  for (std::size_t b = 0; b <= block; ++b) {
    const Block& each = program.blocks[b];
    const double part = b < block ? 1 : static_cast<double>(iterations) / static_cast<double>(each.iterations);
    sent += part * static_cast<double>(program.sent_around_ring(each).count());
  }
  return sent / static_cast<double>(all.count());
}

}  // namespace hdpsim
