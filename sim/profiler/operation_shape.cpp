#include "sim/profiler/operation_shape.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace hdpsim {
namespace {

struct TypeBytes {
  std::string_view name;
  std::int64_t bytes;
};
constexpr auto types = std::to_array<TypeBytes>({
    {"c10::BFloat16", 2}, {"BFloat16", 2},
    {"c10::Half", 2},     {"Half", 2},
    {"float", 4},         {"Float", 4},
    {"double", 8},        {"Double", 8},
    {"int", 4},           {"Int", 4},
    {"long", 8},          {"long int", 8},
    {"Long", 8},          {"short", 2},
    {"bool", 1},          {"Bool", 1},
    {"unsigned char", 1}, {"Byte", 1},
    {"Char", 1},          {"signed char", 1},
    {"uint8_t", 1},       {"c10::Float8_e4m3fn", 1},
    {"Float8_e4m3fn", 1}, {"c10::Float8_e5m2", 1},
    {"Float8_e5m2", 1},
});

constexpr double most_elements = 1e12;  // of a tensor: beyond any device
constexpr std::int64_t most_bytes = 100'000'000'000'000;

/// The tensors of an operation, by the index of its input.
class Inputs {
 public:
  explicit Inputs(const ProfilerEvent& operation) : operation_(operation) {}

  [[nodiscard]] std::size_t count() const { return operation_.dims.size(); }
  [[nodiscard]] const InputDims& dims(std::size_t i) const {
    static const InputDims none;
    return i < operation_.dims.size() ? operation_.dims[i] : none;
  }
  [[nodiscard]] std::int64_t element_bytes(std::size_t i) const {
    return i < operation_.types.size() ? bytes_of_type(operation_.types[i]) : 0;
  }
  [[nodiscard]] bool is_fp8(std::size_t i) const {
    return i < operation_.types.size() && operation_.types[i].find("Float8") != std::string::npos;
  }
  /// Empty if the value was not recorded.
  [[nodiscard]] std::optional<bool> truth(std::size_t i) const {
    if (i >= operation_.concrete.size()) return std::nullopt;
    if (operation_.concrete[i] == "True" || operation_.concrete[i] == "true") return true;
    if (operation_.concrete[i] == "False" || operation_.concrete[i] == "false") return false;
    return std::nullopt;
  }
  /// Whether the input states a window: -1 is none, in a pair, too.
  [[nodiscard]] bool has_window(std::size_t i) const {
    if (i >= operation_.concrete.size()) return false;
    const std::size_t first = operation_.concrete[i].find_first_of("-0123456789");
    return first != std::string::npos && operation_.concrete[i][first] != '-';
  }

 private:
  const ProfilerEvent& operation_;
};

/// Elements of a tensor, 0 where a dimension is wrong or there are more than any device holds.
std::int64_t elements(const InputDims& dims) {
  double product_shape = dims.empty() ? 0 : 1;
  for (const std::int64_t dim : dims) product_shape *= static_cast<double>(std::max<std::int64_t>(0, dim));
  return product_shape <= most_elements ? static_cast<std::int64_t>(product_shape) : 0;
}

bool is_sane(const Gemm& op) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  const auto sane = [](std::int64_t side) { return side >= 1 && side <= most; };
  return sane(op.m) && sane(op.n) && sane(op.k);
}

struct ProductOperation {
  std::string_view name;
  std::size_t left;
  std::size_t right;
  bool transposed;  ///< The right factor is n x k.
};
constexpr auto products = std::to_array<ProductOperation>({
    {"aten::mm", 0, 1, false},
    {"aten::addmm", 1, 2, false},
    {"aten::_addmm_activation", 1, 2, false},
    {"aten::bmm", 0, 1, false},
    {"aten::baddbmm", 1, 2, false},
    {"aten::matmul", 0, 1, false},
    {"aten::linear", 0, 1, true},
    {"aten::_scaled_mm", 0, 1, false},
});

