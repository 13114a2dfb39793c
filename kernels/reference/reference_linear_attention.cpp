#include "kernels/reference/reference_linear_attention.h"

#include <cmath>
#include <cstddef>

namespace hdpsim::kernels::reference {
namespace {

/// One head of one document: where its tokens and its state lie in the tensors.
struct Sequence {
  const LinearAttentionInput& input;
  const Document& document;
  std::size_t key_dim, value_dim;
  std::size_t number;  ///< Place of its state among all.
  std::int64_t head;

  Sequence(const LinearAttentionInput& of, std::size_t document_number, std::int64_t of_head)
      : input(of),
        document(of.documents[document_number]),
        key_dim(static_cast<std::size_t>(of.heads.key_dim)),
        value_dim(static_cast<std::size_t>(of.heads.value_dim)),
        number(document_number * static_cast<std::size_t>(of.heads.heads) + static_cast<std::size_t>(of_head)),
        head(of_head) {}

  /// First elements of token t's query and key, value and output, and its decay.
  [[nodiscard]] std::size_t key(std::int64_t t) const {
    const std::int64_t key_head = head / (input.heads.heads / input.heads.key_heads);
    return static_cast<std::size_t>((document.begin + t) * input.heads.key_heads + key_head) * key_dim;
  }
  [[nodiscard]] std::size_t value(std::int64_t t) const {
    return static_cast<std::size_t>((document.begin + t) * input.heads.heads + head) * value_dim;
  }
  [[nodiscard]] std::size_t decay(std::int64_t t) const {
    return static_cast<std::size_t>(head * input.rows() + document.begin + t);
  }
  [[nodiscard]] std::size_t state() const { return number * key_dim * value_dim; }

  /// The state before the first token.
  [[nodiscard]] std::vector<double> initial() const {
    if (input.initial.empty()) return std::vector<double>(key_dim * value_dim, 0);
    const auto from = input.initial.begin() + static_cast<std::ptrdiff_t>(state());
    return {from, from + static_cast<std::ptrdiff_t>(key_dim * value_dim)};
  }
  /// The state behind token t, given that before it.
  void advance(std::vector<double>& s, std::int64_t t) const {
    const double factor = std::exp(input.log_decay[decay(t)]);
    for (std::size_t i = 0; i < key_dim; ++i) {
      for (std::size_t j = 0; j < value_dim; ++j) {
        s[i * value_dim + j] = factor * s[i * value_dim + j] + input.k[key(t) + i] * input.v[value(t) + j];
      }
    }
  }
};

template <class Visit>
void for_each_sequence(const LinearAttentionInput& input, const Visit& visit) {
  for (std::size_t document = 0; document < input.documents.size(); ++document) {
    for (std::int64_t head = 0; head < input.heads.heads; ++head) visit(Sequence(input, document, head));
  }
}

std::size_t states_of(const LinearAttentionInput& input) {
  return input.documents.size() *
         static_cast<std::size_t>(input.heads.heads * input.heads.key_dim * input.heads.value_dim);
}

}  // namespace

LinearAttentionResult linear_attention_forward(const LinearAttentionInput& input) {
  LinearAttentionResult result{std::vector<double>(input.v.size(), 0), std::vector<double>(states_of(input), 0)};
  for_each_sequence(input, [&](const Sequence& sequence) {
    std::vector<double> s = sequence.initial();
    for (std::int64_t t = 0; t < sequence.document.tokens; ++t) {
      sequence.advance(s, t);
      for (std::size_t i = 0; i < sequence.key_dim; ++i) {
        for (std::size_t j = 0; j < sequence.value_dim; ++j) {
          result.o[sequence.value(t) + j] += input.q[sequence.key(t) + i] * s[i * sequence.value_dim + j];
        }
      }
    }
    for (std::size_t i = 0; i < s.size(); ++i) result.final_states[sequence.state() + i] = s[i];
  });
  return result;
}

LinearAttentionGradients linear_attention_backward(const LinearAttentionInput& input, std::span<const double> d_o,
                                                   std::span<const double> d_final) {
  LinearAttentionGradients gradients{std::vector<double>(input.q.size(), 0), std::vector<double>(input.k.size(), 0),
                                     std::vector<double>(input.v.size(), 0),
                                     std::vector<double>(input.log_decay.size(), 0),
                                     std::vector<double>(states_of(input), 0)};
  for_each_sequence(input, [&](const Sequence& sequence) {
    std::vector<std::vector<double>> states = {sequence.initial()};  // before each token, and behind the last
    for (std::int64_t t = 0; t < sequence.document.tokens; ++t) {
      states.push_back(states.back());
      sequence.advance(states.back(), t);
    }
    std::vector<double> d_s(sequence.key_dim * sequence.value_dim, 0);
    for (std::size_t i = 0; i < d_s.size() && !d_final.empty(); ++i) d_s[i] = d_final[sequence.state() + i];
    for (std::int64_t t = sequence.document.tokens - 1; t >= 0; --t) {
      const std::size_t key = sequence.key(t);
      const std::size_t value = sequence.value(t);
      const std::vector<double>& before = states[static_cast<std::size_t>(t)];
      const std::vector<double>& behind = states[static_cast<std::size_t>(t) + 1];
      const double factor = std::exp(input.log_decay[sequence.decay(t)]);
      for (std::size_t i = 0; i < sequence.key_dim; ++i) {
        for (std::size_t j = 0; j < sequence.value_dim; ++j) {
          double& gradient = d_s[i * sequence.value_dim + j];
          gradient += input.q[key + i] * d_o[value + j];
          gradients.d_q[key + i] += behind[i * sequence.value_dim + j] * d_o[value + j];
          gradients.d_k[key + i] += gradient * input.v[value + j];
          gradients.d_v[value + j] += gradient * input.k[key + i];
          gradients.d_log_decay[sequence.decay(t)] += factor * gradient * before[i * sequence.value_dim + j];
          gradient *= factor;
        }
      }
    }
    for (std::size_t i = 0; i < d_s.size(); ++i) gradients.d_initial[sequence.state() + i] = d_s[i];
  });
  return gradients;
}

}  // namespace hdpsim::kernels::reference
