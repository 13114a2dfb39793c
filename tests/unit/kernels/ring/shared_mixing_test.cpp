#include "kernels/ring/shared_mixing.h"

#include <cmath>
#include <mutex>
#include <numeric>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_linear_attention.h"
#include "kernels/transport/in_process.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"

namespace hdpsim::kernels {
namespace {

constexpr LinearHeads heads{.heads = 2, .key_heads = 2, .key_dim = 32, .value_dim = 32};
constexpr std::int64_t width = 64;
const std::vector<float> decays = {-0.02F, -0.3F};

/// q, k, v and the gradient of o of packed documents, and what plain fp64 makes of them.
struct Whole {
  explicit Whole(const std::vector<std::int64_t>& lengths) {
    for (const std::int64_t length : lengths) {
      documents.push_back({rows, length});
      rows += length;
    }
    const auto count = static_cast<std::size_t>(rows * width);
    q = test::random_tensor(1, count, 0.4);
    k = test::random_tensor(2, count, 0.4);
    v = test::random_tensor(3, count);
    d_o = test::random_tensor(4, count);
    const std::vector<double> wide_q = test::to_double(q);
    const std::vector<double> wide_k = test::to_double(k);
    const std::vector<double> wide_v = test::to_double(v);
    std::vector<double> log_decay;
    for (const float decay : decays) log_decay.insert(log_decay.end(), static_cast<std::size_t>(rows), decay);
    const reference::LinearAttentionInput input{
        .heads = heads, .documents = documents, .q = wide_q, .k = wide_k, .v = wide_v, .log_decay = log_decay};
    o = reference::linear_attention_forward(input).o;
    gradients = reference::linear_attention_backward(input, test::to_double(d_o));
  }
  std::vector<Document> documents;
  std::int64_t rows = 0;
  std::vector<float> q, k, v, d_o;
  std::vector<double> o;
  reference::LinearAttentionGradients gradients;
};

/// The rows of a rank, in its order.
std::vector<std::int64_t> rows_of(const ShardedDocuments& cut, int position, const Whole& whole) {
  std::vector<std::int64_t> rows;
  for (const Piece& piece : cut.pieces(position)) {
    for (std::int64_t i = 0; i < piece.rows; ++i) {
      rows.push_back(whole.documents[static_cast<std::size_t>(piece.document)].begin + piece.begin + i);
    }
  }
  return rows;
}

template <class Value>
std::vector<float> picked(const std::vector<Value>& all, const std::vector<std::int64_t>& rows) {
  std::vector<float> some;
  for (const std::int64_t row : rows) {
    for (std::int64_t i = 0; i < width; ++i)
      some.push_back(static_cast<float>(all[static_cast<std::size_t>(row * width + i)]));
  }
  return some;
}

TEST_CASE("mixing over ranks is that of whole documents, forward and backward", "[ring][mixing]") {
  const std::vector<std::int64_t> lengths = {150, 3, 0, 1, 70};
  const Whole whole(lengths);
  for (const int ranks : {1, 2, 3, 5}) {
    INFO(ranks << " ranks");
    std::mutex mutex;
    double worst = 0;
    run_ranks(ranks, [&](Transport& transport) {
      const auto backend = make_cpu_backend();
      const ShardedDocuments cut(lengths, ranks);
      std::vector<int> members(static_cast<std::size_t>(ranks));
      std::iota(members.begin(), members.end(), 0);
      const std::vector<std::int64_t> rows = rows_of(cut, transport.rank(), whole);
      const std::vector<float> q = picked(whole.q, rows);
      const std::vector<float> k = picked(whole.k, rows);
      const std::vector<float> v = picked(whole.v, rows);
      const std::vector<float> d_o = picked(whole.d_o, rows);
      std::vector<float> o(q.size());
      std::vector<float> d_q(q.size(), 7);
      std::vector<float> d_k(q.size(), 7);
      std::vector<float> d_v(q.size(), 7);
      std::vector<float> states(static_cast<std::size_t>(heads.heads * mixing_chunks(cut, transport.rank()) * 32 * 32));
      SharedMixing mixing(*backend, transport);
      mixing.join({&cut, &members, transport.rank()}, {}, heads, decays);
      const auto run = [&](const auto& op) {
        if constexpr (requires { op.o; }) {
          mixing.forward(op);
        } else {
          mixing.backward(op);
        }
        if (!mixing.is_shared()) return;
        mixing.exchange();
        mixing.wait();
        mixing.finish(op);
      };
      run(MixingForward{
          .q = q.data(), .k = k.data(), .v = v.data(), .stride = width, .o = o.data(), .chunk_states = states.data()});
      run(MixingBackward{.q = q.data(),
                         .k = k.data(),
                         .v = v.data(),
                         .stride = width,
                         .d_o = d_o.data(),
                         .chunk_states = states.data(),
                         .d_q = d_q.data(),
                         .d_k = d_k.data(),
                         .d_v = d_v.data()});
      const std::lock_guard lock(mutex);
      for (const auto& [found, expected] :
           {std::pair(&o, &whole.o), std::pair(&d_q, &whole.gradients.d_q), std::pair(&d_k, &whole.gradients.d_k),
            std::pair(&d_v, &whole.gradients.d_v)}) {
        worst = std::max(worst, test::relative_error(*found, picked(*expected, rows), 1));
      }
    });
    // fp32 sums of some hundred products.
    CHECK(worst <= 1e-5);
  }
}

}  // namespace
}  // namespace hdpsim::kernels
