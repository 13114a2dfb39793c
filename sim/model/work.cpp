#include "sim/model/work.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "sim/base/check.h"
#include "sim/model/layers.h"
#include "sim/model/parameters.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

/// The part of a layer on one device of a tensor-parallel group. Key and value heads are replicated if they are fewer
/// than devices.
struct Shard {
  std::int64_t query_width;   ///< Columns of Q.
  std::int64_t key_width;     ///< Columns of K.
  std::int64_t value_width;   ///< Columns of V.
  std::int64_t output_width;  ///< Rows of the output projection.
  std::int64_t ffn;
  std::int64_t tokens;  ///< Tokens of one device.
};

Shard shard_of(const Transformer& model, std::int64_t tokens, std::int64_t tp) {
  const std::int64_t heads = divided(model.heads, tp);
  const std::int64_t kv_heads = divided(model.kv_heads, tp);
  const std::int64_t output = model.linear ? divided(output_width(model), tp) : heads * value_dim(model);
  return {heads * model.head_dim,        kv_heads * model.head_dim, kv_heads * value_dim(model), output,
          divided(model.ffn_hidden, tp), divided(tokens, tp)};
}

// Products or kinds of kernels of consecutive work, for which memory is taken at once.
constexpr std::size_t usual_products = 8;

/// The source of a product's input, which decides whether fp8 needs a cast of it.
enum class InputOf { norm, other, head };

/// Adds up consecutive dense work, part by part.
class Stretch {
 public:
  Stretch(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction, const Recipe& recipe)
      : model_(model),
        tokens_(tokens),
        recipe_(recipe),
        tp_(tp),
        shard_(shard_of(model, tokens, tp)),
        hidden_elements_((recipe.sequence_parallel ? shard_.tokens : tokens) * model.hidden),
        vocabulary_(divided(model.vocabulary, tp)),
        is_forward_(direction == Direction::forward),
        work_{.gemms = {}, .memory_bound = {}, .parts = {}, .direction = direction} {
    work_.gemms.reserve(usual_products);
    work_.memory_bound.reserve(usual_products);
  }

  void add(DensePart part) {
    work_.parts.push_back(part);
    switch (part) {
      case DensePart::embedding:
        return embedding();
      case DensePart::attention_norm:
        norm();
        return is_forward_ ? void() : add();
      case DensePart::qkv:
        return inputs();
      case DensePart::mixing:
        return mixing();
      case DensePart::attention_output:
        return attention_output();
      case DensePart::attention_residual:
        return is_forward_ ? add_branch() : void();
      case DensePart::mlp_norm:
        return mlp_norm();
      case DensePart::mlp:
        return mlp();
      case DensePart::mlp_inner:
        return mlp_inner();
      case DensePart::mlp_activation:
        return mlp_activation();
      case DensePart::mlp_residual:
        return is_forward_ ? add_branch() : void();
      case DensePart::final_norm:
        return norm();
      case DensePart::head:
        return head();
      case DensePart::shared_experts:
      case DensePart::router:
      case DensePart::copies:
      case DensePart::experts:
      case DensePart::expert_activation:
      case DensePart::sum_of_copies:
        break;
    }
    HDPSIM_CHECK(false, "experts of {} as a part of a stretch", model_.name);
  }

  [[nodiscard]] LinearPart take() { return std::move(work_); }

 private:
  // The fused cross-entropy reads the logits once and keeps two numbers per token; backward turns them into their
  // gradient in place.
  void loss(std::int64_t logits) {
    if (!recipe_.fp32_loss()) return kernel(MemoryKernel::cross_entropy, (is_forward_ ? 1 : 2) * logits);
    const Bytes copy(logits * (fp32_bytes + model_.element_bytes));  // of the logits, or back
    work_.add({copy, 1, MemoryKernel::fp32_loss});
    // Maximum and sum read; difference, exponential and quotient, or the multiplication in backward, read and write.
    const std::int64_t passes = is_forward_ ? 2 + 3 * 2 : 2;
    work_.add({Bytes(passes * fp32_bytes * logits), is_forward_ ? 5 : 1, MemoryKernel::fp32_loss});
  }

  // A device owns 1 / tp of the looked-up rows and writes zeros for the others, which a reduce-scatter then sums.
  // Backward reads the rows' gradients and adds them to fp32 sums, which are read and written. Where no product adds
  // gradients up, or a buffer has the sums, the table's gradient is dense: zeros to which rows are added, and which a
  // kernel then adds to the sums in every micro-batch (PyTorch, embedding_dense_backward; Megatron-Core 0.8,
  // distributed_data_parallel.py, param_hook: main_grad.add_).
  void embedding() {
    const std::int64_t own = shard_.tokens * model_.hidden;
    if (is_forward_) {
      work_.add({Bytes((own + tokens_ * model_.hidden) * stream()), 1, MemoryKernel::embedding_forward});
      if (recipe_.dropout) work_.add({Bytes(hidden_elements_ * (2 * stream() + mask_bytes))});
      return;
    }
    if (recipe_.dropout) drop_gradient(stream());
    const std::int64_t sums = table_sum_bytes();
    work_.add({Bytes(own * (stream() + 2 * (sums > 0 ? model_.element_bytes : fp32_bytes)))});
    const std::int64_t table = vocabulary_ * model_.hidden;
    if (sums > 0) work_.add({Bytes(table * model_.element_bytes)});
    add_up(table, sums);
  }

  /// Bytes of an element of the sums to which a kernel adds the table's gradient; 0: rows are added in place.
  [[nodiscard]] std::int64_t table_sum_bytes() const {
    return recipe_.has_gradient_buffer() ? recipe_.gradient_bytes : recipe_.added_bytes();
  }

  /// Bytes of an element of the residual stream.
  [[nodiscard]] std::int64_t stream() const { return recipe_.parameter_bytes(model_.element_bytes); }

  // Norms cast what they read from the residual stream and the gradient that they write for it.
  void norm() {
    norm(hidden_elements_);
    if (recipe_.autocast()) cast_fp32(hidden_elements_);
  }

  // Forward reads the input and writes the output; backward reads gradient and input and writes a gradient.
  void norm(std::int64_t elements) {
    if (is_forward_) return kernel(MemoryKernel::rms_norm_forward, 2 * elements);
    kernel(MemoryKernel::rms_norm_backward, 3 * elements);
  }

  void head() {
    for (std::int64_t i = 0; i < model_.predictions; ++i) {
      product({tokens_, vocabulary_, model_.hidden}, InputOf::head);
      loss(tokens_ * vocabulary_);
    }
  }

  void inputs() {
    if (model_.joins) join();
    if (model_.linear) return linear_inputs(*model_.linear);
    if (model_.latent) return latent_inputs(*model_.latent);
    const std::int64_t queries = shard_.query_width * (model_.gated_output ? 2 : 1);
    product({tokens_, queries + shard_.key_width + shard_.value_width, model_.hidden}, InputOf::norm);
    if (model_.qk_norm) norm(tokens_ * (shard_.query_width + shard_.key_width));
    kernel(MemoryKernel::rope, 2 * tokens_ * (shard_.query_width + shard_.key_width));  // Q, K in place
  }

  void join() {
    norm(2 * hidden_elements_);
    product({tokens_, divided(model_.hidden, tp_), 2 * model_.hidden}, InputOf::norm);
  }

  // Every device of a tensor-parallel group makes the latents, and expands them for its heads. Keys are joined from
  // their own and their rotated columns. Where an indexer chooses keys, these are the latents themselves: what would
  // expand them then multiplies queries, which are joined in place of keys, and outputs of attention, with as many
  // FLOPs.
  void latent_inputs(const LatentAttention& latent) {
    const bool has_rank = latent.query_rank > 0;
    if (has_rank) {
      product({tokens_, latent.query_rank, model_.hidden}, InputOf::norm);
      norm(tokens_ * latent.query_rank);
    }
    product({tokens_, shard_.query_width, has_rank ? latent.query_rank : model_.hidden}, InputOf::norm);
    product({tokens_, latent.kv_rank + latent.rotated, model_.hidden}, InputOf::norm);
    norm(tokens_ * latent.kv_rank);
    const std::int64_t heads = divided(model_.heads, tp_);
    product({tokens_, heads * (model_.head_dim - latent.rotated + value_dim(model_)), latent.kv_rank}, InputOf::norm);
    kernel(MemoryKernel::rope, 2 * tokens_ * (heads + 1) * latent.rotated);
    const std::int64_t joined = model_.indexer ? heads * core_heads(model_).key_dim : shard_.key_width;
    kernel(MemoryKernel::other, 2 * tokens_ * joined);
    if (scores_keys(model_)) indexer_inputs(*model_.indexer, latent);
  }

  // Every device of a tensor-parallel group has the whole indexer: its queries, its key and a weight for each head of
  // the scores. Queries and key are rotated, and multiplied by a Hadamard matrix, which spreads outliers over columns.
  void indexer_inputs(const KeyIndexer& indexer, const LatentAttention& latent) {
    product({tokens_, indexer.heads * indexer.head_dim, latent.query_rank > 0 ? latent.query_rank : model_.hidden},
            InputOf::norm);
    product({tokens_, indexer.head_dim + indexer.heads, model_.hidden}, InputOf::norm);
    norm(tokens_ * indexer.head_dim);
    kernel(MemoryKernel::rope, 2 * tokens_ * (indexer.heads + 1) * latent.rotated);
    kernel(MemoryKernel::other, 2 * tokens_ * (indexer.heads + 1) * indexer.head_dim);
  }

  void linear_inputs(const LinearMixing& linear) {
    product({tokens_, divided(linear.inputs, tp_), model_.hidden}, InputOf::norm);
    if (linear.convolved > 0) kernel(MemoryKernel::other, 2 * tokens_ * divided(linear.convolved, tp_));
    if (linear.step_rank == 0) return;
    product({tokens_, linear.step_rank + 2 * linear.key_dim, shard_.output_width}, InputOf::other);
    product({tokens_, shard_.output_width, linear.step_rank}, InputOf::other);
  }

  // A scan reads its inputs and writes its output, and backward reads both and writes as many gradients. Its arithmetic
  // is neglected.
  void mixing() {
    HDPSIM_CHECK(model_.linear.has_value(), "linear mixing in a layer of {}", model_.name);
    for (const Gemm& forward : mixing_products(*model_.linear, tokens_, tp_)) {
      if (is_forward_) {
        work_.gemms.push_back(forward);
      } else {
        work_.gemms.push_back({forward.m, forward.k, forward.n});
        work_.gemms.push_back({forward.k, forward.n, forward.m});
      }
    }
    const std::int64_t elements = divided(model_.linear->inputs, tp_) + shard_.output_width;
    if (model_.linear->chunk == 1) kernel(MemoryKernel::other, (is_forward_ ? 1 : 2) * tokens_ * elements);
  }

  // A gate, which linear mixing has before its output's norm, reads and writes the output and reads as much.
  void attention_output() {
    if (!is_forward_ && norms_outputs()) norm();
    if (model_.linear || model_.gated_output) kernel(MemoryKernel::other, 3 * tokens_ * shard_.output_width);
    product({tokens_, model_.hidden, shard_.output_width}, InputOf::other);
  }

  // Parallel branches read one norm, and their gradients meet there.
  void mlp_norm() {
    const bool shares = model_.norms == 1 && mixes_tokens(model_);
    if (!shares) norm();
    if (is_forward_) return;
    add();
    branch_gradient();
  }

  /// The outputs of both branches have norms.
  [[nodiscard]] bool norms_outputs() const { return model_.norms == 4; }
  void add_branch() {
    if (norms_outputs()) norm();
    add();
  }
  // Backward multiplies the gradient by the mask.
  void drop_gradient(std::int64_t element) { work_.add({Bytes(hidden_elements_ * (2 * element + mask_bytes))}); }

