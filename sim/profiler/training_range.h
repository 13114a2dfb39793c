#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace hdpsim {

/// What a range of a trace names, which a training by a plan has marked (hdpsim.torch does it with record_function).
struct TrainingRange {
  enum class Kind : std::uint8_t {
    step,                ///< All of a step on one rank: hdpsim:STEP/rank/RANK.
    forward,             ///< The forward pass of a micro-batch: hdpsim:STEP/MICRO_BATCH/forward.
    backward,            ///< hdpsim:STEP/MICRO_BATCH/backward.
    reduce,              ///< The sum of gradients at the end of a step: hdpsim:STEP/reduce.
    attention_forward,   ///< All within it is attention: hdpsim:attention/forward.
    attention_backward,  ///< hdpsim:attention/backward.
    exchange,            ///< The rank waits for messages: hdpsim:exchange.
    optimizer,           ///< An optimizer of PyTorch: Optimizer.step#AdamW.step, Optimizer.zero_grad#...
  };
  Kind kind = Kind::step;
  std::int64_t step = -1;         ///< -1: the range does not say it.
  std::int64_t micro_batch = -1;  ///< The same.
  std::int64_t rank = -1;         ///< The same.
  [[nodiscard]] bool is_pass() const { return kind == Kind::forward || kind == Kind::backward; }
  [[nodiscard]] bool is_attention() const {
    return kind == Kind::attention_forward || kind == Kind::attention_backward;
  }
};

/// What the name of a range says; empty for other names.
[[nodiscard]] std::optional<TrainingRange> training_range(std::string_view name);

/// Whether a trace, plain or compressed (.gz), has a range of a pass or of a whole step. It looks for text, in a small
/// part of the time that reading the trace takes. InputError and MachineError as of InputFile.
[[nodiscard]] bool has_training_ranges(const std::filesystem::path& file);

}  // namespace hdpsim
