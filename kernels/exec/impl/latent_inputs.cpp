#include "kernels/exec/impl/latent_inputs.h"

namespace hdpsim::kernels::exec {
namespace {

/// The sizes of a layer, and its linear layers.
struct Latents {
  explicit Latents(const LayerWork& work)
      : latent(*work.kind.latent),
        heads(heads_of(work.kind)),
        plain(heads.dim - latent.rotated),
        tensors(work.tensors) {}

  [[nodiscard]] bool has_rank() const { return latent.query_rank > 0; }
  // The products and norms of the QKV part, of which those to and from a latent of queries come first.
  [[nodiscard]] const Linear& product(std::size_t i) const { return tensors.product(DensePart::qkv, i); }
  [[nodiscard]] const Linear& query() const { return product(has_rank() ? 1 : 0); }
  [[nodiscard]] const Linear& down() const { return product(has_rank() ? 2 : 1); }
  [[nodiscard]] const Linear& up() const { return product(has_rank() ? 3 : 2); }
  [[nodiscard]] Linear kv_down() const { return down().rows(0, latent.kv_rank); }
  [[nodiscard]] Linear rotated() const { return down().rows(latent.kv_rank, latent.rotated); }
  [[nodiscard]] Linear key_up() const { return up().rows(0, heads.heads * plain); }
  [[nodiscard]] Linear value_up() const { return up().rows(heads.heads * plain, output_width(heads)); }
  [[nodiscard]] const Tensor& query_norm() const { return tensors.norm(DensePart::qkv); }
  [[nodiscard]] const Tensor& kv_norm() const { return tensors.norm(DensePart::qkv, has_rank() ? 1 : 0); }

