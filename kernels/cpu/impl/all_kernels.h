#pragma once
// Included by one source file for each instruction set, which names the namespace of its kernels in HDPSIM_CPU_KERNELS.

#include "kernels/cpu/impl/attention_backward.h"
#include "kernels/cpu/impl/attention_forward.h"
#include "kernels/cpu/impl/kernel_table.h"
#include "kernels/cpu/impl/layer_kernels.h"
#include "kernels/cpu/impl/linear_attention_chunks.h"

namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS {

inline double multiply_and_add(std::int64_t rounds) {
  constexpr int chains = 12;  // enough to hide four cycles of latency on two units, few enough for 16 registers
  Vector sums[chains];
  float start = 0;
  for (Vector& sum : sums) sum = broadcast(start++);  // or the compiler would see that all chains compute the same
  const Vector factor = broadcast(0.999F);
  const Vector summand = broadcast(0.001F);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (Vector& sum : sums) sum = multiply_add(sum, factor, summand);
    asm volatile("");  // keeps the compiler from merging rounds
  }
  Vector total{};
  for (const Vector sum : sums) total += sum;
  volatile float used = sum_of(total);
  static_cast<void>(used);
  return 2.0 * chains * width * static_cast<double>(rounds);
}

inline constexpr KernelTable table = {
    .scratch_floats = most(LinearScratch::floats, most(ForwardScratch::floats, BackwardScratch::floats)),
    .strip = strip,
    .panel = panel,
    .attention_forward = attention_forward,
    .attention_delta = attention_delta,
    .attention_backward = attention_backward,
    .linear_attention_forward = linear_attention_forward,
    .linear_attention_backward = linear_attention_backward,
    .rms_norm_forward = rms_norm_forward,
    .rms_norm_backward = rms_norm_backward,
    .rope = rope,
    .swiglu_forward = swiglu_forward,
    .swiglu_backward = swiglu_backward,
    .add = add,
    .embedding_forward = embedding_forward,
    .embedding_backward = embedding_backward,
    .cross_entropy = cross_entropy,
    .log_sum_exp = log_sum_exp,
    .adam = adam,
    .multiply_and_add = multiply_and_add,
};

}  // namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS
