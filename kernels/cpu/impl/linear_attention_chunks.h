#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cpu/impl/kernel_table.h"
#include "kernels/cpu/impl/product.h"
#include "kernels/cpu/impl/vector.h"
#include "kernels/spec/linear_attention.h"

/// Gated linear attention, chunk by chunk (Yang et al. 2024, section 3.3). With b_i the sum of log decays from the
/// beginning of the chunk to token i and c its last token, S the state before the chunk:
///   o_i = exp(b_i) q_i S + sum over j <= i of exp(b_i - b_j) (q_i k_j) v_j
///   S'  = exp(b_c) S + sum over j of exp(b_c - b_j) k_j^T v_j
/// No exponent is above zero. What does not depend on the width of heads is a constant, so that one product serves all.
namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS {

struct LinearScratch {
  static constexpr std::int64_t widest = 256;
  static constexpr std::int64_t row = padded_row<widest>;  ///< Distance of tokens, and of rows of states.
  static constexpr std::int64_t score_row =
      padded_row<linear_chunk>;  ///< The same of pairs of tokens, and of what is transposed.
  static constexpr std::int64_t tokens = round_up(linear_chunk, strip);
  static constexpr std::int64_t token_floats = tokens * row;
  static constexpr std::int64_t state_floats = round_up(widest, strip) * row;
  static constexpr std::int64_t score_floats = tokens * score_row;
  static constexpr std::int64_t floats =
      11 * token_floats + 2 * widest * score_row + 3 * score_floats + 4 * state_floats + strip;

  float *q, *k, *v, *d_o;                                    ///< Rows of the chunk's tokens.
  float *q_decayed, *k_decayed, *v_decayed, *d_o_decayed;    ///< Times exp(b_i), exp(b_c - b_i), this and that again.
  float *o, *d_k, *d_v;                                      ///< Results: o, which is d_q in backward.
  float *k_columns, *v_columns;                              ///< [dim, tokens]
  float *decays, *scores, *d_scores;                         ///< [tokens, tokens]
  float *state, *d_state, *state_columns, *d_state_columns;  ///< [key_dim, value_dim] and transposed.
  float* factor;                                             ///< [strip], all exp(b_c).

  explicit LinearScratch(float* memory) {
    const auto take = [&](std::int64_t count) {
      float* const taken = memory;
      memory += count;
      return taken;
    };
    for (float** rows : {&q, &k, &v, &d_o, &q_decayed, &k_decayed, &v_decayed, &d_o_decayed, &o, &d_k, &d_v}) {
      *rows = take(token_floats);
    }
    for (float** columns : {&k_columns, &v_columns}) *columns = take(widest * score_row);
    for (float** pairs : {&decays, &scores, &d_scores}) *pairs = take(score_floats);
    for (float** states : {&state, &d_state, &state_columns, &d_state_columns}) *states = take(state_floats);
    factor = take(strip);
  }
};

/// C [rows, columns] of whole strips and panels, from `inner` products; see multiply().
template <Into into, std::int64_t a_row, std::int64_t a_inner, std::int64_t b_inner, std::int64_t c_row>
inline void linear_product(const float* a, std::int64_t rows, const float* b, std::int64_t columns, std::int64_t inner,
                           float* c, const float* row_factor = nullptr) {
  for (std::int64_t column = 0; column < columns; column += panel) {
    for (std::int64_t first = 0; first < rows; first += strip) {
      multiply<into, a_row, a_inner, b_inner, c_row>(a + first * a_row, b + column, inner, c + first * c_row + column,
                                                     row_factor);
    }
  }
}

/// [rows, columns], multiples of the width of vectors, to [columns, rows].
inline void linear_transpose(const float* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns,
                             float* to, std::int64_t to_row) {
  for (std::int64_t i = 0; i < rows; i += width) {
    for (std::int64_t j = 0; j < columns; j += width) {
      Vector block[width];
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < width; ++r) block[r] = load(from + (i + r) * from_row + j);
      transpose(block);
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < width; ++r) store(to + (j + r) * to_row + i, block[r]);
    }
  }
}

/// Rows [count, dim] of the caller to rows of scratch, zero behind them.
inline void linear_load(const float* from, std::int64_t stride, std::int64_t count, std::int64_t dim, float* to) {
  for (std::int64_t t = 0; t < LinearScratch::tokens; ++t) {
    for (std::int64_t i = 0; i < dim; i += width) {
      store(to + t * LinearScratch::row + i, t < count ? load(from + t * stride + i) : Vector{});
    }
  }
}
inline void linear_add(const float* from, std::int64_t count, std::int64_t dim, float* to, std::int64_t stride) {
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t i = 0; i < dim; i += width) {
      float* const at = to + t * stride + i;
      store(at, load(at) + load(from + t * LinearScratch::row + i));
    }
  }
}
/// A state between memory, [key_dim, value_dim], and scratch; null is zero.
inline void linear_load_state(const float* from, const LinearHeads& heads, float* to) {
  for (std::int64_t i = 0; i < heads.key_dim; ++i) {
    for (std::int64_t j = 0; j < heads.value_dim; j += width) {
      store(to + i * LinearScratch::row + j, from == nullptr ? Vector{} : load(from + i * heads.value_dim + j));
    }
  }
}
inline void linear_store_state(const float* from, const LinearHeads& heads, float* to) {
  for (std::int64_t i = 0; i < heads.key_dim; ++i) {
    for (std::int64_t j = 0; j < heads.value_dim; j += width) {
      store(to + i * heads.value_dim + j, load(from + i * LinearScratch::row + j));
    }
  }
}

/// The decays within one chunk.
struct ChunkDecays {
  std::int64_t count;                   ///< Tokens.
  double sums[linear_chunk] = {};       ///< b, in fp64: differences of large sums are factors.
  float from_begin[linear_chunk] = {};  ///< exp(b_i)
  float to_end[linear_chunk] = {};      ///< exp(b_c - b_i)
  float whole = 1;                      ///< exp(b_c)

  ChunkDecays(const float* log_decay, std::int64_t tokens) : count(tokens) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sums[i] = sum += static_cast<double>(log_decay[i]);
    for (std::int64_t i = 0; i < count; ++i) {
      from_begin[i] = static_cast<float>(std::exp(sums[i]));
      to_end[i] = static_cast<float>(std::exp(sum - sums[i]));
    }
    whole = static_cast<float>(std::exp(sum));
  }

  /// [tokens, tokens]: exp(b_i - b_j) for j <= i, else zero.
  void fill(float* decays) const {
    for (std::int64_t i = 0; i < LinearScratch::tokens; ++i) {
      float* const row = decays + i * LinearScratch::score_row;
      const std::int64_t seen = i < count ? i + 1 : 0;
      for (std::int64_t j = 0; j < seen; ++j) {
        row[j] = static_cast<float>(sums[i] - sums[j]) * log2_e;
      }
      for (std::int64_t j = seen; j < LinearScratch::score_row; ++j) row[j] = -infinity;
      for (std::int64_t j = 0; j < LinearScratch::score_row; j += width) store(row + j, exp2(load(row + j)));
    }
  }
};

/// Rows times a factor each.
inline void linear_scale(const float* from, const float* factors, std::int64_t count, std::int64_t dim, float* to) {
  for (std::int64_t t = 0; t < LinearScratch::tokens; ++t) {
    const Vector factor = broadcast(t < count ? factors[t] : 0);
    for (std::int64_t i = 0; i < dim; i += width) {
      store(to + t * LinearScratch::row + i, load(from + t * LinearScratch::row + i) * factor);
    }
  }
}
/// scores = scores o decays.
inline void linear_decay(float* scores, const float* decays) {
  for (std::int64_t i = 0; i < LinearScratch::score_floats; i += width) {
    store(scores + i, load(scores + i) * load(decays + i));
  }
}
inline float linear_dot(const float* a, const float* b, std::int64_t count) {
  Vector sum{};
  for (std::int64_t i = 0; i < count; i += width) sum = multiply_add(load(a + i), load(b + i), sum);
  return sum_of(sum);
}