  // The residual reads a branch's output and the stream and writes the stream; backward sums the stream's gradient and
  // the norm's. The same kernel drops and writes the mask (Megatron-LM, fused_bias_dropout.py).
  void add() {
    const std::int64_t mask = recipe_.dropout ? mask_bytes : 0;
    const std::int64_t bytes = is_forward_ ? stream() + model_.element_bytes + stream() + mask : 3 * stream();
    work_.add({Bytes(hidden_elements_ * bytes), 1, MemoryKernel::add});
  }

  // The products of a branch read the stream's gradient as elements.
  void branch_gradient() {
    if (recipe_.autocast() && !is_forward_) cast_fp32(hidden_elements_);
    if (recipe_.dropout && !is_forward_) drop_gradient(model_.element_bytes);
  }

  void mlp() {
    const Gemm down{tokens_, model_.hidden, shard_.ffn};
    if (!is_forward_ && norms_outputs()) norm();
    branch_gradient();
    if (is_forward_) {
      mlp_inner();
      return product(down, InputOf::other);
    }
    product(down, InputOf::other);
    product(inner_product(), InputOf::norm);
    work_.add(activation(model_, tokens_, shard_.ffn, work_.direction));
    if (recipe_.fp8_activation_input) work_.add(activation_input_cast(model_, tokens_, shard_.ffn));
  }

  void mlp_inner() {
    product(inner_product(), InputOf::norm);
    mlp_activation();
    if (recipe_.fp8_activation_input) work_.add(activation_input_cast(model_, tokens_, shard_.ffn));
  }

  void mlp_activation() {
    HDPSIM_CHECK(is_forward_, "backward of a part of the MLP of {}", model_.name);
    work_.add(activation(model_, tokens_, shard_.ffn, work_.direction));
  }

  // Gate and up are one product of twice the width.
  [[nodiscard]] std::int64_t inner_products() const { return mlp_matrices(model_) - 1; }
  [[nodiscard]] Gemm inner_product() const {
    HDPSIM_CHECK(!model_.moe, "a layer of {} with experts has no dense MLP", model_.name);
    return {tokens_, inner_products() * shard_.ffn, model_.hidden};
  }

  /// In backward: the product for the gradient of the input (m x n times n x k) and of the weight (k x m times m x n).
  void product(const Gemm& forward, InputOf input) {
    const ProductFormat format = input == InputOf::head ? ProductFormat::elements : recipe_.products;
    const bool of_norm = is_forward_ && input == InputOf::norm;
    cast(format, forward.m * (is_forward_ ? forward.k : forward.n), of_norm ? CastOf::norm : CastOf::other);
    if (recipe_.autocast()) cast_weight(forward.k * forward.n);
    if (!is_forward_ && !in_fp8(format) && model_.biases && input != InputOf::head)
      sum_bias_gradient(forward.m * forward.n);
    if (is_forward_) return work_.gemms.push_back({forward.m, forward.n, forward.k, format});
    work_.gemms.push_back({forward.m, forward.k, forward.n, format});
    work_.gemms.push_back({forward.k, forward.n, forward.m, format, recipe_.summed_bytes()});
    add_up(forward.k * forward.n, recipe_.added_bytes());
    if (recipe_.flat_gradients()) flatten(forward.k * forward.n);
  }

  /// Reads a weight's gradient, and reads and writes its sum over micro-batches, of `sum` bytes an element; 0: no
  /// kernel does.
  void add_up(std::int64_t elements, std::int64_t sum) {
    if (sum > 0) work_.add({Bytes(elements * (model_.element_bytes + 2 * sum))});
  }

  /// The copy of a gradient from the product or, under autocast, the cast to fp32; and its division before ranks sum
  /// it.
  void flatten(std::int64_t elements) { work_.add({Bytes(elements * 2 * (stream() + model_.element_bytes)), 2}); }

