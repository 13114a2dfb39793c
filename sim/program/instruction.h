#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/operation.h"
#include "sim/model/work.h"
#include "sim/network/collective_kind.h"

namespace hdpsim {

/// Queues of a device that run beside each other; each runs its own instructions in order.
enum class Stream : std::uint8_t { compute, comm, d2h, h2d, pool };
inline constexpr std::size_t stream_count = 5;
[[nodiscard]] std::string_view stream_name(Stream stream);

enum class Opcode : std::uint8_t {
  dense,  ///< Matrix products and the memory-bound kernels between them: work = index into MicroBatchProgram::dense.
  attention,    ///< One attention launch of a ring step: work = index into attention.
  merge,        ///< Joins a ring step's output with the running one by its log-sum-exp: work = index into memory_bound.
  exchange,     ///< Ring: grouped send to the next rank and receive from the previous one: work = index into bytes.
  collective,   ///< Among the tensor-parallel devices of a rank or an expert group: work = index into collectives.
  offload,      ///< Copy of activations to host memory: work = index into bytes.
  prefetch,     ///< Copy of activations back to the device: work = index into bytes.
  overhead,     ///< Fixed host time of a micro-batch.
  expert_wait,  ///< For the device of an expert group that has most copies: work = index into expert_waits.
  issue,        ///< Waits until the host, which issues kernels one by one, can have issued those of the iteration.
  gather,       ///< All-gather of parameters over the pool: work = index into bytes, of all of them.
  reduce,       ///< Reduction of gradients over the pool: work = index into bytes, of all of them.
};
inline constexpr std::size_t opcode_count = 12;
[[nodiscard]] std::string_view opcode_name(Opcode opcode);

/// An instruction that must have ended, in this iteration of the loop or some iterations back.
struct Dependency {
  std::uint32_t instruction = 0;
  std::uint32_t iterations_back = 0;
};

/// One instruction of a loop body. It also waits for the instruction before it on its own stream.
struct Instruction {
  static constexpr std::size_t most_dependencies = 3;

  Opcode opcode = Opcode::dense;
  Stream stream = Stream::compute;
  std::uint32_t work = 0;
  /// Of a ring of N. Attention and merge: the step, 0 to N - 1. An exchange: the step whose keys and values it brings,
  /// if that is below N; in a backward ring it brings from step 2 on, and up to N + 1, the gradients of the keys and
  /// values of the step before.
  std::uint32_t ring_step = 0;
  std::uint32_t first_iteration = 0;  ///< Does nothing in iterations before this one ...
  std::uint32_t last_skipped = 0;     ///< ... and in this many iterations at the end.
  std::array<Dependency, most_dependencies> dependencies{};
  std::uint32_t dependency_count = 0;

  Instruction& after(std::uint32_t instruction, std::uint32_t iterations_back = 0) {
    dependencies.at(dependency_count++) = {instruction, iterations_back};
    return *this;
  }
  [[nodiscard]] bool active(std::int64_t iteration, std::int64_t iterations) const {
    return iteration >= first_iteration && iteration + last_skipped < iterations;
  }
};

/// A loop: the body runs `iterations` times, layer after layer. A block starts when the one before it has ended on all
/// streams.
struct Block {
  std::int64_t iterations = 1;
  std::vector<Instruction> body;
};

/// The product that a collective runs beside, if it does.
enum class Beside : std::uint8_t {
  nothing,
  chunks,           ///< The one whose input it gathers or whose output it reduces, in chunks.
  input_gradient,   ///< In backward the last one before it that makes the gradient of an input ...
  weight_gradient,  ///< ... or of a weight.
};

/// A collective among the tensor-parallel devices of a rank. Under sequence parallelism (Korthikanti et al. 2022):
/// forward it follows the part of which it joins the results: an all-gather of a norm's tokens, a reduce-scatter of a
/// product's partial sums, for the head an all-gather of each token's log-sum-exp over a device's share of the
/// vocabulary. Backward it is an all-gather of the gradient that the part begins with, or a reduce-scatter of the
/// partial sums of the gradient that it ends with; or, beside the product for that gradient, an all-gather of the part's
/// input (LoweringOptions::overlap_tp_gradients). An all-to-all is one of an expert group instead: copies of tokens,
/// or their gradients, on the way to their experts or back. Its bytes are those of expert_exchange_bytes().
///
/// Without sequence parallelism (Shoeybi et al. 2019) nothing is gathered and each reduce-scatter is an all-reduce;
/// what came from another stage, which sends each device its share, is gathered once (Narayanan et al. 2021, section
/// 4.1).
struct TensorParallelCollective {
  CollectiveKind kind = CollectiveKind::all_gather;  ///< Or reduce_scatter, all_reduce, all_to_all.
  Bytes bytes;                                       ///< Of all tokens together.
  DensePart part = DensePart::embedding;
  Direction direction = Direction::forward;
  Beside beside = Beside::nothing;
};

/// Experts on the device of a group that has most rows, and with the rows spread evenly: what one takes longer than the
/// other, the devices of the group wait on average.
struct ExpertWait {
  LinearPart slowest;
  LinearPart even;
};

/// What every rank of a group executes for one micro-batch. All ranks run the same instructions; only the parts of the
/// spans that they hold differ. Work is stated once and shared by all layers.
struct MicroBatchProgram {
  std::vector<LinearPart> dense;
  std::vector<Attention> attention;
  std::vector<MemoryBound> memory_bound;
  std::vector<Bytes> bytes;
  std::vector<TensorParallelCollective> collectives;
  std::vector<ExpertWait> expert_waits;
  std::vector<Block> blocks;  ///< Forward then backward.
  bool all_reduce = false;    ///< `reduce` gives all ranks the whole sum; otherwise each gets its shard of it.
};

}  // namespace hdpsim
