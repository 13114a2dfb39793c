#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/tasks/module_prices.h"
#include "sim/tasks/task_plan.h"

namespace hdpsim {

/// Bytes from one device to another.
struct TaskMessage {
  DeviceId from;
  DeviceId to;
  double bytes = 0;
};

/// A layer of a module, or its head, by which devices share parameters.
struct ParameterPlace {
  std::size_t module = 0;
  OperatorKind kind = OperatorKind::layer;
  std::int64_t layer = 0;
  std::int64_t shard = 0;  ///< Of the tp devices.

  friend auto operator<=>(const ParameterPlace&, const ParameterPlace&) = default;
};

/// What slices of a case compute, hold and send. The devices of a slice are replicas of tp neighbours each; replica i
/// of d has the i-th of d equal parts of the samples.
class SliceData {
 public:
  /// Both must outlive it.
  SliceData(const TaskCase& of, const TaskWork& work);

  [[nodiscard]] const TaskCase& task_case() const { return case_; }
  [[nodiscard]] const TaskWork& work() const { return work_; }
  [[nodiscard]] const TaskNode& node_of(std::size_t run) const;
  [[nodiscard]] std::int64_t tp_of(std::size_t run) const { return case_.modules[node_of(run).module].tp; }
  [[nodiscard]] std::int64_t samples_of(const TaskSlice& slice) const;  ///< On one replica.
  [[nodiscard]] const ModuleMemory& memory_of(std::size_t run) const { return memories_[node_of(run).module]; }

  /// The parameters of a device of a slice, by its place among them.
  [[nodiscard]] std::vector<ParameterPlace> parameters_of(const TaskSlice& slice, std::size_t place) const;
  /// Bytes of the states of an operator on a device that shares them with nobody.
  [[nodiscard]] double state_bytes(const ParameterPlace& place) const;
  /// Bytes of an operator's gradients and parameters that a device sends in a step, if it shares them.
  [[nodiscard]] double summed_bytes(const ParameterPlace& place) const;
  /// What a device keeps of a slice from forward to backward.
  [[nodiscard]] Bytes kept(const TaskSlice& slice) const;
  /// Bytes of the whole output of a run's operators.
  [[nodiscard]] double output_bytes(std::size_t run) const;
  /// What each device of a placed slice has of its output.
  [[nodiscard]] double output_share(const TaskSlice& slice) const;
  /// The messages by which `to` gets the output of `from`, both placed. The tp devices of a replica hold, and get,
  /// equal parts of its tokens (sequence parallelism; without it they gather these in their node). What a device has of
  /// its part does not travel.
  void append_messages(const TaskSlice& from, const TaskSlice& to, std::vector<TaskMessage>& messages) const;

 private:
  const TaskCase& case_;
  const TaskWork& work_;
  std::vector<ModuleMemory> memories_;                // by module
  std::vector<std::array<double, 2>> state_bytes_{};  // by module and kind
};

/// The slices whose outputs slices read: what ran last of a run while slices come in the order of their waves.
class SliceInputs {
 public:
  explicit SliceInputs(const TaskWork& work) : work_(work), last_(work.runs.size()) {}

  /// Null where the run has not begun.
  [[nodiscard]] std::vector<const TaskSlice*> of(const TaskSlice& slice) const;
  /// The slice must outlive the next calls.
  void add(const TaskSlice& slice) { last_[slice.run] = &slice; }

 private:
  const TaskWork& work_;
  std::vector<const TaskSlice*> last_;
};

}  // namespace hdpsim