  /// The gradient of a bias is the sum of the output's gradient over all tokens, which is read once more for it. In fp8
  /// the cast of that gradient adds it up (Transformer Engine, cast_transpose_dbias).
  void sum_bias_gradient(std::int64_t elements) { kernel(MemoryKernel::other, elements); }

  /// Backward reads the cast that forward made of the weight; its gradient is cast twice.
  void cast_weight(std::int64_t elements) {
    cast_fp32(elements);
    if (!is_forward_) cast_fp32(elements);
  }

  /// A cast between fp32 and an element, in either direction.
  void cast_fp32(std::int64_t elements) { work_.add({Bytes(elements * (fp32_bytes + model_.element_bytes))}); }

  /// The cast of a product's input, or of its output's gradient.
  void cast(ProductFormat format, std::int64_t elements, CastOf what) {
    const Bytes bytes(cast_bytes(format, elements, model_.element_bytes, what));
    if (bytes > Bytes{}) work_.add({bytes});
  }

  /// A kernel that reads and writes this many elements in all.
  void kernel(MemoryKernel kind, std::int64_t elements) {
    work_.add({Bytes(elements * model_.element_bytes), 1, kind});
  }

  const Transformer& model_;
  std::int64_t tokens_;
  const Recipe& recipe_;
  std::int64_t tp_;
  Shard shard_;
  std::int64_t hidden_elements_;  // elements that norms and residuals process
  std::int64_t vocabulary_;
  bool is_forward_;
  LinearPart work_;
};

}  // namespace

void LinearPart::add(const MemoryBound& kernels) {
  const auto same = std::find_if(memory_bound.begin(), memory_bound.end(),
                                 [&](const MemoryBound& those) { return those.kind == kernels.kind; });
  if (same == memory_bound.end()) return memory_bound.push_back(kernels);
  same->traffic += kernels.traffic;
  same->kernels += kernels.kernels;
}

Bytes LinearPart::traffic() const {
  Bytes all;
  for (const MemoryBound& kernels : memory_bound) all += kernels.traffic;
  return all;
}

std::int64_t LinearPart::launches() const {
  std::int64_t all = std::ssize(gemms);
  for (const MemoryBound& kernels : memory_bound) all += kernels.kernels;
  return all;
}

MemoryBound activation(const Transformer& model, std::int64_t rows, std::int64_t width, Direction direction) {
  const std::int64_t read = model.gated_mlp ? 2 : 1;
  const bool is_forward = direction == Direction::forward;
  return {Bytes((is_forward ? read + 1 : 2 * read + 1) * rows * width * model.element_bytes), 1,
          is_forward ? MemoryKernel::swiglu_forward : MemoryKernel::swiglu_backward};
}

MemoryBound activation_input_cast(const Transformer& model, std::int64_t rows, std::int64_t width) {
  const std::int64_t read = model.gated_mlp ? 2 : 1;
  return {Bytes(read * rows * width * (model.element_bytes + 1))};
}

std::vector<DensePart> parts_again(Recompute recompute) {
  using enum LayerModule;
  std::vector<DensePart> parts;
  const auto add = [&](LayerModule module, std::initializer_list<DensePart> own) {
    if (recompute.has(module)) std::copy(own.begin(), own.end(), std::back_inserter(parts));
  };
  add(norm, {DensePart::attention_norm});
  add(qkv, {DensePart::qkv});
  add(projection, {DensePart::attention_output, DensePart::attention_residual});
  add(norm, {DensePart::mlp_norm});
  add(mlp, {DensePart::mlp});
  if (!recompute.has(mlp)) add(activation, {DensePart::mlp_activation});
  if (recompute == Recompute::full) parts.push_back(DensePart::mlp_residual);
  return parts;
}

LinearPart dense_work(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                      const std::vector<DensePart>& parts, Direction direction, const Recipe& recipe) {
  Stretch stretch(model, tokens, tp, direction, recipe);
  for (const DensePart part : parts) stretch.add(part);
  return stretch.take();
}

