#include "kernels/ring/ring_attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "kernels/ring/message_driver.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels {

RingPlace RingAttention::place_in(const RingGroup& group) const {
  require_valid(group.heads, {});
  const std::vector<int>& members = group.members;
  if (group.documents == nullptr) throw UnsupportedInput("ring: no documents");
  if (std::cmp_not_equal(members.size(), group.documents->ranks())) {
    throw UnsupportedInput(
        fmt::format("ring: {} members for documents sharded over {} ranks", members.size(), group.documents->ranks()));
  }
  const std::set<int> distinct(members.begin(), members.end());
  if (distinct.size() != members.size() || *distinct.begin() < 0 || *distinct.rbegin() >= transport_.size() ||
      !distinct.contains(transport_.rank())) {
    throw UnsupportedInput(fmt::format("ring: ranks {} are not a ring with rank {} among {} ranks",
                                       fmt::join(members, " "), transport_.rank(), transport_.size()));
  }
  const auto self = std::find(members.begin(), members.end(), transport_.rank());
  return {group.documents, &members, static_cast<int>(self - members.begin())};
}

// Each launch has under it the exchange that the next one needs, if there is any.
void RingAttention::run_steps(int steps) {
  const MessageDriver progress(backend_, transport_);
  for (int step = 0; step < steps; ++step) {
    if (step < steps_.last_exchange()) steps_.exchange(step + 1);
    steps_.attend(step);
    steps_.wait();
    steps_.add_arrived();
  }
  if (steps_.last_exchange() <= steps) return;
  steps_.exchange(steps_.last_exchange());  // The gradient of this rank's own keys comes home.
  steps_.wait();
}

void RingAttention::forward(const RingGroup& group, const RingForward& op) {
  steps_.join(place_in(group), group.heads);
  steps_.begin(op);
  run_steps(group.documents->ranks());
}

void RingAttention::backward(const RingGroup& group, const RingBackward& op) {
  steps_.join(place_in(group), group.heads);
  steps_.begin(op);
  run_steps(group.documents->ranks());
}

}  // namespace hdpsim::kernels