/// The first element of a row of the caller's tensor, `column` elements into it.
inline const float* linear_row(const Rows<const void>& tensor, std::int64_t row, std::int64_t column) {
  return static_cast<const float*>(tensor.data) + row * tensor.stride + column;
}

/// S' = exp(b_c) S + k_decayed^T v, or the same of gradients.
inline void linear_advance(const LinearScratch& scratch, const ChunkDecays& decays, const LinearHeads& heads,
                           const float* keys, const float* values, float* state) {
  constexpr std::int64_t row = LinearScratch::row;
  for (int i = 0; i < strip; ++i) scratch.factor[i] = decays.whole;
  linear_product<Into::rescale, 1, row, row, row>(keys, heads.key_dim, values, heads.value_dim, decays.count, state,
                                                  scratch.factor);
}

/// Rows [begin, begin + count) of one head; the state in scratch moves on.
inline void linear_forward_chunk(const LinearAttentionForward& op, const LinearScratch& scratch, std::int64_t head,
                                 std::int64_t begin, std::int64_t count) {
  constexpr std::int64_t row = LinearScratch::row;
  constexpr std::int64_t score_row = LinearScratch::score_row;
  const LinearHeads& heads = op.heads;
  const std::int64_t key_column = head / (heads.heads / heads.key_heads) * heads.key_dim;
  const std::int64_t value_column = head * heads.value_dim;
  const std::int64_t rows = round_up(count, strip);
  linear_load(linear_row(op.q, begin, key_column), op.q.stride, count, heads.key_dim, scratch.q);
  linear_load(linear_row(op.k, begin, key_column), op.k.stride, count, heads.key_dim, scratch.k);
  linear_load(linear_row(op.v, begin, value_column), op.v.stride, count, heads.value_dim, scratch.v);
  const ChunkDecays decays(op.log_decay + head * op.decay_stride + begin, count);
  decays.fill(scratch.decays);
  linear_scale(scratch.q, decays.from_begin, count, heads.key_dim, scratch.q_decayed);
  linear_scale(scratch.k, decays.to_end, count, heads.key_dim, scratch.k_decayed);

  linear_transpose(scratch.k, row, linear_chunk, heads.key_dim, scratch.k_columns, score_row);
  linear_product<Into::overwrite, row, 1, score_row, score_row>(scratch.q, rows, scratch.k_columns, linear_chunk,
                                                                heads.key_dim, scratch.scores);
  linear_decay(scratch.scores, scratch.decays);
  linear_product<Into::overwrite, score_row, 1, row, row>(scratch.scores, rows, scratch.v, heads.value_dim, count,
                                                          scratch.o);
  linear_product<Into::add, row, 1, row, row>(scratch.q_decayed, rows, scratch.state, heads.value_dim, heads.key_dim,
                                              scratch.o);
  for (std::int64_t t = 0; t < count; ++t) {
    float* const to = static_cast<float*>(op.o.data) + (begin + t) * op.o.stride + value_column;
    for (std::int64_t i = 0; i < heads.value_dim; i += width) store(to + i, load(scratch.o + t * row + i));
  }
  linear_advance(scratch, decays, heads, scratch.k_decayed, scratch.v, scratch.state);
}

inline void linear_attention_forward(const LinearAttentionForward& op, const Workspace& workspace) {
  const LinearScratch scratch(workspace.scratch);
  for (std::int64_t i = 0; i < LinearScratch::floats; ++i) workspace.scratch[i] = 0;  // padding is read, too
  const std::int64_t state_size = op.heads.key_dim * op.heads.value_dim;
  const std::int64_t chunks = linear_chunks(op.documents);
  std::int64_t first_chunk = 0;
  for (std::size_t number = 0; number < op.documents.size(); ++number) {
    const Document& document = op.documents[number];
    for (std::int64_t head = 0; head < op.heads.heads; ++head) {
      const std::int64_t state = (static_cast<std::int64_t>(number) * op.heads.heads + head) * state_size;
      linear_load_state(op.initial == nullptr ? nullptr : op.initial + state, op.heads, scratch.state);
      for (std::int64_t t = 0; t < document.tokens; t += linear_chunk) {
        workspace.progress(workspace.progress_state);
        if (op.chunk_states != nullptr) {
          const std::int64_t chunk = head * chunks + first_chunk + t / linear_chunk;
          linear_store_state(scratch.state, op.heads, op.chunk_states + chunk * state_size);
        }
        linear_forward_chunk(op, scratch, head, document.begin + t, least(linear_chunk, document.tokens - t));
      }
      if (op.final_states != nullptr) linear_store_state(scratch.state, op.heads, op.final_states + state);
    }
    first_chunk += (document.tokens + linear_chunk - 1) / linear_chunk;
  }
}

