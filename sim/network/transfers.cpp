#include "sim/network/transfers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

/// Finds the links that can limit their transfers. Links that could carry all their transfers even if each had its
/// narrowest link for itself are dropped. Among the links that a transfer has for itself, only the narrowest is kept,
/// and only if it is narrower than the shared ones. Every transfer keeps at least one link. Coupled transfers keep all
/// of theirs.
class BindingLinks {
 public:
  BindingLinks(const FairShare& network, std::span<const Transfer> transfers)
      : network_(network), spare_(network.link_count()), users_(network.link_count()) {
    // Sums are rounded: a link that is full but for rounding counts as full.
    constexpr double nearly_full = 1 - 1e-9;
    for (FairShare::Link link = 0; link < spare_.size(); ++link) spare_[link] = nearly_full * network.capacity(link);
    for (const Transfer& transfer : transfers) {
      double narrowest = std::numeric_limits<double>::infinity();
      for (const FairShare::Link link : transfer.links) narrowest = std::min(narrowest, network.capacity(link));
      for (const FairShare::Link link : transfer.links) use(link, narrowest);
      double slowest = std::numeric_limits<double>::infinity();
      for (const FairShare::Load& load : transfer.loads) {
        slowest = std::min(slowest, network.capacity(load.link) / load.flows);
      }
      for (const FairShare::Load& load : transfer.loads) use(load.link, load.flows * slowest);
    }
  }

  /// The binding links of a transfer that is not coupled. Valid until the next call.
  [[nodiscard]] std::span<const FairShare::Link> of(const Transfer& transfer) {
    links_.clear();
    double narrowest = std::numeric_limits<double>::infinity();
    for (const FairShare::Link link : transfer.links) {
      if (users_[link] == 1 || spare_[link] >= 0) continue;
      links_.push_back(link);
      narrowest = std::min(narrowest, network_.capacity(link));
    }
    const FairShare::Link* own = nullptr;
    for (const FairShare::Link& link : transfer.links) {
      if (users_[link] > 1 || network_.capacity(link) >= narrowest) continue;
      own = &link;
      narrowest = network_.capacity(link);
    }
    if (own != nullptr) links_.push_back(*own);
    return links_;
  }

 private:
  void use(FairShare::Link link, double most) {
    spare_[link] -= most;
    ++users_[link];
  }

  const FairShare& network_;
  std::vector<double> spare_;  // B/s by link
  std::vector<std::uint32_t> users_;
  std::vector<FairShare::Link> links_;
};

class Drain {
 public:
  Drain(FairShare& network, std::span<const Transfer> transfers) : network_(network), ends_(transfers.size()) {
    BindingLinks binding(network, transfers);
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const FairShare::Variable flow = start(transfers[i], binding);
      if (flow >= flows_.size()) flows_.resize(flow + 1);
      flows_[flow] = {.transfer = i, .left = transfers[i].bytes};
      if (std::isinf(transfers[i].bytes)) {
        endless_.push_back(flow);
      } else {
        ++left_;
      }
    }
  }

  std::vector<double> run() {
    while (left_ > 0) {
      follow_rate_changes();
      end_next();
    }
    for (const FairShare::Variable flow : endless_) network_.remove(flow);
    return std::move(ends_);
  }

 private:
  struct Flow {
    std::size_t transfer = 0;
    double left = 0;  // bytes, at `since`
    double since = 0;
    double rate = 0;
    std::uint32_t version = 0;  // of the expected end
  };
  struct End {
    double time;
    FairShare::Variable flow;
    std::uint32_t version;
    // The standard heaps keep the greatest in front.
    bool operator<(const End& other) const { return time != other.time ? time > other.time : flow > other.flow; }
  };

  FairShare::Variable start(const Transfer& transfer, BindingLinks& binding) {
    const bool is_coupled = !transfer.loads.empty();
    HDPSIM_CHECK(is_coupled != !transfer.links.empty(), "a transfer over {} links and {} loads", transfer.links.size(),
                 transfer.loads.size());
    return is_coupled ? network_.add_coupled(transfer.loads, transfer.cap)
                      : network_.add(binding.of(transfer), transfer.cap);
  }

  void follow_rate_changes() {
    network_.take_changed(changed_);
    const std::size_t ordered = expected_.size();
    for (const FairShare::Variable variable : changed_) {
      Flow& flow = flows_[variable];
      if (std::isinf(flow.left)) continue;
      flow.left = std::max(0.0, flow.left - flow.rate * (now_ - flow.since));
      flow.since = now_;
      flow.rate = network_.rate(variable);
      expected_.push_back({now_ + flow.left / flow.rate, variable, ++flow.version});
    }
    order_from(ordered);
  }

  // Puts the ends from this index on into the heap. If they are many, or too many others are outdated, the whole heap
  // is built anew: that keeps memory O(transfers) however often rates change.
  void order_from(std::size_t ordered) {
    constexpr std::size_t many = 8;
    if ((expected_.size() - ordered) * many > ordered || expected_.size() > 2 * left_) {
      std::erase_if(expected_, [&](const End& end) { return is_outdated(end); });
      return std::make_heap(expected_.begin(), expected_.end());
    }
    while (ordered < expected_.size()) {
      ++ordered;
      std::push_heap(expected_.begin(), expected_.begin() + static_cast<std::ptrdiff_t>(ordered));
    }
  }

  // Flows that end within rounding of each other end together: the rates are repaired once for all of them.
  void end_next() {
    constexpr double rounding = 1e-12;
    skip_outdated();
    now_ = expected_.front().time;
    const double together = now_ * (1 + rounding);
    for (skip_outdated(); !expected_.empty() && expected_.front().time <= together; skip_outdated()) {
      const FairShare::Variable variable = expected_.front().flow;
      ends_[flows_[variable].transfer] = expected_.front().time;
      ++flows_[variable].version;
      network_.remove(variable);
      --left_;
    }
  }

  [[nodiscard]] bool is_outdated(const End& end) const { return end.version != flows_[end.flow].version; }

  void skip_outdated() {
    while (!expected_.empty() && is_outdated(expected_.front())) {
      std::pop_heap(expected_.begin(), expected_.end());
      expected_.pop_back();
    }
  }

  FairShare& network_;
  std::vector<Flow> flows_;  // by variable
  std::vector<double> ends_;
  std::vector<End> expected_;  // a heap, the next end in front; some are outdated
  std::vector<FairShare::Variable> changed_;
  std::vector<FairShare::Variable> endless_;
  double now_ = 0;
  std::size_t left_ = 0;
};

}  // namespace

std::vector<double> end_times(FairShare& network, std::span<const Transfer> transfers) {
  return Drain(network, transfers).run();
}

}  // namespace hdpsim
