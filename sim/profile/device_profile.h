#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/graph_scope.h"
#include "sim/model/layer_kernels.h"
#include "sim/model/operation.h"
#include "sim/model/product_format.h"
#include "sim/profile/measured_samples.h"
#include "sim/profile/profile_fits.h"
#include "sim/profile/step_fit.h"
#include "sim/profile/trace_record.h"

namespace hdpsim {

/// The source of a profile's figures: our own kernels, other people's publications, data sheets alone, any of these
/// after some figures were fitted to measured steps, or traces of a profiler, beside a profile that has the rest.
enum class ProfileLabel { measured, published, datasheet, fitted, traced };
inline constexpr std::size_t profile_labels = 5;
/// Whether a profile may have samples of its own, which need no source each: a fit may start from a measured profile.
[[nodiscard]] constexpr bool may_have_samples(ProfileLabel label) {
  return label == ProfileLabel::measured || label == ProfileLabel::fitted || label == ProfileLabel::traced;
}

struct Provenance {
  ProfileLabel label = ProfileLabel::datasheet;
  std::string source;        ///< A sentence: who measured what, or which publication.
  std::string device;        ///< Device type, the name that clusters use: "A100-80GB".
  std::int64_t devices = 1;  ///< Number of devices that took part.
  /// Whose figures of training imply the rates, which need not be those of the device: no study takes such a profile
  /// unless it names it. Empty: they are the device's.
  std::string implied_by;
  std::string device_name;  ///< The name by driver or processor: "NVIDIA H200". This and the following may be empty.
  std::string driver;
  std::string cuda;
  std::string nccl;
  std::string clocks;
  std::string date;
  std::string commit;
  std::optional<StepFit> fit;         ///< Of a profile with the label `fitted`.
  std::optional<TraceRecord> traces;  ///< Of a profile with the label `traced`.
  friend bool operator==(const Provenance&, const Provenance&) = default;
};

struct Datasheet {
  FlopRate peak;  ///< Dense bf16 matrix products, no sparsity.
  Bandwidth memory_bandwidth;
  Bytes memory;
  std::int64_t multiprocessors = 1;  ///< Processors (cores of a CPU) that run blocks of a kernel in parallel.
  std::string source;
  friend bool operator==(const Datasheet&, const Datasheet&) = default;
};

/// One timed launch: `count` equal blocks of queries x keys, all heads of the curve. A file may state the rate over the
/// exact mask area instead of the time.
struct AttentionSample {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t count = 1;
  Duration time;
  std::optional<Spread> spread;
  friend bool operator==(const AttentionSample&, const AttentionSample&) = default;
};

/// One document of a packed launch.
struct PackedDocument {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  friend bool operator==(const PackedDocument&, const PackedDocument&) = default;
};

/// One timed launch over documents of unlike lengths, all under the mask of the curve.
struct PackedSample {
  std::vector<PackedDocument> documents;  ///< At least one.
  Duration time;
  std::optional<Spread> spread;
  friend bool operator==(const PackedSample&, const PackedSample&) = default;
};

/// One attention kernel: samples over the block size at one mask, direction and head dimension.
struct AttentionCurve {
  bool causal = false;
  bool backward = false;
  std::int64_t head_dim = 0;
  std::int64_t heads = 0;         ///< Query heads of the samples.
  std::int64_t kv_heads = 0;      ///< Key and value heads of the samples; 0: not stated.
  std::int64_t tile_queries = 0;  ///< Tile to which the kernel rounds a block up.
  std::int64_t tile_keys = 0;
  /// The rows of a tile are queries of all heads that share keys, not of one head: a short block of grouped heads then
  /// fills more of its tile. Forward kernels only.
  bool packs_heads = false;
  Duration launch;  ///< Fixed part of every launch, contained in the samples.
  std::string source;
  std::vector<AttentionSample> samples;  ///< At least one sample or packed sample.
  std::vector<PackedSample> packed;
  friend bool operator==(const AttentionCurve&, const AttentionCurve&) = default;
};

/// Attention kernels of other libraries and years than `attention`, for studies that ask for them: FlashAttention of
/// 2022 in Triton, FlashAttention-2 where that is not the main one, and cuDNN's.
enum class OtherAttention { triton, flash2, cudnn };
inline constexpr std::size_t other_attentions = 3;
/// The word of a study, such as "cudnn", and the key of its curves in a profile, such as "attention_cudnn".
[[nodiscard]] std::string_view other_attention_name(OtherAttention kernel);
[[nodiscard]] std::string_view other_attention_key(OtherAttention kernel);

/// Efficiency of a matrix product that fills the device, by its work.
struct GemmWorkSample {
  double gflop = 0;
  double efficiency = 0;  ///< Share of GemmTable::full_rate; in (0, 1].
  friend bool operator==(const GemmWorkSample&, const GemmWorkSample&) = default;
};

/// One timed product (m x k) times (k x n). A file may state the rate instead of the time.
struct GemmShapeSample {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Duration time;
  std::optional<Spread> spread;
  friend bool operator==(const GemmShapeSample&, const GemmShapeSample&) = default;
};

/// Matrix products, all of one type. At least one sample of either kind.
struct GemmTable {
  std::int64_t tile_m = 0;  ///< Tile that one multiprocessor computes at a time.
  std::int64_t tile_n = 0;
  Duration launch;     ///< Fixed part of every launch, contained in the samples by shape.
  FlopRate full_rate;  ///< The rate of efficiency 1.
  std::string source;
  std::vector<GemmWorkSample> by_work;
  std::vector<GemmShapeSample> by_shape;
  friend bool operator==(const GemmTable&, const GemmTable&) = default;
};

/// Kernels bound by device memory: a latency per kernel, then bytes at a bandwidth.
/// The bandwidth of one kind of memory-bound kernels.
struct KernelBandwidth {
  MemoryKernel kernel = MemoryKernel::other;
  Bandwidth bandwidth;
  friend bool operator==(const KernelBandwidth&, const KernelBandwidth&) = default;
};

struct MemoryBoundRate {
  Duration latency;
  Bandwidth bandwidth;
  std::string source;
  std::vector<KernelBandwidth> kernels = {};  ///< Those that are known to reach another one.
  friend bool operator==(const MemoryBoundRate&, const MemoryBoundRate&) = default;
};

/// Point-to-point transfer, send and receive at once. The bandwidth was achieved on a link of `line_rate`; on other
/// links the ratio of the two is kept.
struct SendRecvRate {
  Duration latency;
  Bandwidth bandwidth;
  Bandwidth line_rate;
  std::string source;
  [[nodiscard]] double efficiency() const;
  friend bool operator==(const SendRecvRate&, const SendRecvRate&) = default;
};

/// A collective: t = latency + steps x step_latency + bytes x bus factor / bandwidth, with the steps of a ring (n - 1;
/// all-reduce twice that) and the bus bandwidth as nccl-tests defines it, achieved where the narrowest link has
/// `line_rate`.
struct CollectiveRate {
  Duration latency;
  Duration step_latency;
  Bandwidth bandwidth;
  Bandwidth line_rate;
  std::string source;
  [[nodiscard]] double efficiency() const;
  friend bool operator==(const CollectiveRate&, const CollectiveRate&) = default;
};

/// What software achieves on one kind of link.
struct LinkProfile {
  std::optional<SendRecvRate> send_recv;  ///< May be absent only from a measured profile.
  std::optional<CollectiveRate> all_gather;
  std::optional<CollectiveRate> reduce_scatter;
  std::optional<CollectiveRate> all_reduce;
  std::optional<CollectiveRate> all_to_all;
  /// An all-to-all of tokens that travel once to each node or device that has some of their experts (DeepEP), as an
  /// all-to-all of what each device so sends.
  std::optional<CollectiveRate> dispatch;
  friend bool operator==(const LinkProfile&, const LinkProfile&) = default;
};

/// Copies between device and pinned host memory, per device.
struct HostCopies {
  Duration latency;  ///< Latency of one copy.
  Bandwidth d2h;     ///< One direction alone.
  Bandwidth h2d;
  Bandwidth d2h_both;  ///< Bandwidth while both directions run.
  Bandwidth h2d_both;
  std::string source;
  friend bool operator==(const HostCopies&, const HostCopies&) = default;
};

struct Overhead {
  Duration time;
  std::string source;
  friend bool operator==(const Overhead&, const Overhead&) = default;
};

/// How many times longer any kernel takes while messages or collectives of its rank are under way.
struct Slowdown {
  double factor = 1;  ///< At least 1.
  std::string source;
  friend bool operator==(const Slowdown&, const Slowdown&) = default;
};

/// How unlike the devices of one type are: the coefficient of variation (standard deviation over mean) of their rates
/// of products.
struct DeviceSpread {
  double cv = 0;
  std::string source;
  friend bool operator==(const DeviceSpread&, const DeviceSpread&) = default;
};

struct Overheads {
  Overhead per_step;
  Overhead per_micro_batch;
  Overhead kernel_launch;  ///< From the end of one kernel of a stream to the start of the next.
  /// The time of a framework's host thread to issue one kernel: its time for the operation, autograd included. Shorter
  /// kernels wait for it. Empty if the host is never late.
  std::optional<Overhead> host_issue;
  /// Its time for a kernel that a loop in C++ issues, such as the products of experts behind the first. Empty: the
  /// same.
  std::optional<Overhead> host_loop;
  /// Its time for a product in a narrow format besides: scales, casts and their kernels. Empty: none.
  std::optional<Overhead> host_narrow;
  /// Its time for an all-to-all of experts, with the small operations that prepare it. Empty: that of an operation.
  std::optional<Overhead> host_dispatch;
  std::optional<Slowdown> compute_beside_communication;
  friend bool operator==(const Overheads&, const Overheads&) = default;
};

/// What the profiled implementation sends around the backward ring besides keys and values.
struct BackwardRing {
  std::int64_t dkv_bytes_per_element = 2;  ///< bf16 2, fp32 4.
  std::string source;
  friend bool operator==(const BackwardRing&, const BackwardRing&) = default;
};

/// Creation of a communicator among n ranks, during which all of them wait: base + n x per_rank.
struct CommunicatorCost {
  Duration base;
  Duration per_rank;
  friend bool operator==(const CommunicatorCost&, const CommunicatorCost&) = default;
};

/// The costs of first contact with a peer. Empty figures are not known.
struct ConnectionCosts {
  /// Time until the first message between two devices of a communicator can leave.
  std::optional<Duration> first_contact;
  std::optional<Bytes> memory_per_peer;  ///< Memory of a device for the channels to one peer, both ways.
  std::optional<CommunicatorCost> communicator;
  std::string source;
  friend bool operator==(const ConnectionCosts&, const ConnectionCosts&) = default;
};

/// Families of costs that are fitted, measured and wrong together.
enum class CostFamily {
  attention_forward,
  attention_backward,
  gemm,
  memory_bound,
  messages,  ///< Send/recv.
  collectives,
  host_copies,
};
inline constexpr std::size_t cost_families = 7;
[[nodiscard]] std::string_view cost_family_name(CostFamily family);

/// How many times longer each family takes than the rest of a profile says.
class FamilyFactors {
 public:
  FamilyFactors() { factors_.fill(1); }
  [[nodiscard]] double operator[](CostFamily family) const { return factors_[static_cast<std::size_t>(family)]; }
  double& operator[](CostFamily family) { return factors_[static_cast<std::size_t>(family)]; }
  FamilyFactors& operator*=(const FamilyFactors& others) {
    for (std::size_t i = 0; i < cost_families; ++i) factors_[i] *= others.factors_[i];
    return *this;
  }
  [[nodiscard]] bool any() const { return *this != FamilyFactors(); }
  friend bool operator==(const FamilyFactors&, const FamilyFactors&) = default;

