#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/network/fair_share.h"

namespace hdpsim {

/// A link of a route, and the share of the message that crosses it: below 1 where switches spread the message over
/// several ways.
struct RouteLink {
  LinkId link;
  double share = 1;
  friend bool operator==(const RouteLink&, const RouteLink&) = default;
};

/// The links of a route. Most routes have few: they are held without a memory allocation.
class RouteLinks {
 public:
  void append(const RouteLink& next) {
    if (count_ < few_.size()) {
      few_[count_++] = next;
      return;
    }
    if (many_.empty()) many_.assign(few_.begin(), few_.end());
    many_.push_back(next);
    ++count_;
  }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::span<const RouteLink> view() const& {
    return {many_.empty() ? few_.data() : many_.data(), count_};
  }
  std::span<const RouteLink> view() const&& = delete;  ///< They would be gone with the list.

 private:
  std::array<RouteLink, 10> few_{};
  std::vector<RouteLink> many_;  ///< All of them, once there are more.
  std::size_t count_ = 0;
};

using FlowId = Id<struct FlowTag>;

/// The NICs by which a message between nodes travels.
enum class NicUse : std::uint8_t {
  own,  ///< Those of its sender and its receiver.
  all,  ///< All of both nodes: the other devices of the sender's node pass on equal parts of it, to those of the
        ///< receiver's (the routing layer of Zeppelin, Chen et al. 2025, arXiv 2509.21841).
};

/// The links that a message passes, without those that can never be a bottleneck, and the rate that it gets alone on
/// them.
struct Route {
  RouteLinks links;
  Duration latency;  ///< Message start-up and hops, once per message.
  Bandwidth alone;   ///< Minimum of rate / share over its links.

  [[nodiscard]] std::span<const RouteLink> binding_links() const& { return links.view(); }
  std::span<const RouteLink> binding_links() const&& = delete;  ///< They would be gone with the route.
};

/// The network of one simulated world: the route of a message, and how flows under way share the links.
///
/// Invariants: no link carries more than its rate; the rate of a flow alone on its links is `Route::alone`; adding a
/// flow never speeds another one up beyond its rate alone. Deterministic: rates depend on the set of flows and the
/// order of calls only.
class NetworkModel {
 public:
  virtual ~NetworkModel() = default;

  /// The route between two different devices; computed, never stored per pair.
  [[nodiscard]] virtual Route route(DeviceId from, DeviceId to) const = 0;
  /// The routes of the equal parts of a message under NicUse::all: one for each rail that is up in both nodes. The
  /// route() alone within a node, and where at most one rail is up.
  [[nodiscard]] virtual std::vector<Route> routes_by_all_nics(DeviceId from, DeviceId to) const = 0;

  /// Starts a flow over a route; it never takes more than `cap` (`Route::alone` or more: no cap). The capacity that a
  /// capped flow does not use goes to the others on its links: on each link the share x solves sum of min(cap, x) =
  /// rate of the link, and a flow gets the minimum of its cap and its links' shares. A flow of weight w has w times
  /// the share. The id of a removed flow may be used again.
  virtual FlowId add(const Route& route, Bandwidth cap, double weight) = 0;
  FlowId add(const Route& route, Bandwidth cap) { return add(route, cap, 1); }
  /// Starts a part of a CollectivePlan: coupled flows that all move at one rate, that of the returned id. The part is
  /// complete when CollectivePlan::bytes_per_flow x the size has moved at that rate. A plan under way is one such flow
  /// per part; each changes rate (take_changed) and ends (remove) like any other flow, and never takes more than `cap`.
  virtual FlowId add(std::span<const FairShare::Load> part, Bandwidth cap) = 0;
  virtual void remove(FlowId flow) = 0;
  [[nodiscard]] virtual Bandwidth rate(FlowId flow) const = 0;
  /// Flows whose rate may have changed since the last call, in the order of their ids, each once; the list is emptied.
  /// Flows that were removed meanwhile are not in it.
  virtual void take_changed(std::vector<FlowId>& changed) = 0;

  /// True if no flow of another group can ever slow this route: every link of it belongs to the pair's own devices.
  [[nodiscard]] virtual bool is_private(const Route& route) const = 0;

  /// For reports.
  [[nodiscard]] virtual std::string link_name(LinkId link) const = 0;
  [[nodiscard]] virtual Bandwidth link_rate(LinkId link) const = 0;
  [[nodiscard]] virtual std::size_t link_count() const = 0;
};

/// What was sent over the links of a network, by LinkId.
struct LinkTraffic {
  std::vector<Bytes> bytes;
  /// The bytes of messages between two devices that would keep the link busy as long. A collective reaches another
  /// share of a link's rate than such messages do, whose rate is NetworkModel::link_rate().
  std::vector<Bytes> as_messages;

  LinkTraffic() = default;
  explicit LinkTraffic(std::size_t links) : bytes(links), as_messages(links) {}

  [[nodiscard]] bool empty() const { return bytes.empty(); }
  /// `sent` bytes of messages; negative to take them back.
  void add(LinkId link, Bytes sent) { add(link, sent, sent); }
  void add(LinkId link, Bytes sent, Bytes as_message) {
    bytes[link.index()] += sent;
    as_messages[link.index()] += as_message;
  }
  /// Adds the traffic of another time on the same links; this one may still be empty.
  LinkTraffic& operator+=(const LinkTraffic& other) {
    bytes.resize(other.bytes.size());
    as_messages.resize(other.bytes.size());
    for (std::size_t link = 0; link < other.bytes.size(); ++link) {
      add(LinkId(link), other.bytes[link], other.as_messages[link]);
    }
    return *this;
  }
  friend bool operator==(const LinkTraffic&, const LinkTraffic&) = default;
};

}  // namespace hdpsim
