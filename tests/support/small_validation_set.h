#pragma once

namespace hdpsim::test {

/// A validation set: two plans of one job, 16 sequences of 4Ki tokens on 8 GPUs, with two step times and a rate.
inline constexpr char small_validation_set[] = R"(name: small
about: a test
source: nobody
study:
  cluster: {preset: a100-rail-3tier}
  model: {preset: llama-7b}
  profile: bytescale-implied
  plans: [static]
columns: [tp, dp, micro_batch, global_batch, sequence, step_time_s, tokens_per_s_per_gpu]
rows:
  - [1, 8, 2, 16, 4Ki, 2, ~]
  - [2, 4, 1, 16, 4Ki, 4, 2048]
)";

}  // namespace hdpsim::test
