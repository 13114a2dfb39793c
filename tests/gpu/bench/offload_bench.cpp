// A stack of transformer layers whose activations go to the host and come back, against one that keeps them.

#include "kernels/cuda/offload.h"

#include <cmath>

#include "tests/gpu/bench/bench.h"
#include "tests/support/attention_tensors.h"

namespace hdpsim::kernels::bench {
namespace {

// The shape of an 8 B model, 8 k tokens. What is offloaded (x, q, k, v, o and LSE of a layer) takes less time to copy
// than the layer takes to compute.
constexpr std::int64_t tokens = 8192;
constexpr std::int64_t hidden = 4096;
constexpr std::int64_t heads = 32;
constexpr std::int64_t kv_heads = 8;
constexpr std::int64_t dim = 128;
constexpr std::int64_t qkv_width = (heads + 2 * kv_heads) * dim;
constexpr std::int64_t inner = 14336;
constexpr int layers = 8;

/// The matrix products and the attention of one layer; its weights, and what it computes but does not keep, serve all
/// layers.
class Layer {
 public:
  explicit Layer(Backend& backend)
      : backend_(backend),
        input_(random_elements(backend, tokens * hidden, 1)),
        qkv_weight_(random_elements(backend, qkv_width * hidden, 2, 1 / std::sqrt(hidden))),
        out_weight_(random_elements(backend, hidden * hidden, 3, 1 / std::sqrt(hidden))),
        up_weight_(random_elements(backend, 2 * inner * hidden, 4, 1 / std::sqrt(hidden))),
        down_weight_(random_elements(backend, hidden * inner, 5, 1 / std::sqrt(inner))),
        wide_(random_elements(backend, tokens * 2 * inner, 6)),
        narrow_(random_elements(backend, tokens * hidden, 7)),
        middle_(random_elements(backend, tokens * qkv_width, 8)),
        gradient_(zeros(backend, 2 * inner * hidden * 4)),
        delta_(zeros(backend, tokens * heads * 4)),
        d_qkv_(zeros(backend, tokens * qkv_width * 4)) {}

  static constexpr std::size_t kept_bytes = tokens * (2 * hidden + qkv_width) * 2 + tokens * heads * 4;

  void forward(void* memory) {
    const Kept kept(memory);
    backend_.copy(kept.x, input_.get(), tokens * hidden * 2);
    product(tokens, qkv_width, hidden, kept.x, qkv_weight_, kept.qkv);
    const Rows<const void> q{kept.qkv, qkv_width};
    backend_.run(AttentionForward{.heads = attention_heads,
                                  .blocks = {&document, 1},
                                  .q = q,
                                  .k = {kept.qkv + 2 * heads * dim, qkv_width},
                                  .v = {kept.qkv + 2 * (heads + kv_heads) * dim, qkv_width},
                                  .o = {kept.o, hidden},
                                  .lse = kept.lse,
                                  .lse_stride = tokens});
    product(tokens, hidden, hidden, kept.o, out_weight_, narrow_.get());
    product(tokens, 2 * inner, hidden, kept.x, up_weight_, wide_.get());
    product(tokens, hidden, inner, wide_.get(), down_weight_, narrow_.get());
  }
  void backward(const void* memory) {
    const Kept kept(const_cast<void*>(memory));
    gradients(tokens, hidden, inner, wide_.get(), down_weight_, narrow_.get(), wide_.get());
    gradients(tokens, 2 * inner, hidden, kept.x, up_weight_, wide_.get(), narrow_.get());
    gradients(tokens, hidden, hidden, kept.o, out_weight_, input_.get(), narrow_.get());
    backend_.run(AttentionDelta{.heads = attention_heads,
                                .rows = tokens,
                                .o = {kept.o, hidden},
                                .d_o = {input_.get(), hidden},
                                .delta = static_cast<float*>(delta_.get())});
    auto* const d_qkv = static_cast<float*>(d_qkv_.get());
    backend_.run(AttentionBackward{.heads = attention_heads,
                                   .blocks = {&document, 1},
                                   .q = {kept.qkv, qkv_width},
                                   .k = {kept.qkv + 2 * heads * dim, qkv_width},
                                   .v = {kept.qkv + 2 * (heads + kv_heads) * dim, qkv_width},
                                   .d_o = {input_.get(), hidden},
                                   .lse = kept.lse,
                                   .delta = static_cast<const float*>(delta_.get()),
                                   .lse_stride = tokens,
                                   .d_q = {d_qkv, qkv_width},
                                   .d_k = {d_qkv + heads * dim, qkv_width},
                                   .d_v = {d_qkv + (heads + kv_heads) * dim, qkv_width}});
    gradients(tokens, qkv_width, hidden, kept.x, qkv_weight_, middle_.get(), narrow_.get());
  }

