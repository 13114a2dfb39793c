#include "sim/relayout/state_moves.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

/// The layers [first, end) of which a device has the slices [from, to) of tp.
struct Share {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;

  [[nodiscard]] bool has(std::int64_t layer, std::int64_t slice) const {
    return first <= layer && layer < end && from <= slice && slice < to;
  }
};

std::map<std::int64_t, Share> shares_of(const Relayout& layout, const RelayoutJob& job) {
  std::map<std::int64_t, Share> shares;
  for (const PipelineLayout& pipeline : layout.pipelines) {
    std::int64_t layer = 0;
    for (const StageLayout& stage : pipeline.stages) {
      const auto size = std::ssize(stage.group.devices);
      for (std::int64_t i = 0; i < size; ++i) {
        shares[stage.group.devices[static_cast<std::size_t>(i)]] = {layer, layer + stage.layers, i * job.tp / size,
                                                                    (i + 1) * job.tp / size};
      }
      layer += stage.layers;
    }
  }
  return shares;
}

class Senders {
 public:
  Senders(const std::map<std::int64_t, Share>& shares, const RelayoutJob& job) : job_(job) {
    for (const auto& [device, share] : shares) {
      for (std::int64_t layer = share.first; layer < share.end; ++layer) {
        for (std::int64_t slice = share.from; slice < share.to; ++slice) holders_[{layer, slice}].push_back(device);
      }
    }
  }

  /// Who sends a slice of a layer to a device.
  std::int64_t take(std::int64_t layer, std::int64_t slice, std::int64_t to) {
    const std::vector<std::int64_t>& holders = holders_.at({layer, slice});
    const auto rank = [&](std::int64_t device) {
      const bool is_far = device / job_.devices_per_node != to / job_.devices_per_node;
      return std::pair(is_far, sent_[device]);
    };
    const std::int64_t best = *std::min_element(holders.begin(), holders.end(),
                                                [&](std::int64_t a, std::int64_t b) { return rank(a) < rank(b); });
    ++sent_[best];
    return best;
  }

 private:
  const RelayoutJob& job_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> holders_;
  std::map<std::int64_t, std::int64_t> sent_;
};

}  // namespace

std::vector<Message> state_moves(const Relayout& from, const Relayout& to, const RelayoutJob& job, double layer_bytes) {
  const std::map<std::int64_t, Share> had = shares_of(from, job);
  Senders senders(had, job);
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> slices;  // by sender and receiver
  for (const auto& [device, share] : shares_of(to, job)) {
    const auto own = had.find(device);
    for (std::int64_t layer = share.first; layer < share.end; ++layer) {
      for (std::int64_t slice = share.from; slice < share.to; ++slice) {
        if (own != had.end() && own->second.has(layer, slice)) continue;
        ++slices[{senders.take(layer, slice, device), device}];
      }
    }
  }
  std::vector<Message> messages;
  for (const auto& [ends, count] : slices) {
    messages.push_back({DeviceId(static_cast<std::size_t>(ends.first)), DeviceId(static_cast<std::size_t>(ends.second)),
                        static_cast<double>(count) * layer_bytes / static_cast<double>(job.tp)});
  }
  return messages;
}

}  // namespace hdpsim
