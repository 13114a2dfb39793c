#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/group_sharing.h"
#include "sim/model/operation.h"
#include "sim/model/parameters.h"
#include "sim/model/transformer.h"
#include "sim/model/work.h"
#include "sim/network/collective_kind.h"

namespace hdpsim {

/// The streams of a device. They run concurrently, and each runs its instructions in order.
enum class Stream : std::uint8_t { compute, comm, d2h, h2d, pool };
inline constexpr std::size_t stream_count = 5;
[[nodiscard]] std::string_view stream_name(Stream stream);

enum class Opcode : std::uint8_t {
  dense,  ///< Matrix products and the memory-bound kernels between them: work = index into MicroBatchProgram::dense.
  attention,  ///< One attention launch of a ring step: work = index into attention.
  /// Joins a ring step's output with the running one by its log-sum-exp, puts gathered keys and values in order, or
  /// chooses keys by their scores: work = index into memory_bound.
  merge,
  exchange,     ///< Ring: grouped send/recv to the next and from the previous rank: work = index into bytes.
  collective,   ///< Collective in a tensor-parallel or an expert group: work = index into collectives.
  offload,      ///< Copy of activations to host memory: work = index into bytes.
  prefetch,     ///< Copy of activations back to the device: work = index into bytes.
  overhead,     ///< Fixed host time of a micro-batch.
  expert_wait,  ///< Wait for the device of an expert group that has most copies: work = index into expert_waits.
  issue,        ///< Wait until the host, which issues kernels one by one, has issued those of the iteration.
  gather,       ///< Data-parallel all-gather of parameters: work = index into pools.
  reduce,       ///< Data-parallel reduction of gradients: work = index into pools.
  share,        ///< Collective among the ranks of the micro-batch's group: work = index into shares.
  /// Wait of the mean rank of a group for the busiest one, whose attention or dense work is the instruction before:
  /// work = index into idle_shares.
  rank_wait,
};
inline constexpr std::size_t opcode_count = 14;
[[nodiscard]] std::string_view opcode_name(Opcode opcode);
/// Whether it copies activations between a device and its host.
[[nodiscard]] constexpr bool copies_activations(Opcode opcode) {
  return opcode == Opcode::offload || opcode == Opcode::prefetch;
}

/// An instruction that must have ended, in this iteration of the loop or `iterations_back` iterations before.
struct Dependency {
  std::uint32_t instruction = 0;
  std::uint32_t iterations_back = 0;
};

/// Instruction::ring_step of attention to what a rank holds alone (MicroBatch::local): it waits for no message.
inline constexpr std::uint32_t local_step = 0xffffffff;

/// One instruction of a loop body. It also waits for the previous instruction of its stream.
struct Instruction {
  static constexpr std::size_t most_dependencies = 3;

  Opcode opcode = Opcode::dense;
  Stream stream = Stream::compute;
  std::uint32_t work = 0;
  /// The step in a ring of N parties (GroupSharing). Attention and merge: their step, 0 to N - 1, or local_step.
  /// Exchange: the step whose keys and values, or queries, it brings, if below N. In a backward ring, exchanges 2 to
  /// N + 1 bring the gradients of those of the previous step.
  std::uint32_t ring_step = 0;
  std::uint32_t first_iteration = 0;  ///< The instruction is skipped in iterations before this one ...
  std::uint32_t last_skipped = 0;     ///< ... and in this many iterations at the end.
  std::array<Dependency, most_dependencies> dependencies{};
  std::uint32_t dependency_count = 0;