OperationShape product_shape(const Inputs& inputs, std::size_t left, std::size_t right, bool transposed) {
  InputDims a = inputs.dims(left);
  InputDims b = inputs.dims(right);
  const std::int64_t bytes = inputs.element_bytes(left);
  if (a.size() < 2 || b.size() < 2 || bytes == 0 || bytes != inputs.element_bytes(right)) return {};
  if (b.size() > 2) {  // of batches only those of one
    if (b.size() != 3 || a.size() != 3 || a.front() != 1 || b.front() != 1) return {};
    b.erase(b.begin());
  }
  if (transposed) std::swap(b[0], b[1]);
  const std::int64_t k = a.back();
  a.pop_back();
  const bool is_fp8 = inputs.is_fp8(left) && inputs.is_fp8(right);
  const Gemm op{elements(a), b[1], k, is_fp8 ? ProductFormat::fp8 : ProductFormat::elements};
  if (b[0] != k || !is_sane(op)) return {};
  return TracedProduct{op, bytes};
}

/// Linear layers of Transformer Engine hand over weight, input and much else: the two tensors whose last sides agree,
/// if no third does.
OperationShape linear_of_transformer_engine(const Inputs& inputs) {
  std::optional<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t i = 0; i < inputs.count(); ++i) {
    for (std::size_t j = i + 1; j < inputs.count(); ++j) {
      if (inputs.dims(i).size() < 2 || inputs.dims(j).size() < 2) continue;
      if (inputs.dims(i).back() != inputs.dims(j).back()) continue;
      if (found) return {};
      found = {i, j};
    }
  }
  if (!found) return {};
  const auto [weight, input] = inputs.dims(found->first).size() == 2 ? *found : std::pair(found->second, found->first);
  return product_shape(inputs, input, weight, true);
}

/// The order of the sides of queries, keys and values.
enum class Layout : std::uint8_t { batch_heads_tokens, batch_tokens_heads };

struct AttentionOperation {
  std::string_view name;
  std::size_t query;   ///< Keys and values follow.
  std::size_t causal;  ///< The input that says whether the mask is causal.
  Layout layout;
  Direction direction;
  std::size_t window = 0;   ///< The input with the tokens to the left that a query sees; 0: none.
  std::size_t offsets = 0;  ///< The input with the offsets of packed documents; 0: none.
};

constexpr Layout bhsd = Layout::batch_heads_tokens;
constexpr Layout bshd = Layout::batch_tokens_heads;
constexpr Direction forward = Direction::forward;
constexpr Direction backward = Direction::backward;

// Signatures: aten/src/ATen/native/native_functions.yaml of PyTorch, flash_attn/flash_attn_interface.py and
// hopper/flash_api.cpp of FlashAttention.
constexpr auto attentions = std::to_array<AttentionOperation>({
    {"aten::_scaled_dot_product_flash_attention", 0, 4, bhsd, forward},
    {"aten::_scaled_dot_product_flash_attention_backward", 1, 11, bhsd, backward},
    {"aten::_scaled_dot_product_cudnn_attention", 0, 6, bhsd, forward},
    {"aten::_scaled_dot_product_cudnn_attention_backward", 1, 14, bhsd, backward},
    {"aten::_scaled_dot_product_efficient_attention", 0, 6, bhsd, forward},
    {"aten::_scaled_dot_product_efficient_attention_backward", 1, 11, bhsd, backward},
    {"aten::_cudnn_attention_forward", 0, 10, bhsd, forward},
    {"aten::_flash_attention_forward", 0, 8, bshd, forward, 11, 3},
    {"aten::_flash_attention_backward", 1, 11, bshd, backward, 15, 6},
    {"flash_attn::_flash_attn_forward", 0, 5, bshd, forward, 6},
    {"flash_attn::_flash_attn_backward", 1, 11, bshd, backward, 12},
    {"flash_attn::_flash_attn_varlen_forward", 0, 9, bshd, forward, 10, 3},
    {"flash_attn::_flash_attn_varlen_backward", 1, 15, bshd, backward, 16, 9},
    {"flash_attn_3::fwd", 0, 24, bshd, forward, 25, 7},
    {"flash_attn_3::bwd", 1, 16, bshd, backward, 17, 9},
    {"FlashAttnFunc", 0, 5, bshd, forward, 6},
});

/// Queries, keys and values of a call; sequences without a batch (packed documents) get one.
std::optional<std::array<InputDims, 2>> heads_of(const Inputs& inputs, const AttentionOperation& call) {
  std::array<InputDims, 2> tensors = {inputs.dims(call.query), inputs.dims(call.query + 1)};
  for (InputDims& dims : tensors) {
    if (dims.size() == 3 && call.offsets != 0) {
      // Offsets of one document are two numbers; of more, their lengths are not in the trace.
      const InputDims& offsets = inputs.dims(call.offsets);
      if (offsets.size() != 1 || offsets[0] != 2) return std::nullopt;
      dims.insert(dims.begin(), 1);
    }
    if (dims.size() != 4) return std::nullopt;
    if (call.layout == Layout::batch_heads_tokens) std::swap(dims[1], dims[2]);
  }
  return tensors;
}

