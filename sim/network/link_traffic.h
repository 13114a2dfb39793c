#pragma once

#include <cstddef>
#include <vector>

#include "sim/base/units.h"
#include "sim/network/network_model.h"

namespace hdpsim {

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