/// Gradients of b_i, which meet where a token's own decay ends: with everything in o_i scaled by exp(b_i), and what
/// token i gives to others by exp(-b_i), d b_i = q_i dq_i - k_i dk_i; of the last, also <dS', S'>.
inline void linear_decay_gradient(const LinearScratch& scratch, const LinearHeads& heads, std::int64_t count,
                                  double of_state, float* d_log_decay) {
  double sum = of_state;
  for (std::int64_t t = count - 1; t >= 0; --t) {
    const std::int64_t at = t * LinearScratch::row;
    sum += static_cast<double>(linear_dot(scratch.q + at, scratch.o + at, heads.key_dim)) -
           static_cast<double>(linear_dot(scratch.k + at, scratch.d_k + at, heads.key_dim));
    d_log_decay[t] += static_cast<float>(sum);
  }
}

/// The gradients of one chunk, whose state before it is in scratch; that of the state goes back by the chunk.
inline void linear_backward_chunk(const LinearAttentionBackward& op, const LinearScratch& scratch, std::int64_t head,
                                  std::int64_t begin, std::int64_t count) {
  constexpr std::int64_t row = LinearScratch::row;
  constexpr std::int64_t score_row = LinearScratch::score_row;
  const LinearHeads& heads = op.heads;
  const std::int64_t key_column = head / (heads.heads / heads.key_heads) * heads.key_dim;
  const std::int64_t value_column = head * heads.value_dim;
  const std::int64_t rows = round_up(count, strip);
  linear_load(linear_row(op.q, begin, key_column), op.q.stride, count, heads.key_dim, scratch.q);
  linear_load(linear_row(op.k, begin, key_column), op.k.stride, count, heads.key_dim, scratch.k);
  linear_load(linear_row(op.v, begin, value_column), op.v.stride, count, heads.value_dim, scratch.v);
  linear_load(linear_row(op.d_o, begin, value_column), op.d_o.stride, count, heads.value_dim, scratch.d_o);
  const ChunkDecays decays(op.log_decay + head * op.decay_stride + begin, count);
  decays.fill(scratch.decays);
  linear_scale(scratch.q, decays.from_begin, count, heads.key_dim, scratch.q_decayed);
  linear_scale(scratch.d_o, decays.from_begin, count, heads.value_dim, scratch.d_o_decayed);
  linear_scale(scratch.k, decays.to_end, count, heads.key_dim, scratch.k_decayed);
  linear_scale(scratch.v, decays.to_end, count, heads.value_dim, scratch.v_decayed);
  linear_transpose(scratch.k, row, linear_chunk, heads.key_dim, scratch.k_columns, score_row);
  linear_transpose(scratch.v, row, linear_chunk, heads.value_dim, scratch.v_columns, score_row);
  linear_transpose(scratch.state, row, heads.key_dim, heads.value_dim, scratch.state_columns, row);
  linear_transpose(scratch.d_state, row, heads.key_dim, heads.value_dim, scratch.d_state_columns, row);

  linear_product<Into::overwrite, row, 1, score_row, score_row>(scratch.q, rows, scratch.k_columns, linear_chunk,
                                                                heads.key_dim, scratch.scores);
  linear_decay(scratch.scores, scratch.decays);
  linear_product<Into::overwrite, row, 1, score_row, score_row>(scratch.d_o, rows, scratch.v_columns, linear_chunk,
                                                                heads.value_dim, scratch.d_scores);
  linear_decay(scratch.d_scores, scratch.decays);

  // First what the state behind the chunk gives to values; <dS', S'> = exp(b_c) <dS', S> + sum of v_j times that.
  linear_product<Into::overwrite, row, 1, row, row>(scratch.k_decayed, rows, scratch.d_state, heads.value_dim,
                                                    heads.key_dim, scratch.d_v);
  double of_state = 0;
  for (std::int64_t i = 0; i < heads.key_dim; ++i) {
    of_state += static_cast<double>(linear_dot(scratch.d_state + i * row, scratch.state + i * row, heads.value_dim));
  }
  of_state *= static_cast<double>(decays.whole);
  for (std::int64_t t = 0; t < count; ++t) {
    of_state += static_cast<double>(linear_dot(scratch.d_v + t * row, scratch.v + t * row, heads.value_dim));
  }
  linear_product<Into::add, 1, score_row, row, row>(scratch.scores, rows, scratch.d_o, heads.value_dim, count,
                                                    scratch.d_v);
  linear_product<Into::overwrite, row, 1, row, row>(scratch.v_decayed, rows, scratch.d_state_columns, heads.key_dim,
                                                    heads.value_dim, scratch.d_k);
  linear_product<Into::add, 1, score_row, row, row>(scratch.d_scores, rows, scratch.q, heads.key_dim, count,
                                                    scratch.d_k);
  linear_product<Into::overwrite, row, 1, row, row>(scratch.d_o_decayed, rows, scratch.state_columns, heads.key_dim,
                                                    heads.value_dim, scratch.o);
  linear_product<Into::add, score_row, 1, row, row>(scratch.d_scores, rows, scratch.k, heads.key_dim, count, scratch.o);

  linear_add(scratch.o, count, heads.key_dim, op.d_q.data + begin * op.d_q.stride + key_column, op.d_q.stride);
  linear_add(scratch.d_k, count, heads.key_dim, op.d_k.data + begin * op.d_k.stride + key_column, op.d_k.stride);
  linear_add(scratch.d_v, count, heads.value_dim, op.d_v.data + begin * op.d_v.stride + value_column, op.d_v.stride);
  linear_decay_gradient(scratch, heads, count, of_state, op.d_log_decay + head * op.decay_stride + begin);
  linear_advance(scratch, decays, heads, scratch.q_decayed, scratch.d_o, scratch.d_state);
}

