#include "kernels/cpu/cpu_backend.h"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "kernels/cpu/impl/kernel_table.h"
#include "kernels/cpu/impl/processor.h"
#include "kernels/cpu/impl/row_kernels.h"
#include "kernels/spec/error.h"
#include "kernels/spec/shared_library.h"

namespace hdpsim::kernels {
namespace {

/// OpenBLAS on one core. It is opened with the first backend: where it is linked, it starts a thread for every core of
/// the machine before main(), and these spin for some 25 ms, in every process that multiplies nothing.
struct MatrixLibrary {
  decltype(&cblas_sgemm) sgemm = nullptr;
  std::string name;  ///< With the processor whose kernels it has chosen.
};

/// The same for the whole process. DeviceError if the machine has none.
const MatrixLibrary& matrix_library() {
  static const MatrixLibrary opened = [] {
    const SharedLibrary library("matrix products need OpenBLAS", {"libopenblas.so.0", "libopenblasp.so.0"});
    // One backend is one core; ranks are threads of their own.
    library.function<decltype(&openblas_set_num_threads)>("openblas_set_num_threads")(1);
    const auto core = library.function<decltype(&openblas_get_corename)>("openblas_get_corename");
    return MatrixLibrary{library.function<decltype(&cblas_sgemm)>("cblas_sgemm"),
                         fmt::format("OpenBLAS for {}", core())};
  }();
  return opened;
}

void require(bool condition, const char* message) {
  if (!condition) throw UnsupportedInput(message);
}

/// Least strides of tensors shaped as q, k, v and o.
void require_rows(const AttentionHeads& heads, std::int64_t q, std::int64_t k, std::int64_t v, std::int64_t o) {
  require(q >= heads.heads * heads.dim, "attention: a row of queries does not fit in its stride");
  require(k >= heads.kv_heads * heads.dim, "attention: a row of keys does not fit in its stride");
  require(v >= heads.kv_heads * heads.value_width(), "attention: a row of values does not fit in its stride");
  require(o >= heads.heads * heads.value_width(), "attention: a row of outputs does not fit in its stride");
}

void require_statistics(std::span<const AttentionBlock> blocks, std::int64_t lse_stride) {
  for (const AttentionBlock& block : blocks) {
    require(block.query_begin + block.queries <= lse_stride, "attention: a block ends beyond the rows of LSE");
  }
}

void require_linear_rows(const LinearHeads& heads, std::int64_t key_stride, std::int64_t value_stride) {
  require(key_stride >= heads.key_heads * heads.key_dim, "linear attention: a row of keys does not fit in its stride");
  require(value_stride >= heads.heads * heads.value_dim,
          "linear attention: a row of values does not fit in its stride");
}

void require_decays(std::span<const Document> documents, std::int64_t stride) {
  for (const Document& document : documents) {
    require(document.begin + document.tokens <= stride, "linear attention: a document ends beyond the rows of decays");
  }
}

/// An id outside the vocabulary would read or write foreign memory.
constexpr std::int64_t most_ids = std::int64_t{1} << 31;

void require_ids(const char* what, const std::int32_t* ids, std::int64_t count, std::int64_t least_id,
                 std::int64_t vocabulary) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (ids[i] >= least_id && ids[i] < vocabulary) continue;
    throw UnsupportedInput(
        fmt::format("{}: token {} is {}, but the vocabulary has {} entries", what, i, ids[i], vocabulary));
  }
}

