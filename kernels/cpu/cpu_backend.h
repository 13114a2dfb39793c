#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels {

/// `portable` is compiled for the oldest machine of the target (SSE2 on x86-64).
enum class InstructionSet { portable, avx2, avx512 };
[[nodiscard]] std::string_view name_of(InstructionSet set);

/// The sets that both this processor and this build support, the best one last.
[[nodiscard]] std::vector<InstructionSet> instruction_sets();
[[nodiscard]] inline InstructionSet best_instruction_set() {
  return instruction_sets().back();
}

/// Queries and keys that attention computes together: its work on a block is rounded up to whole tiles.
struct CpuAttentionTile {
  int queries = 0;
  int keys = 0;
  /// The products that sum gradients of keys and values take queries one by one, and keys in groups.
  int gradient_queries = 0;
  int gradient_keys = 0;
};
[[nodiscard]] CpuAttentionTile attention_tile(InstructionSet set = best_instruction_set());

/// One core of this machine in fp32. Everything runs on the calling thread and is done when the call returns; two runs
/// give the same bits. time() reads the thread's own CPU clock, because development machines are shared and a wall
/// clock would charge for what the neighbours do. DeviceError if the processor lacks the instruction set.
[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend(InstructionSet set = best_instruction_set());

}  // namespace hdpsim::kernels
