#include "sim/tasks/slice_placement.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

/// A device that a slice may get.
struct Seat {
  DeviceId device;
  double data = 0;        ///< Bytes of what the slice reads.
  double parameters = 0;  ///< Bytes that it sends anyway to sum gradients of the slice's parameters.
  double free = 0;        ///< Bytes of memory, negative where there is no room.

  [[nodiscard]] double worth() const { return data + parameters; }
  [[nodiscard]] bool comes_before(const Seat& other) const {
    return std::tuple(-worth(), -free, device) < std::tuple(-other.worth(), -other.free, other.device);
  }
};

/// The free devices of a node, the best first.
struct Island {
  std::vector<Seat> seats;
  double data = 0;  ///< Bytes of what the slice reads, on free and other devices.
};

class Placer {
 public:
  Placer(const SliceData& data, SlicePlacing placing)
      : data_(data),
        placing_(placing),
        cluster_(data.task_case().cluster()),
        inputs_(data.work()),
        states_(static_cast<std::size_t>(cluster_.devices)),
        held_(states_.size()),
        kept_(states_.size()),
        used_(states_.size()) {}

  void place(TaskRound& round) {
    std::fill(kept_.begin(), kept_.end(), 0.0);
    std::vector<TaskLane*> lanes;
    for (TaskLane& lane : round.lanes) lanes.push_back(&lane);
    std::stable_sort(lanes.begin(), lanes.end(),
                     [](const TaskLane* one, const TaskLane* other) { return one->devices > other->devices; });
    std::int64_t first = 0;
    for (TaskLane* lane : lanes) {
      for (TaskWave& wave : lane->waves) place_wave(wave, first, first + lane->devices);
      first += lane->devices;
    }
  }

 private:
  void place_wave(TaskWave& wave, std::int64_t first, std::int64_t last) {
    std::fill(used_.begin(), used_.end(), true);
    std::fill(used_.begin() + first, used_.begin() + last, false);
    std::vector<TaskSlice*> order;
    for (TaskSlice& slice : wave.slices) {
      const TaskSlice* before = placing_ == SlicePlacing::local ? stays_with(slice) : nullptr;
      if (before != nullptr) {
        take(slice, before->placed);
      } else {
        order.push_back(&slice);
      }
    }
    if (placing_ == SlicePlacing::local) {
      const auto rank = [this](const TaskSlice* slice) { return std::pair(-slice->devices, -read_by(*slice)); };
      std::stable_sort(order.begin(), order.end(),
                       [&](const TaskSlice* one, const TaskSlice* other) { return rank(one) < rank(other); });
    }
    for (TaskSlice* slice : order) {
      take(*slice, placing_ == SlicePlacing::local ? local_devices(*slice) : next_devices(slice->devices));
    }
    for (const TaskSlice& slice : wave.slices) inputs_.add(slice);
  }

  // The slice before of the same run, if this one can stay on its devices.
  [[nodiscard]] const TaskSlice* stays_with(const TaskSlice& slice) const {
    if (slice.first == 0) return nullptr;
    const TaskSlice* before = inputs_.of(slice).front();
    const bool stays =
        before->devices == slice.devices && std::none_of(before->placed.begin(), before->placed.end(),
                                                         [&](DeviceId device) { return used_[device.index()]; });
    return stays ? before : nullptr;
  }

  [[nodiscard]] double read_by(const TaskSlice& slice) const {
    double bytes = 0;
    for (const TaskSlice* input : inputs_.of(slice)) bytes += data_.output_bytes(input->run);
    return bytes;
  }

  void take(TaskSlice& slice, std::vector<DeviceId> devices) {
    slice.placed = std::move(devices);
    HDPSIM_CHECK(std::ssize(slice.placed) == slice.devices, "{} of {} devices", slice.placed.size(), slice.devices);
    std::sort(slice.placed.begin(), slice.placed.end());
    const auto kept = static_cast<double>(data_.kept(slice).count());
    for (std::size_t i = 0; i < slice.placed.size(); ++i) {
      const std::size_t device = slice.placed[i].index();
      used_[device] = true;
      kept_[device] += kept;
      for (const ParameterPlace& place : data_.parameters_of(slice, i)) {
        if (states_[device].insert(place).second) held_[device] += data_.state_bytes(place);
      }
    }
  }

  [[nodiscard]] std::vector<DeviceId> next_devices(std::int64_t count) const {
    std::vector<DeviceId> found;
    for (std::size_t device = 0; device < used_.size() && std::ssize(found) < count; ++device) {
      if (!used_[device]) found.emplace_back(device);
    }
    return found;
  }