OperationShape attention(const Inputs& inputs, const AttentionOperation& call) {
  const auto tensors = heads_of(inputs, call);
  const std::optional<bool> causal = inputs.truth(call.causal);
  constexpr std::int64_t half = 2;
  if (call.window != 0 && inputs.has_window(call.window)) return {};
  if (!tensors || !causal || inputs.element_bytes(call.query) != half) return {};
  const auto& [q, k] = *tensors;
  const auto wrong = [](std::int64_t side) { return side < 1 || side > (std::int64_t{1} << 31); };
  if (std::any_of(q.begin(), q.end(), wrong) || std::any_of(k.begin(), k.end(), wrong)) return {};
  if (q[0] != k[0] || q[3] != k[3] || (*causal && q[1] != k[1])) return {};
  return TracedAttention{.queries = q[1],
                         .keys = k[1],
                         .count = q[0],
                         .heads = q[2],
                         .kv_heads = k[2],
                         .head_dim = q[3],
                         .mask = *causal ? Mask::causal : Mask::full,
                         .direction = call.direction};
}

/// What an element-wise operation does with its first tensors.
enum class Writes : std::uint8_t { first_alone, first, like_largest };

struct TrafficOperation {
  std::string_view name;
  std::string_view kernel;
  Writes writes;
};
constexpr auto traffics = std::to_array<TrafficOperation>({
    {"aten::copy_", "copy", Writes::first_alone},
    {"aten::fill_", "fill", Writes::first_alone},
    {"aten::zero_", "fill", Writes::first_alone},
    {"aten::add_", "add", Writes::first},
    {"aten::mul_", "multiply", Writes::first},
    {"aten::div_", "multiply", Writes::first},
    {"aten::add", "add", Writes::like_largest},
    {"aten::sub", "add", Writes::like_largest},
    {"aten::mul", "multiply", Writes::like_largest},
    {"aten::div", "multiply", Writes::like_largest},
    {"aten::silu", "activation", Writes::like_largest},
    {"aten::gelu", "activation", Writes::like_largest},
    {"aten::silu_backward", "activation", Writes::like_largest},
    {"aten::gelu_backward", "activation", Writes::like_largest},
    {"aten::native_layer_norm", "layer_norm", Writes::like_largest},
    {"aten::_fused_rms_norm", "rms_norm_forward", Writes::like_largest},
    {"aten::_softmax", "softmax", Writes::like_largest},
    {"aten::_log_softmax", "softmax", Writes::like_largest},
});

OperationShape traffic(const Inputs& inputs, const TrafficOperation& operation) {
  std::int64_t sum = 0;
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < inputs.count(); ++i) {
    if (inputs.dims(i).empty()) continue;
    const std::int64_t bytes = elements(inputs.dims(i)) * inputs.element_bytes(i);
    if (bytes == 0) return {};
    sum += bytes;
    largest = std::max(largest, bytes);
  }
  if (sum == 0 || sum > most_bytes || inputs.dims(0).empty()) return {};
  if (operation.writes == Writes::first) sum += elements(inputs.dims(0)) * inputs.element_bytes(0);
  if (operation.writes == Writes::like_largest) sum += largest;
  return TracedTraffic{std::string(operation.kernel), sum};
}

template <class Table>
auto row_of(const Table& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

std::int64_t bytes_of_type(std::string_view type) {
  const TypeBytes* found = row_of(types, type);
  return found == nullptr ? 0 : found->bytes;
}

OperationShape shape_of(const ProfilerEvent& operation) {
  if (operation.dims.empty()) return {};
  const Inputs inputs(operation);
  if (const auto* call = row_of(products, operation.name)) {
    return product_shape(inputs, call->left, call->right, call->transposed);
  }
  if (const auto* call = row_of(attentions, operation.name)) return attention(inputs, *call);
  if (const auto* call = row_of(traffics, operation.name)) return traffic(inputs, *call);
  if (operation.name == "_Linear" || operation.name == "_LayerNormLinear") return linear_of_transformer_engine(inputs);
  return {};
}

}  // namespace hdpsim