  LatentAttention latent;
  AttentionHeads heads;
  std::int64_t plain;  ///< Columns of a head that do not rotate.
  const LayerTensors& tensors;
};

void* offset(const LayerWork& work, void* data, std::int64_t elements) {
  return static_cast<std::byte*>(data) + work.kernels.bytes_of(elements);
}

// Rotates the last columns of heads, `dim` elements apart, that have `width` elements of a row before them.
void rotate(const LayerWork& work, void* x, std::int64_t heads, std::int64_t dim, std::int64_t rotated, bool inverse) {
  work.kernels.backend().run(Rope{.tokens = work.kernels.rows().all,
                                  .heads = heads,
                                  .dim = rotated,
                                  .stride = heads * dim,
                                  .base = rotation_base,
                                  .inverse = inverse,
                                  .x = offset(work, x, dim - rotated),
                                  .positions = work.shared.positions,
                                  .head_stride = dim});
}

/// Where parts of rows begin.
struct Parts {
  void* data = nullptr;
  std::int64_t stride = 0;  ///< From row to row, in elements.
  std::int64_t part = 0;    ///< From part to part; 0: all parts are in one place.
};

void copy(const LayerWork& work, std::int64_t parts, std::int64_t width, const Parts& from, const Parts& to,
          bool add = false) {
  work.kernels.backend().run(CopyColumns{.rows = work.kernels.rows().all,
                                         .parts = parts,
                                         .width = width,
                                         .from = from.data,
                                         .from_stride = from.stride,
                                         .from_part = from.part,
                                         .to = to.data,
                                         .to_stride = to.stride,
                                         .to_part = to.part,
                                         .add = add});
}

/// The places of keys and values in rows of both.
struct KeysAndValues {
  KeysAndValues(const LayerWork& work, const Latents& sizes, void* kv)
      : plain{kv, kv_width(sizes.heads), sizes.heads.dim},
        rotated{offset(work, kv, sizes.plain), plain.stride, plain.part},
        values{offset(work, kv, key_width(sizes.heads)), plain.stride, 0} {}
  Parts plain;
  Parts rotated;
  Parts values;
};

void query_back(const LayerWork& work, const Latents& sizes) {
  DenseKernels& kernels = work.kernels;
  const LayerActivations& layer = work.layer;
  const SharedActivations& shared = work.shared;
  if (!sizes.has_rank()) {
    return kernels.backward(sizes.query(), layer.attention_normed, shared.d_q_rounded, shared.d_normed, true);
  }
  kernels.backward(sizes.query(), layer.latent_q_normed, shared.d_q_rounded, shared.d_latent);
  kernels.norm_backward({kernels.rows().all, sizes.latent.query_rank}, sizes.query_norm(), layer.latent_q,
                        layer.latent_q_inverse_rms, shared.d_latent);
  kernels.backward(sizes.product(0), layer.attention_normed, shared.d_latent, shared.d_normed, true);
}

}  // namespace

void latent_inputs(const LayerWork& work) {
  const Latents sizes(work);
  DenseKernels& kernels = work.kernels;
  const LayerActivations& layer = work.layer;
  const SharedActivations& shared = work.shared;
  const std::int64_t rows = kernels.rows().all;
  const std::int64_t heads = sizes.heads.heads;
  if (sizes.has_rank()) {
    kernels.forward(sizes.product(0), layer.attention_normed, layer.latent_q);
    kernels.norm_forward({rows, sizes.latent.query_rank}, sizes.query_norm(), layer.latent_q, layer.latent_q_normed,
                         layer.latent_q_inverse_rms);
  }
  kernels.forward(sizes.query(), sizes.has_rank() ? layer.latent_q_normed : layer.attention_normed, layer.q);
  rotate(work, layer.q, heads, sizes.heads.dim, sizes.latent.rotated, false);
  kernels.forward(sizes.kv_down(), layer.attention_normed, layer.latent_kv);
  kernels.norm_forward({rows, sizes.latent.kv_rank}, sizes.kv_norm(), layer.latent_kv, layer.latent_kv_normed,
                       layer.latent_kv_inverse_rms);
  kernels.forward(sizes.rotated(), layer.attention_normed, shared.rotated);
  rotate(work, shared.rotated, 1, sizes.latent.rotated, sizes.latent.rotated, false);
  const KeysAndValues to(work, sizes, layer.kv);
  kernels.forward(sizes.key_up(), layer.latent_kv_normed, shared.expanded);
  copy(work, heads, sizes.plain, {shared.expanded, heads * sizes.plain, sizes.plain}, to.plain);
  copy(work, heads, sizes.latent.rotated, {shared.rotated, sizes.latent.rotated, 0}, to.rotated);
  kernels.forward(sizes.value_up(), layer.latent_kv_normed, shared.expanded);
  copy(work, 1, output_width(sizes.heads), {shared.expanded, output_width(sizes.heads), 0}, to.values);
}

void latent_inputs_back(const LayerWork& work) {
  const Latents sizes(work);
  DenseKernels& kernels = work.kernels;
  const LayerActivations& layer = work.layer;
  const SharedActivations& shared = work.shared;
  const std::int64_t rows = kernels.rows().all;
  const std::int64_t heads = sizes.heads.heads;
  const std::int64_t rotated = sizes.latent.rotated;
  rotate(work, shared.d_q_rounded, heads, sizes.heads.dim, rotated, true);
  const KeysAndValues from(work, sizes, shared.d_kv_rounded);
  kernels.backend().fill_bytes(shared.rotated, 0, kernels.bytes_of(rows * rotated));
  copy(work, heads, rotated, from.rotated, {shared.rotated, rotated, 0}, true);
  rotate(work, shared.rotated, 1, rotated, rotated, true);
  copy(work, heads, sizes.plain, from.plain, {shared.expanded, heads * sizes.plain, sizes.plain});
  kernels.backward(sizes.key_up(), layer.latent_kv_normed, shared.expanded, shared.d_latent);
  copy(work, 1, output_width(sizes.heads), from.values, {shared.expanded, output_width(sizes.heads), 0});
  kernels.backward(sizes.value_up(), layer.latent_kv_normed, shared.expanded, shared.d_latent, true);
  kernels.norm_backward({rows, sizes.latent.kv_rank}, sizes.kv_norm(), layer.latent_kv, layer.latent_kv_inverse_rms,
                        shared.d_latent);
  kernels.backward(sizes.kv_down(), layer.attention_normed, shared.d_latent, shared.d_normed);
  kernels.backward(sizes.rotated(), layer.attention_normed, shared.rotated, shared.d_normed, true);
  query_back(work, sizes);
}

}  // namespace hdpsim::kernels::exec