  Instruction& after(std::uint32_t instruction, std::uint32_t iterations_back = 0) {
    dependencies.at(dependency_count++) = {instruction, iterations_back};
    return *this;
  }
  /// What must have ended before it starts.
  [[nodiscard]] std::span<const Dependency> needed() const { return {dependencies.data(), dependency_count}; }
  [[nodiscard]] bool active(std::int64_t iteration, std::int64_t iterations) const {
    return iteration >= first_iteration && iteration + last_skipped < iterations;
  }
  /// The number of iterations in which it is active.
  [[nodiscard]] std::int64_t runs(std::int64_t iterations) const {
    return std::max<std::int64_t>(0, iterations - first_iteration - last_skipped);
  }
};

/// The instructions [first, last) of a block's body.
struct BodyRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// A loop: the body runs `iterations` times, layer after layer. A block starts when the previous block has ended on all
/// streams.
struct Block {
  std::int64_t iterations = 1;
  std::vector<Instruction> body;
  Direction direction = Direction::forward;  ///< Backward includes the recompute of forward.
  /// The kind of the layers that are its iterations; empty: it is no loop over layers. Loops over the kinds of a model
  /// that follow each other stand for its layers in their order (see layer_runs()).
  std::optional<std::size_t> kind{};
  /// The ring of each attention that the body computes, in order: from the ring's first exchange to the first
  /// instruction that needs its last one. A group of one rank has none.
  std::vector<BodyRange> rings{};
  /// The experts that an expert group computes between two all-to-alls, in order: from the all-to-all that sends copies
  /// of tokens (or their gradients) to the experts, to the one that brings the results back.
  std::vector<BodyRange> exchanged_experts{};
};

/// The matrix product that a collective overlaps with.
struct OverlappedProduct {
  std::uint32_t dense = 0;  ///< Index into MicroBatchProgram::dense ...
  std::uint32_t gemm = 0;   ///< ... and into its products.
  /// Collective and product are cut into tp chunks, and each chunk needs one of the other (the product's input is
  /// gathered, or its output is reduced). Otherwise both are whole and independent.
  bool in_chunks = false;
  friend bool operator==(const OverlappedProduct&, const OverlappedProduct&) = default;
};

/// The devices that take part in a collective within a layer.
enum class CollectiveGroup : std::uint8_t {
  tensor_parallel,
  experts,      ///< Those of an expert group that have the same part of their experts.
  expert_cuts,  ///< Those that cut the same experts (ExpertDivision::etp).
};

/// A collective among the tensor-parallel devices of a rank. Under sequence parallelism (Korthikanti et al. 2022):
///   - Forward, it follows `part` and combines the part's results: an all-gather of a norm's tokens, a reduce-scatter
///     of a product's partial sums or, for the head, an all-gather of each token's log-sum-exp over a device's share of
///     the vocabulary.
///   - Backward, it is an all-gather of the gradient that the part begins with, a reduce-scatter of the partial sums of
///     the gradient that the part ends with or, overlapping with the product for that gradient, an all-gather of the
///     part's input (Recipe::overlap_tp_gradients).
///
/// Without sequence parallelism (Shoeybi et al. 2019) only the head has an all-gather, and each reduce-scatter is an
/// all-reduce. Activations from another stage, which sends each device its share, are all-gathered once (Narayanan et
/// al. 2021, section 4.1).
///
/// An all-to-all runs in an expert group instead: it sends copies of tokens, or their gradients, to their experts or
/// back. Its bytes are those of expert_exchange_bytes() or token_exchange_bytes(). Between the two, the devices that
/// cut experts all-gather copies and reduce-scatter results: expert_gather_bytes().
struct TensorParallelCollective {
  CollectiveKind kind = CollectiveKind::all_gather;  ///< Or reduce_scatter, all_reduce, all_to_all.
  Bytes bytes;                                       ///< Bytes of all tokens together.
  DensePart part = DensePart::embedding;
  Direction direction = Direction::forward;
  std::optional<OverlappedProduct> overlapped{};  ///< None: the collective is exposed.
  CollectiveGroup among = CollectiveGroup::tensor_parallel;
  /// Tokens travel once to each node that has some of their experts (ExpertDispatch::per_node), by the choice of the
  /// mixture with this index into MicroBatchProgram::mixtures; bytes are those of tokens. None: copies travel one by
  /// one.
  std::optional<std::uint32_t> once_per_node{};
  /// The host waits for the device before it issues this: it reads how many copies go to each expert, and so how much
  /// each device sends and how many rows products have (Megatron-Core, token_dispatcher.py: cuda_sync_point
  /// "before_ep_alltoall", _HybridEPManager's "CPU sync"; DeepEP, docs/legacy.md: "the CPU will wait for GPU's signal").
  bool host_waits = false;
};

/// What the ranks of a group bring together or trade in a collective.
enum class SharedTensor : std::uint8_t {
  queries,
  keys,
  values,
  outputs,  ///< Those of attention.
  states,   ///< Those of linear mixing, two a rank.
  mixed,    ///< Inputs or outputs of linear mixing.
  /// Queries with the keys and values that they see, on their way to the rank that attends to them; in backward also
  /// attention's output and its gradient.
  served,
};

/// A collective among the ranks of a micro-batch's group, each device with those that hold the same shard: an
/// all-gather, a reduce-scatter or an all-to-all, within each party (GroupSharing::party).
struct SharingCollective {
  CollectiveKind kind = CollectiveKind::all_gather;
  Bytes bytes;  ///< As nccl-tests count: what a device holds after an all-gather, or sends in an all-to-all.
  SharedTensor tensor = SharedTensor::keys;
  bool gradients = false;  ///< The gradients of the tensor, and not the tensor itself.
  /// Consecutive ranks of the group that trade heads of linear mixing; 0 for all else.
  std::int64_t traders = 0;
  /// The number of consecutive ranks of the group that run it together.
  [[nodiscard]] std::int64_t party(const GroupSharing& sharing) const {
    return traders > 0 ? traders : sharing.party();
  }
};

/// The experts' work on the device of a group that has most rows, and on a device if the rows were spread evenly. The
/// devices of the group wait for the difference of the two times on average.
struct ExpertWait {
  LinearPart slowest;
  LinearPart even;
};

/// A launch of attention that follows from the lengths of a micro-batch's spans by RingAttention.
struct SpanLaunch {
  enum class Part : std::uint8_t { own, step, gathered };  ///< The last: `own` of gathered_attention().
  std::size_t kind = 0;                                    ///< Of the layer.
  Part part = Part::own;
};

/// The whole sizes of data-parallel collectives that follow each other on the same links: that of what all ranks of the
/// pool have alike, and that of whole experts over the devices that hold the same experts (Megatron-Core's expert data
/// parallel group; torchtitan's efsdp mesh).
struct PoolBytes {
  Bytes common;
  Bytes experts;

