#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/network/cluster_links.h"
#include "sim/network/equal_share.h"

namespace hdpsim {

/// Each link keeps its flows as a list sorted by cap, threaded through the flows themselves. See make_equal_share for
/// the sharing rule and the costs.
class EqualShare final : public NetworkModel {
 public:
  EqualShare(const ClusterSpec& cluster, const LinkEfficiency& efficiency);

  [[nodiscard]] Route route(DeviceId from, DeviceId to) const override { return links_.route(from, to); }
  FlowId add(const Route& route, Bandwidth cap) override;
  void remove(FlowId id) override;
  [[nodiscard]] Bandwidth rate(FlowId id) const override;
  void take_changed(std::vector<FlowId>& changed) override;
  [[nodiscard]] bool is_private(const Route& route) const override;
  [[nodiscard]] std::string link_name(LinkId link) const override { return links_.name(link); }
  [[nodiscard]] std::size_t link_count() const override { return links_.count(); }

 private:
  /// A flow's place in the list of one of its links: flow x Route::most_links + the link's index in the route.
  using Seat = std::uint32_t;
  static constexpr Seat nobody = UINT32_MAX;

  struct Flow {
    Route route;
    Bandwidth cap;  ///< At most route.alone.
    Bandwidth rate;
    std::array<Seat, Route::most_links> before{};
    std::array<Seat, Route::most_links> after{};
    bool under_way = false;
    bool in_changed = false;
  };
  struct Link {
    Bandwidth share;  ///< What a flow may take at most.
    Seat first = nobody;
    std::uint32_t flows = 0;
  };

  [[nodiscard]] FlowId free_slot();
  [[nodiscard]] Flow& flow_of(Seat seat) { return flows_[seat / Route::most_links]; }
  [[nodiscard]] Seat after(Seat seat) { return flow_of(seat).after[seat % Route::most_links]; }
  void sit_down(Link& link, Seat seat);
  void stand_up(Link& link, Seat seat);
  [[nodiscard]] Bandwidth share_of(const Link& link, Bandwidth rate);
  void share_out(const Route& route);
  void update_rate(FlowId id);
  void note_change(FlowId id);

  ClusterLinks links_;
  std::vector<Link> link_states_;  ///< By id.
  std::vector<Flow> flows_;        ///< By id.
  std::vector<FlowId> free_;
  std::vector<FlowId> changed_;
};

}  // namespace hdpsim
