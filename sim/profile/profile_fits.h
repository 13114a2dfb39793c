#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/profile/measured_samples.h"

namespace hdpsim {

/// Relative errors |predicted / measured - 1|.
struct FitError {
  double mean = 0;
  double p95 = 0;
  double max = 0;
  friend bool operator==(const FitError&, const FitError&) = default;
};

/// The quality of a fit. Held out: every sample is predicted by a fit that has not seen it (k-fold). The smallest and
/// the largest transfer, between which a fit is valid, are never held out.
struct FitQuality {
  std::int64_t samples = 0;  ///< Number of held-out samples.
  FitError in_sample;
  FitError held_out;
  /// Deciles 0, 10, ..., 100 % of the held-out predicted / measured - 1: what an interval of a prediction resamples.
  std::vector<double> residual_deciles;
  friend bool operator==(const FitQuality&, const FitQuality&) = default;
};

/// Seconds per (query, key) pair of one head on a full device, in a block whose shorter side is `length`. (A row of
/// tiles that a multiprocessor computes alone counts by its own length.)
struct PairCost {
  std::int64_t length = 0;
  double seconds = 0;
  friend bool operator==(const PairCost&, const PairCost&) = default;
};

/// One attention kernel as a sum of terms, over the launch's tile-rounded blocks:
///
///   t = launch + pair x max(sum of areas x heads, longest row of tiles x multiprocessors)
///     + row x sum of (queries x heads + keys x kv heads) + tile_row x rows of tiles x heads
///     + document x documents x heads + wave x waves
///
/// Backward, two of the five products (dK and dV) may run over tiles of their own: then an area is 3/5 of that in
/// tiles and 2/5 of that in gradient tiles. Seconds each; a term that its form does not have is zero. `pair` may
/// depend on the length of a block: then it is linear in log(length) between the knots and constant beyond.
struct AttentionFit {
  bool causal = false;
  bool backward = false;
  std::int64_t head_dim = 0;
  std::int64_t tile_queries = 0;
  std::int64_t tile_keys = 0;
  std::int64_t gradient_tile_queries = 0;  ///< 0: the tile of all products.
  std::int64_t gradient_tile_keys = 0;
  std::string form;  ///< The terms in words, for readers.
  double launch_s = 0;
  std::vector<PairCost> pairs;  ///< By length; a single one holds for all lengths.
  double row_s = 0;
  double tile_row_s = 0;
  double document_s = 0;
  double wave_s = 0;
  std::int64_t shortest = 0;  ///< Range of the measured blocks' sides.
  std::int64_t longest = 0;
  FitQuality quality;                ///< For launches of equal blocks.
  std::optional<FitQuality> packed;  ///< For launches of documents of unlike lengths.
  friend bool operator==(const AttentionFit&, const AttentionFit&) = default;
};

/// Matrix products: a law times the ratio of time to law at the measured shapes near by.
///
///   law(m, n, k) = launch + flop x wave-rounded FLOPs + byte x (m k + k n + m n) elements
///
/// The logarithm of the ratio is interpolated in (log2 m, log2 n, log2 k): the mean over the `neighbours` nearest
/// samples by the shape table, weighted with distance^-power. `neighbours` 0: the law alone.
struct GemmFit {
  std::string form;
  double launch_s = 0;
  double flop_s = 0;
  double element_s = 0;
  std::int64_t neighbours = 0;
  double power = 2;
  FitQuality quality;
  friend bool operator==(const GemmFit&, const GemmFit&) = default;
};

/// The cost of a byte at one size of a transfer.
struct ByteCost {
  Bytes at;
  std::optional<Bandwidth> bandwidth;  ///< Empty: a byte costs nothing.
  friend bool operator==(const ByteCost&, const ByteCost&) = default;
};

/// t(bytes) = latency + bytes x cost(bytes). The cost, in seconds a byte, is linear in log(bytes) between the knots and
/// constant beyond them: tensors that a cache holds move faster.
struct TransferCurve {
  Duration latency;
  std::vector<ByteCost> costs;  ///< By size; a single one holds for all sizes.
  friend bool operator==(const TransferCurve&, const TransferCurve&) = default;
};

/// The name of the fit for kernels that have none of their own.
inline constexpr std::string_view every_kernel = "all";

struct MemoryBoundFit {
  std::string kernel;  ///< Its name, or every_kernel.
  std::string form;    ///< In words, for readers.
  TransferCurve curve;
  Bytes least;  ///< Range of the measured sizes.
  Bytes most;
  FitQuality quality;
  friend bool operator==(const MemoryBoundFit&, const MemoryBoundFit&) = default;
};

struct CopyFit {
  CopyKind kind = CopyKind::d2h;
  Duration latency;
  Bandwidth bandwidth;
  Bytes least;
  Bytes most;
  FitQuality quality;
  friend bool operator==(const CopyFit&, const CopyFit&) = default;
};

/// t = latency + bytes / bandwidth, bytes as in the size column of nccl-tests.
struct MessageLine {
  Duration latency;
  Bandwidth bandwidth;
  friend bool operator==(const MessageLine&, const MessageLine&) = default;
};

/// Messages of one kind among `ranks` ranks. Either the fastest of up to four lines, as where a library chooses among
/// protocols, or a curve, as where caches and memory bound copies.
struct MessageFit {
  LinkKind link = LinkKind::nvlink;
  MessageKind kind = MessageKind::send_recv;
  std::int64_t ranks = 2;
  std::vector<MessageLine> lines;      ///< At most four; at least one unless there is a curve.
  std::optional<TransferCurve> curve;  ///< Replaces the lines if present.
  Bytes least;
  Bytes most;
  FitQuality quality;
  friend bool operator==(const MessageFit&, const MessageFit&) = default;
};

/// The fits of the samples of a measured profile. Fits state their range and their error.
struct ProfileFits {
  std::vector<AttentionFit> attention;  ///< At most one per (mask, direction, head dimension).
  std::optional<GemmFit> gemm;
  std::vector<MemoryBoundFit> memory_bound;
  std::vector<CopyFit> copies;
  std::vector<MessageFit> messages;
  [[nodiscard]] bool empty() const {
    return attention.empty() && !gemm && memory_bound.empty() && copies.empty() && messages.empty();
  }
  friend bool operator==(const ProfileFits&, const ProfileFits&) = default;
};

}  // namespace hdpsim
