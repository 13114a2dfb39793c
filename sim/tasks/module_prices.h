#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "sim/base/units.h"
#include "sim/tasks/task_file.h"

namespace hdpsim {

/// The passes of an operator in seconds.
struct OperatorSeconds {
  double forward = 0;
  double backward = 0;  ///< With what it computes again.

  [[nodiscard]] double both() const { return forward + backward; }
};

/// What operators of a module take on `tp` devices: lowered and priced as a micro-batch of a study is, on the devices
/// of nominal speed, with all tensor-parallel groups of the cluster at once. Gradients are added to those of
/// micro-batches before. Bidirectional attention computes the whole square of scores, which studies do not know.
class ModulePrices {
 public:
  /// `module` must outlive it.
  explicit ModulePrices(const TaskModule& module);

  /// Of an operator on `samples` of `tokens` tokens each.
  [[nodiscard]] OperatorSeconds seconds(OperatorKind kind, std::int64_t samples, std::int64_t tokens);

 private:
  struct Price {
    OperatorSeconds layer;
    OperatorSeconds head;
  };
  [[nodiscard]] Price price(std::int64_t samples, std::int64_t tokens) const;
  [[nodiscard]] double more_attention(Direction direction, std::int64_t samples, std::int64_t tokens) const;

  const TaskModule& module_;
  std::unique_ptr<World> world_;
  std::map<std::pair<std::int64_t, std::int64_t>, Price> known_;
};

/// What devices hold of a module.
class ModuleMemory {
 public:
  explicit ModuleMemory(const TaskModule& module) : module_(module) {}

  /// Parameters of an operator on one of its tp devices.
  [[nodiscard]] std::int64_t parameters(OperatorKind kind) const;
  /// Parameters, gradients and optimizer of an operator, the last shared by so many devices under ZeRO.
  [[nodiscard]] Bytes states(OperatorKind kind, std::int64_t sharers) const;
  /// What an operator keeps from forward to backward, of these samples on one device.
  [[nodiscard]] Bytes kept(OperatorKind kind, std::int64_t samples, std::int64_t tokens) const;
  /// What the fullest moment of the backward needs beside all that is kept.
  [[nodiscard]] Bytes moment(std::int64_t samples, std::int64_t tokens) const;
  /// Bytes of the output of an operator, of one sample.
  [[nodiscard]] double output_bytes(std::int64_t tokens) const;

 private:
  const TaskModule& module_;
};

}  // namespace hdpsim