  [[nodiscard]] std::vector<DeviceId> local_devices(const TaskSlice& slice) const {
    const std::vector<Island> islands = islands_for(slice);
    const auto room = static_cast<std::size_t>(slice.devices);
    const Island* best = nullptr;
    const auto value = [&](const Island& island) {
      double worth = 2 * island.data;  // it goes forward, and its gradient back
      for (std::size_t i = 0; i < room; ++i) worth += island.seats[i].parameters;
      return std::tuple(island.seats[room - 1].free >= 0, worth, -std::ssize(island.seats));
    };
    for (const Island& island : islands) {
      if (island.seats.size() < room) continue;
      if (best == nullptr || value(island) > value(*best)) best = &island;
    }
    std::vector<DeviceId> found;
    if (best != nullptr) {
      for (std::size_t i = 0; i < room; ++i) found.push_back(best->seats[i].device);
      return found;
    }
    return spread_devices(slice, islands);
  }

  // Whole replicas of each island, the best island first.
  [[nodiscard]] std::vector<DeviceId> spread_devices(const TaskSlice& slice, const std::vector<Island>& islands) const {
    const auto tp = static_cast<std::size_t>(data_.tp_of(slice.run));
    std::vector<const Island*> order;
    for (const Island& island : islands) order.push_back(&island);
    const auto value = [](const Island& island) {
      double worth = 2 * island.data;
      for (const Seat& seat : island.seats) worth += seat.parameters;
      return std::pair(std::ssize(island.seats), worth);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](const Island* one, const Island* other) { return value(*one) > value(*other); });
    std::vector<DeviceId> found;
    for (const Island* island : order) {
      const std::size_t wanted = static_cast<std::size_t>(slice.devices) - found.size();
      const std::size_t taken = std::min(wanted, island->seats.size() / tp * tp);
      for (std::size_t i = 0; i < taken; ++i) found.push_back(island->seats[i].device);
    }
    return found;
  }

  [[nodiscard]] std::vector<Island> islands_for(const TaskSlice& slice) const {
    std::vector<double> data(states_.size());
    for (const TaskSlice* input : inputs_.of(slice)) {
      for (const DeviceId device : input->placed) data[device.index()] += data_.output_share(*input);
    }
    std::vector<Island> islands(static_cast<std::size_t>(cluster_.nodes()));
    const std::vector<ParameterPlace> parameters = data_.parameters_of(slice, 0);
    const auto kept = static_cast<double>(data_.kept(slice).count());
    for (std::size_t device = 0; device < used_.size(); ++device) {
      Island& island = islands[cluster_.node_of(DeviceId(device)).index()];
      island.data += data[device];
      if (!used_[device]) island.seats.push_back(seat(DeviceId(device), parameters, data[device], kept));
    }
    for (Island& island : islands) {
      std::sort(island.seats.begin(), island.seats.end(), [](const Seat& one, const Seat& other) {
        if ((one.free < 0) != (other.free < 0)) return other.free < 0;
        return one.comes_before(other);
      });
    }
    return islands;
  }

  [[nodiscard]] Seat seat(DeviceId device, const std::vector<ParameterPlace>& parameters, double data,
                          double kept) const {
    const std::set<ParameterPlace>& there = states_[device.index()];
    Seat found{device, data, 0, free_of(device) - kept};
    for (const ParameterPlace& place : parameters) {
      const auto first = there.lower_bound(place);  // of any shard
      const bool is_there = first != there.end() && has_same_layer(*first, place);
      if (is_there) {
        found.parameters += data_.summed_bytes(place);
      } else {
        found.free -= data_.state_bytes(place);
      }
    }
    return found;
  }

  [[nodiscard]] double free_of(DeviceId device) const {
    return static_cast<double>(cluster_.device_memory.count()) - kept_[device.index()] - held_[device.index()];
  }

  static bool has_same_layer(const ParameterPlace& one, const ParameterPlace& other) {
    return std::tuple(one.module, one.kind, one.layer) == std::tuple(other.module, other.kind, other.layer);
  }

  const SliceData& data_;
  SlicePlacing placing_;
  const ClusterSpec& cluster_;
  SliceInputs inputs_;
  std::vector<std::set<ParameterPlace>> states_;  // by device
  std::vector<double> held_;                      // bytes of these
  std::vector<double> kept_;                      // bytes by device, in this round
  std::vector<bool> used_;                        // by device, in this wave
};

}  // namespace

void place_slices(const SliceData& data, SlicePlacing placing, TaskPlan& plan) {
  Placer placer(data, placing);
  for (TaskRound& round : plan.rounds) placer.place(round);
}

}  // namespace hdpsim