namespace {

// Those of `parts` that a layer of this kind has; experts are no dense work.
std::vector<DensePart> parts_of(const Transformer& model, std::vector<DensePart> parts) {
  using enum DensePart;
  std::erase_if(parts, [&](DensePart part) {
    const bool is_mlp = part == mlp_norm || part == mlp || part == mlp_residual;
    return is_mlp ? !has_mlp(model) || (part == mlp && model.moe) : !mixes_tokens(model);
  });
  return parts;
}

}  // namespace

LinearPart before_attention(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction,
                            const Recipe& recipe) {
  using enum DensePart;
  const bool is_forward = direction == Direction::forward;
  const auto parts = is_forward ? std::vector{attention_norm, qkv} : std::vector{qkv, attention_norm};
  return dense_work(model, tokens, tp, parts_of(model, parts), direction, recipe);
}

LinearPart after_attention(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction,
                           const Recipe& recipe) {
  using enum DensePart;
  const auto parts = direction == Direction::forward
                         ? std::vector{attention_output, attention_residual, mlp_norm, mlp, mlp_residual}
                         : std::vector{mlp, mlp_norm, attention_output};
  return dense_work(model, tokens, tp, parts_of(model, parts), direction, recipe);
}

LinearPart embedding(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction,
                     const Recipe& recipe) {
  return dense_work(model, tokens, tp, {DensePart::embedding}, direction, recipe);
}

LinearPart output_head(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction,
                       const Recipe& recipe) {
  using enum DensePart;
  if (direction == Direction::forward) return dense_work(model, tokens, tp, {final_norm, head}, direction, recipe);
  return dense_work(model, tokens, tp, {head, final_norm}, direction, recipe);
}

namespace {

// Takes every second product of a backward part: Stretch::product() adds the gradient of a product's input, then that
// of its weight. Linear mixing has no weights.
LinearPart half_of(const LinearPart& backward, Gradients gradients) {
  const bool mixes = backward.parts == std::vector{DensePart::mixing};
  const bool scatters = backward.parts == std::vector{DensePart::embedding};
  const std::size_t first = gradients == Gradients::inputs ? 0 : 1;
  LinearPart half{.gemms = {},
                  .memory_bound = {},
                  .parts = backward.parts,
                  .direction = backward.direction,
                  .gradients = gradients};
  if ((gradients == Gradients::weights) == scatters) half.memory_bound = backward.memory_bound;
  if (mixes && gradients == Gradients::inputs) half.gemms = backward.gemms;
  if (mixes) return half;
  for (std::size_t i = first; i < backward.gemms.size(); i += 2) half.gemms.push_back(backward.gemms[i]);
  return half;
}

}  // namespace

LinearPart input_gradients(const LinearPart& backward) {
  return half_of(backward, Gradients::inputs);
}

LinearPart weight_gradients(const LinearPart& backward) {
  return half_of(backward, Gradients::weights);
}

std::optional<std::size_t> last_product(const LinearPart& backward, Gradients gradients) {
  const std::size_t products = backward.gemms.size();
  if (products == 0) return std::nullopt;
  if (backward.gradients == gradients) return products - 1;
  if (backward.gradients != Gradients::all) return std::nullopt;
  return gradients == Gradients::inputs ? products - 2 : products - 1;
}

Bytes kv_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp) {
  if (model.indexer) {
    const std::int64_t of_indexer = scores_keys(model) ? model.indexer->head_dim : 0;
    return Bytes(tokens * (core_heads(model).key_dim + of_indexer) * model.element_bytes);
  }
  const Shard shard = shard_of(model, tokens, tp);
  return Bytes(tokens * (shard.key_width + shard.value_width) * model.element_bytes);
}

Bytes hidden_bytes(const Transformer& model, std::int64_t tokens) {
  return Bytes(tokens * model.hidden * model.element_bytes);
}

}  // namespace hdpsim
