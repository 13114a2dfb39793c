#include "sim/plan/connection_table.h"

#include <algorithm>

namespace hdpsim {
namespace {

constexpr std::uint32_t any_communicator = 0;

std::int64_t count_of(const std::vector<std::int64_t>& counts, HdpRank rank) {
  return rank.index() < counts.size() ? counts[rank.index()] : 0;
}

std::int64_t largest(const std::vector<std::int64_t>& counts) {
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

std::vector<HdpRank> sorted(std::vector<HdpRank> group) {
  std::sort(group.begin(), group.end());
  return group;
}

}  // namespace

std::size_t ConnectionTable::Hash::operator()(const Connection& connection) const noexcept {
  const std::uint64_t ranks = (std::uint64_t{connection.low.index()} << 32) | connection.high.index();
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio: spreads consecutive numbers
  const std::uint64_t mixed = (ranks ^ (std::uint64_t{connection.communicator} << 20)) * odd;
  return static_cast<std::size_t>(mixed ^ (mixed >> 32));
}

ConnectionTable::Missing ConnectionTable::missing(const std::vector<HdpRank>& group) const {
  if (group.size() < 2) return {};
  std::uint32_t communicator = any_communicator;
  if (communicators_ == Communicators::per_group) {
    const auto known = groups_.find(sorted(group));
    if (known == groups_.end()) return {.communicator = true, .connection = true};
    communicator = known->second;
  }
  for (std::size_t hop = 0; hop < group.size(); ++hop) {
    if (known_.count(connection_at(group, hop, communicator)) == 0) return {.communicator = false, .connection = true};
  }
  return {};
}

void ConnectionTable::connect(const std::vector<HdpRank>& group) {
  if (group.size() < 2) return;
  const auto next = static_cast<std::uint32_t>(groups_.size() + 1);
  const std::uint32_t communicator = groups_.try_emplace(sorted(group), next).first->second;
  for (std::size_t hop = 0; hop < group.size(); ++hop) {
    add(connection_at(group, hop, any_communicator), peers_);
    if (communicators_ == Communicators::per_group) add(connection_at(group, hop, communicator), connections_);
  }
}

ConnectionTable::Connection ConnectionTable::connection_at(const std::vector<HdpRank>& group, std::size_t hop,
                                                           std::uint32_t communicator) {
  const auto [low, high] = std::minmax(group[hop], group[(hop + 1) % group.size()]);
  return {communicator, low, high};
}

void ConnectionTable::add(const Connection& connection, std::vector<std::int64_t>& counts) {
  if (!known_.insert(connection).second) return;
  if (counts.size() <= connection.high.index()) counts.resize(connection.high.index() + 1);
  ++counts[connection.low.index()];
  ++counts[connection.high.index()];
}

std::int64_t ConnectionTable::most_peers() const {
  return largest(peers_);
}

std::int64_t ConnectionTable::connections(HdpRank rank) const {
  return count_of(communicators_ == Communicators::one ? peers_ : connections_, rank);
}

std::int64_t ConnectionTable::most_connections() const {
  return largest(communicators_ == Communicators::one ? peers_ : connections_);
}

ConnectionTable connections_of(const Plan& plan, Communicators communicators) {
  ConnectionTable table(communicators);
  for (const MicroBatch& micro_batch : plan.micro_batches) table.connect(micro_batch.group);
  return table;
}

}  // namespace hdpsim
