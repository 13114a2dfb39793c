#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/spec/attention.h"
#include "kernels/spec/layer.h"
#include "kernels/spec/linear_attention.h"

/// The kernels exist once for every instruction set, all from the same source.
namespace hdpsim::kernels::cpu {

struct Workspace {
  float* scratch = nullptr;                 ///< KernelTable::scratch_floats numbers, aligned to 64 bytes.
  void (*progress)(void* state) = nullptr;  ///< Called for every tile of keys; never null.
  void* progress_state = nullptr;
};

struct KernelTable {
  std::size_t scratch_floats;
  int strip;  ///< Rows and columns that attention computes together: its work on a block is rounded up to them.
  int panel;
  void (*attention_forward)(const AttentionForward& op, const Workspace& workspace);
  void (*attention_delta)(const AttentionDelta& op);
  void (*attention_backward)(const AttentionBackward& op, const Workspace& workspace);
  void (*linear_attention_forward)(const LinearAttentionForward& op, const Workspace& workspace);
  void (*linear_attention_backward)(const LinearAttentionBackward& op, const Workspace& workspace);
  void (*rms_norm_forward)(const RmsNormForward& op);
  void (*rms_norm_backward)(const RmsNormBackward& op);
  void (*rope)(const Rope& op);
  void (*swiglu_forward)(const SwigluForward& op);
  void (*swiglu_backward)(const SwigluBackward& op);
  void (*add)(const Add& op);
  void (*embedding_forward)(const EmbeddingForward& op);
  void (*embedding_backward)(const EmbeddingBackward& op);
  void (*cross_entropy)(const CrossEntropy& op);
  void (*log_sum_exp)(const LogSumExp& op);
  void (*adam)(const Adam& op);
  /// Runs fused multiply-adds on registers only; returns the number of floating-point operations.
  double (*multiply_and_add)(std::int64_t rounds);
};

/// Null if the build has no such code. The caller checks whether the processor has the instructions.
[[nodiscard]] const KernelTable* portable_kernels();
[[nodiscard]] const KernelTable* avx2_kernels();
[[nodiscard]] const KernelTable* avx512_kernels();

}  // namespace hdpsim::kernels::cpu
