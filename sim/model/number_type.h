#pragma once

#include <cstdint>

#include "sim/base/division.h"

namespace hdpsim {

/// Types in which parameters and what the optimizer knows of them are kept.
enum class NumberType : std::uint8_t {
  none,  ///< Nothing is kept.
  fp32,
  bf16,        ///< Or fp16.
  fp8,         ///< With a scale for a tensor, which is not counted (Transformer Engine).
  int8,        ///< Blocks with a scale of their own (torchao, AdamW8bit; bitsandbytes, Adam8bit).
  int4,        ///< The same (torchao, AdamW4bit).
  nf4,         ///< Weights: 4-bit NormalFloat (Dettmers et al. 2023, arXiv 2305.14314; bitsandbytes, Params4bit).
  nf4_double,  ///< The same with scales in 8 bits (double quantization).
};

/// The bits of a number, and of the scales that blocks of numbers have.
struct NumberForm {
  std::int64_t bits = 0;
  std::int64_t block = 0;  ///< Numbers with one scale; 0: there are no scales.
  std::int64_t scale_bits = 32;
  std::int64_t scales_block = 0;  ///< Scales with one fp32 scale of their own; 0: they have none.
};

/// Blocks: torchao/optim/adam.py (block_size 256 for 8 bits, 128 for 4); bitsandbytes/functional.py (quantize_4bit:
/// blocks of 64; with compress_statistics scales in 8 bits, in blocks of 256).
[[nodiscard]] constexpr NumberForm form_of(NumberType type) {
  switch (type) {
    case NumberType::none:
      return {};
    case NumberType::fp32:
      return {.bits = 32};
    case NumberType::bf16:
      return {.bits = 16};
    case NumberType::fp8:
      return {.bits = 8};
    case NumberType::int8:
      return {.bits = 8, .block = 256};
    case NumberType::int4:
      return {.bits = 4, .block = 128};
    case NumberType::nf4:
      return {.bits = 4, .block = 64};
    case NumberType::nf4_double:
      return {.bits = 4, .block = 64, .scale_bits = 8, .scales_block = 256};
  }
  return {};
}

/// Bytes of so many numbers with their scales; parts of blocks count as blocks.
[[nodiscard]] inline std::int64_t bytes_of(NumberType type, std::int64_t numbers) {
  constexpr std::int64_t byte = 8;  // bits
  const NumberForm form = form_of(type);
  std::int64_t bytes = divided(numbers * form.bits, byte);
  if (form.block == 0) return bytes;
  const std::int64_t scales = divided(numbers, form.block);
  bytes += divided(scales * form.scale_bits, byte);
  return form.scales_block == 0 ? bytes : bytes + divided(scales, form.scales_block) * 4;
}

}  // namespace hdpsim