 private:
  /// Where the tensors of a layer lie in its memory.
  struct Kept {
    explicit Kept(void* memory)
        : x(static_cast<std::byte*>(memory)),
          qkv(x + tokens * hidden * 2),
          o(qkv + tokens * qkv_width * 2),
          lse(reinterpret_cast<float*>(o + tokens * hidden * 2)) {}
    std::byte* x;
    std::byte* qkv;
    std::byte* o;
    float* lse;
  };

  /// y [m, n] = x [m, k] W^T, W [n, k].
  void product(std::int64_t m, std::int64_t n, std::int64_t k, const void* x, const DeviceMemory& weight, void* y) {
    backend_.run(MatrixProduct{.m = m, .n = n, .k = k, .a = x, .b = weight.get(), .c = y, .b_transposed = true});
  }
  /// dX [m, k] = dY [m, n] W and dW [n, k] += dY^T X.
  void gradients(std::int64_t m, std::int64_t n, std::int64_t k, const void* x, const DeviceMemory& weight,
                 const void* d_y, void* d_x) {
    backend_.run(MatrixProduct{.m = n,
                               .n = k,
                               .k = m,
                               .a = d_y,
                               .b = x,
                               .c = gradient_.get(),
                               .a_transposed = true,
                               .fp32_result = true,
                               .beta = 1});
    backend_.run(MatrixProduct{.m = m, .n = k, .k = n, .a = d_y, .b = weight.get(), .c = d_x});
  }

  static constexpr AttentionHeads attention_heads{.heads = heads, .kv_heads = kv_heads, .dim = dim, .scale = 0.0884F};
  static constexpr AttentionBlock document{0, tokens, 0, tokens, Mask::causal};

  Backend& backend_;
  DeviceMemory input_, qkv_weight_, out_weight_, up_weight_, down_weight_;
  DeviceMemory wide_, narrow_, middle_, gradient_, delta_, d_qkv_;
};

}  // namespace

void measure_offload(Backend& backend, Report& report) {
  constexpr double budget_s = 0.8;
  Layer layer(backend);
  nlohmann::ordered_json what{{"kernel", "layers"},
                              {"pass", "forward and backward"},
                              {"layers", layers},
                              {"tokens", tokens},
                              {"kept_bytes_of_a_layer", Layer::kept_bytes}};
  std::vector<double> plain;
  {
    std::vector<DeviceMemory> kept;
    kept.reserve(layers);
    for (int i = 0; i < layers; ++i) kept.push_back(zeros(backend, Layer::kept_bytes));
    plain = measure(
        backend,
        [&] {
          for (int i = 0; i < layers; ++i) layer.forward(kept[static_cast<std::size_t>(i)].get());
          for (int i = layers; i-- > 0;) layer.backward(kept[static_cast<std::size_t>(i)].get());
        },
        budget_s);
  }
  report.add(what, plain, "passes_per_s", 1);

  HostActivations host(backend, layers * (Layer::kept_bytes + (std::size_t{16} << 20)));
  ActivationOffload offload(host, Layer::kept_bytes);
  const std::vector<double> offloaded = measure(
      backend,
      [&] {
        offload.begin(layers, Layer::kept_bytes);
        for (int i = 0; i < layers; ++i) {
          layer.forward(offload.begin_forward());
          offload.end_forward();
        }
        for (int i = 0; i < layers; ++i) {
          layer.backward(offload.begin_backward());
          offload.end_backward();
        }
      },
      budget_s);
  what["offloaded"] = true;
  report.add(what, offloaded, "passes_per_s", 1);
  report.at_most("offload_overhead", median(offloaded) / median(plain) - 1, 0.03);
}

}  // namespace hdpsim::kernels::bench