inline void linear_attention_backward(const LinearAttentionBackward& op, const Workspace& workspace) {
  const LinearScratch scratch(workspace.scratch);
  for (std::int64_t i = 0; i < LinearScratch::floats; ++i) workspace.scratch[i] = 0;  // padding is read, too
  const std::int64_t state_size = op.heads.key_dim * op.heads.value_dim;
  const std::int64_t chunks = linear_chunks(op.documents);
  std::int64_t first_chunk = 0;
  for (std::size_t number = 0; number < op.documents.size(); ++number) {
    const Document& document = op.documents[number];
    const std::int64_t of_document = (document.tokens + linear_chunk - 1) / linear_chunk;
    for (std::int64_t head = 0; head < op.heads.heads; ++head) {
      const std::int64_t state = (static_cast<std::int64_t>(number) * op.heads.heads + head) * state_size;
      linear_load_state(op.d_final == nullptr ? nullptr : op.d_final + state, op.heads, scratch.d_state);
      for (std::int64_t chunk = of_document - 1; chunk >= 0; --chunk) {
        workspace.progress(workspace.progress_state);
        const std::int64_t t = chunk * linear_chunk;
        linear_load_state(op.chunk_states + (head * chunks + first_chunk + chunk) * state_size, op.heads,
                          scratch.state);
        linear_backward_chunk(op, scratch, head, document.begin + t, least(linear_chunk, document.tokens - t));
      }
      if (op.d_initial != nullptr) linear_store_state(scratch.d_state, op.heads, op.d_initial + state);
    }
    first_chunk += of_document;
  }
}

}  // namespace hdpsim::kernels::cpu::HDPSIM_CPU_KERNELS