void call_progress_hook(void* hook) {
  (*static_cast<std::function<void()>*>(hook))();
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(InstructionSet set) : set_(set), kernels_(cpu::kernels_of(set)) {}

  [[nodiscard]] Element element() const override { return Element::fp32; }
  [[nodiscard]] DeviceInfo info() const override {
    DeviceInfo info = cpu::describe_processor(set_);
    info.matrix_library = matrices_.name;
    return info;
  }
  [[nodiscard]] DeviceState state() override {
    DeviceState state = cpu::processor_state();
    state.emptying_s = emptying_s_;
    return state;
  }

  [[nodiscard]] DeviceMemory allocate(std::size_t bytes) override { return cpu::allocate_memory(bytes); }
  void fill_bytes(void* data, int value, std::size_t bytes) override {
    if (bytes > 0) std::memset(data, value, bytes);
  }
  void upload(void* device, const void* host, std::size_t bytes) override { copy(device, host, bytes); }
  void download(void* host, const void* device, std::size_t bytes) override { copy(host, device, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memmove(to, from, bytes);
  }
  void synchronize() override {}

  void run(const AttentionForward& op) override {
    require_valid(op.heads, op.blocks);
    require_rows(op.heads, op.q.stride, op.k.stride, op.v.stride, op.o.stride);
    require_statistics(op.blocks, op.lse_stride);
    kernels_.attention_forward(op, workspace());
  }
  void run(const AttentionDelta& op) override {
    require_valid(op.heads, {});
    kernels_.attention_delta(op);
  }
  /// Deterministic in any case: one thread adds in one order.
  void run(const AttentionBackward& op) override {
    require_valid(op.heads, op.blocks);
    require_rows(op.heads, std::min(op.q.stride, op.d_q.stride), std::min(op.k.stride, op.d_k.stride),
                 std::min(op.v.stride, op.d_v.stride), op.d_o.stride);
    require_statistics(op.blocks, op.lse_stride);
    require((op.sinks == nullptr) == (op.d_sinks == nullptr), "attention: sinks without gradients, or without values");
    kernels_.attention_backward(op, workspace());
  }
  void run(const LinearAttentionForward& op) override {
    require_valid(op.heads, op.documents);
    require_linear_rows(op.heads, std::min(op.q.stride, op.k.stride), std::min(op.v.stride, op.o.stride));
    require_decays(op.documents, op.decay_stride);
    kernels_.linear_attention_forward(op, workspace());
  }
  /// Deterministic, too.
  void run(const LinearAttentionBackward& op) override {
    require_valid(op.heads, op.documents);
    require_linear_rows(op.heads, std::min({op.q.stride, op.k.stride, op.d_q.stride, op.d_k.stride}),
                        std::min({op.v.stride, op.d_o.stride, op.d_v.stride}));
    require_decays(op.documents, op.decay_stride);
    require(op.chunk_states != nullptr, "linear attention: backward needs the states that forward keeps");
    kernels_.linear_attention_backward(op, workspace());
  }
  void run(const RmsNormForward& op) override { kernels_.rms_norm_forward(op); }
  void run(const RmsNormBackward& op) override { kernels_.rms_norm_backward(op); }
  void run(const Rope& op) override {
    require(op.dim % 2 == 0, "rope: the head dimension is odd");
    kernels_.rope(op);
  }
  void run(const SwigluForward& op) override { kernels_.swiglu_forward(op); }
  void run(const SwigluBackward& op) override { kernels_.swiglu_backward(op); }
  void run(const Add& op) override { kernels_.add(op); }
  void run(const EmbeddingForward& op) override {
    require_ids("embedding", op.ids, op.tokens, -1, op.vocabulary);
    kernels_.embedding_forward(op);
  }
  void run(const EmbeddingBackward& op) override {
    require_ids("embedding", op.ids, op.tokens, -1, op.vocabulary);
    kernels_.embedding_backward(op);
  }
  void run(const CrossEntropy& op) override {
    const bool is_part = op.log_sum_exp != nullptr;
    require_ids("cross-entropy", op.targets, op.tokens, -1, is_part ? most_ids : op.vocabulary);
    kernels_.cross_entropy(op);
  }
  void run(const LogSumExp& op) override { kernels_.log_sum_exp(op); }
  void run(const JoinLogSumExp& op) override;
  void run(const Adam& op) override {
    require(op.step >= 1, "adam: steps are counted from 1");
    kernels_.adam(op);
  }
  /// Both types are fp32 here.
  void run(const Cast& op) override { copy(op.to, op.from, static_cast<std::size_t>(op.count) * sizeof(float)); }
  void run(const MatrixProduct& op) override;
  void run(const CopyColumns& op) override { cpu::copy_columns(op); }
  void run(const SiluForward& op) override { cpu::silu(op); }
  void run(const SiluBackward& op) override { cpu::silu_back(op); }
  void run(const GateForward& op) override { cpu::gate(op); }
  void run(const GateBackward& op) override { cpu::gate_back(op); }
  void run(const RouteForward& op) override {
    require(op.chosen >= 1 && op.chosen <= op.experts, "experts: a token chooses none of them, or more than there are");
    cpu::route(op);
  }
  void run(const RouteBackward& op) override { cpu::route_back(op); }
  void run(const SortCopies& op) override { cpu::sort_copies(op); }
  void run(const SpreadTokens& op) override { cpu::spread_tokens(op); }
  void run(const SumCopies& op) override { cpu::sum_copies(op); }
  void run(const WeightGradients& op) override { cpu::weight_gradients(op); }

  void set_progress_hook(std::function<void()> hook) override {
    progress_ = hook ? std::move(hook) : [] {};
  }
  void set_sm_margin(int) override {}

  [[nodiscard]] std::vector<double> time(int runs, bool cold, const std::function<void()>& work) override;

 private:
  cpu::Workspace workspace() {
    if (!scratch_) scratch_ = allocate(kernels_.scratch_floats * sizeof(float));
    return {static_cast<float*>(scratch_.get()), call_progress_hook, &progress_};
  }
  void empty_caches();

  InstructionSet set_;
  const cpu::KernelTable& kernels_;
  const MatrixLibrary& matrices_ = matrix_library();
  std::function<void()> progress_ = [] {};
  DeviceMemory scratch_;                 ///< Allocated by the first attention.
  std::vector<unsigned char> eviction_;  ///< Larger than all caches, once a cold time was asked for.
  std::optional<double> emptying_s_;     ///< Time before the last cold runs.
};

void CpuBackend::run(const MatrixProduct& op) {
  const std::int64_t longest = std::max({op.m, op.n, op.k});
  require(std::min({op.m, op.n, op.k}) >= 0, "matrix product: a negative size");
  require(longest <= std::numeric_limits<blasint>::max(), "matrix product: a side is longer than OpenBLAS can count");
  if (op.m == 0 || op.n == 0) return;
  const auto m = static_cast<blasint>(op.m);
  const auto n = static_cast<blasint>(op.n);
  const auto k = static_cast<blasint>(op.k);
  const blasint row_of_a = std::max(1, op.a_transposed ? m : k);
  const blasint row_of_b = std::max(1, op.b_transposed ? k : n);
  matrices_.sgemm(CblasRowMajor, op.a_transposed ? CblasTrans : CblasNoTrans,
                  op.b_transposed ? CblasTrans : CblasNoTrans, m, n, k, 1, static_cast<const float*>(op.a), row_of_a,
                  static_cast<const float*>(op.b), row_of_b, op.beta, static_cast<float*>(op.c), n);
}

void CpuBackend::run(const JoinLogSumExp& op) {
  for (std::int64_t token = 0; token < op.tokens; ++token) {
    const auto part = [&](std::int64_t p) { return op.partial[p * op.tokens + token]; };
    float largest = part(0);
    for (std::int64_t p = 1; p < op.parts; ++p) largest = std::max(largest, part(p));
    float sum = 0;
    for (std::int64_t p = 0; p < op.parts; ++p) sum += std::exp(part(p) - largest);
    op.result[token] = largest + std::log(sum);
  }
}

void CpuBackend::empty_caches() {
  if (eviction_.empty()) eviction_.resize(2 * std::max<std::size_t>(std::size_t{16} << 20, info().cache_bytes));
  constexpr std::size_t line = 64;
  for (std::size_t i = 0; i < eviction_.size(); i += line) ++eviction_[i];
}

std::vector<double> CpuBackend::time(int runs, bool cold, const std::function<void()>& work) {
  const auto timed = [](const auto& what) {
    const double start = cpu::thread_seconds();
    what();
    return cpu::thread_seconds() - start;
  };
  std::vector<double> seconds;
  std::vector<double> emptying;
  for (int run = 0; run < runs; ++run) {
    if (cold) emptying.push_back(timed([this] { empty_caches(); }));
    seconds.push_back(timed(work));
  }
  if (!emptying.empty()) {
    const auto middle = emptying.begin() + std::ssize(emptying) / 2;
    std::nth_element(emptying.begin(), middle, emptying.end());
    emptying_s_ = *middle;
  }
  return seconds;
}

}  // namespace

CpuAttentionTile attention_tile(InstructionSet set) {
  const cpu::KernelTable& kernels = cpu::kernels_of(set);
  return {.queries = kernels.strip, .keys = kernels.panel, .gradient_queries = 1, .gradient_keys = kernels.strip};
}

std::unique_ptr<Backend> make_cpu_backend(InstructionSet set) {
  return std::make_unique<CpuBackend>(set);
}

}  // namespace hdpsim::kernels