 private:
  std::array<double, cost_families> factors_{};
};

/// All that is known about one device type: the content of a profile file, schema hdpsim.profile/1. For an absent part
/// only the data sheet is known.
struct DeviceProfile {
  std::string name;  ///< The file's name without folder and extension.
  Provenance provenance;
  Datasheet datasheet;
  std::vector<AttentionCurve> attention;  ///< At most one per (mask, direction, head dimension, heads, kv heads).
  std::optional<GemmTable> gemm;          ///< Products of elements.
  /// By NarrowFormat::table, for studies that ask for them.
  std::array<std::optional<GemmTable>, narrow_tables.size()> gemm_narrow;
  /// Kernels of other libraries, by OtherAttention.
  std::array<std::vector<AttentionCurve>, other_attentions> other_attention;
  ProductFormat linear = ProductFormat::elements;  ///< What layers multiply: a choice of the study.
  LayerKernels layers = LayerKernels::fused;       ///< Who writes the kernels between: a choice of the study ...
  bool fused_norms = false;                        ///< ... and whether norms are one kernel whoever writes them.
  /// Attention as products and a softmax, as before FlashAttention, instead of the curves: a choice of the study.
  bool unfused_attention = false;
  GraphScope graphs;      ///< Modules that CUDA graphs launch, where the host issues the others: a choice of the study.
  FamilyFactors factors;  ///< All 1, but for a run whose devices differ (factors_of_slowest()) and for what-ifs.
  std::optional<MemoryBoundRate> memory_bound;
  std::optional<LinkProfile> nvlink;   ///< Between devices of one node.
  std::optional<LinkProfile> network;  ///< Between nodes.
  std::optional<HostCopies> host_copies;
  std::optional<DeviceSpread> spread;  ///< Empty: not known.
  Overheads overheads;
  std::optional<ConnectionCosts> connections;
  BackwardRing backward_ring;
  std::int64_t element_bytes = 2;  ///< Bytes of an element that kernels read and write: bf16 2, fp32 4.
  MeasuredSamples samples;         ///< Only a measured profile has samples and fits.
  ProfileFits fits;
  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

/// Floating-point operations of one sample over the exact mask area: 4 heads head_dim area forward, 2.5 times that
/// backward.
[[nodiscard]] Flops sample_work(const AttentionCurve& curve, const AttentionSample& sample);
[[nodiscard]] Flops sample_work(const AttentionCurve& curve, const PackedSample& sample);
[[nodiscard]] Flops sample_work(const GemmShapeSample& sample);

}  // namespace hdpsim