  [[nodiscard]] Bytes all() const { return common + experts; }
  PoolBytes& operator+=(const PoolBytes& other) {
    common += other.common;
    experts += other.experts;
    return *this;
  }
  friend bool operator==(const PoolBytes&, const PoolBytes&) = default;
};
/// Those of a device's parameters, of `width` bytes each.
[[nodiscard]] inline PoolBytes pool_bytes(const DeviceParameters& parameters, std::int64_t width) {
  return {Bytes(parameters.common * width), Bytes(parameters.experts * width)};
}
/// Those of parameters that are kept in a type; all of experts are weights of products.
[[nodiscard]] inline PoolBytes pool_bytes(const DeviceParameters& parameters, NumberType type,
                                          std::int64_t element_bytes) {
  const std::int64_t weights = parameters.weights - parameters.experts;
  return {parameter_bytes(type, parameters.common, weights, element_bytes),
          parameter_bytes(type, parameters.experts, parameters.experts, element_bytes)};
}

/// What devices copy from or to their hosts with the collectives of sharded states, as shares of the collectives'
/// bytes.
struct HostShares {
  double gathered = 0;  ///< Before a `gather`, each device's shard from the host.
  double reduced = 0;   ///< Behind a `reduce`, to the host.
};

/// The program that every rank of a group executes in one pass of a micro-batch. All ranks run the same instructions;
/// only the tokens that they hold differ. Where their attention is unequal (is_uneven()), or ranks hold spans alone,
/// its launches and the dense work are those of the busiest rank, and a wait behind each is the time in which the mean
/// rank has nothing to do. Work is stored once and shared by all layers.
struct MicroBatchProgram {
  std::vector<LinearPart> dense;
  std::vector<Attention> attention;
  std::vector<SpanLaunch> span_launches;  ///< As long as `attention` where all of it follows from lengths alone.
  std::vector<MemoryBound> memory_bound;
  std::vector<Bytes> bytes;
  std::vector<PoolBytes> pools;
  std::vector<TensorParallelCollective> collectives;
  std::vector<SharingCollective> shares;
  std::vector<ExpertWait> expert_waits;
  std::vector<MixtureOfExperts> mixtures;  ///< Those whose tokens travel once to each node.
  std::vector<double> idle_shares;  ///< Share of the busiest rank's time in which the mean rank has nothing to do.
  std::vector<Block> blocks;        ///< Forward then backward.
  bool all_reduce = false;          ///< `reduce` is an all-reduce; otherwise a reduce-scatter.
  /// A smaller `gather` or `reduce` is a part of a collective of this size, and takes its share of that time.
  PoolBytes gather_bucket{};
  PoolBytes reduce_bucket{};
  HostShares host_copies = {};
  GroupSharing sharing = {};  ///< Of the micro-batch's group.

  /// Bytes that one shard of a rank sends to the next rank of its ring: in a block, and in all of them.
  [[nodiscard]] Bytes sent_around_ring(const Block& block) const;
  [[nodiscard]] Bytes sent_around_ring() const;
};

}  // namespace hdpsim
