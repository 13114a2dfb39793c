#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_linear_attention.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"

using namespace hdpsim::kernels;
using namespace hdpsim::test;

namespace {

// fp32 sums of some hundred products. Gradients of decays are sums over the rest of a chunk of differences of equal
// terms.
constexpr double linear_output_error = 5e-6;
constexpr double linear_gradient_error = 2e-5;

/// Random documents with rows of none before, between and behind them.
struct LinearProblem {
  LinearHeads heads;
  std::vector<Document> documents;
  std::int64_t rows = 2;
  std::vector<float> q, k, v, log_decay, d_o, initial, d_final;

  /// Log decays are -|normal| times `decay`.
  LinearProblem(std::uint64_t seed, const LinearHeads& of_heads, const std::vector<std::int64_t>& lengths, double decay)
      : heads(of_heads) {
    for (const std::int64_t tokens : lengths) {
      documents.push_back({rows, tokens});
      rows += tokens + 1;
    }
    // Scores of the size of one.
    const double deviation = std::pow(static_cast<double>(heads.key_dim), -0.25);
    q = random_tensor(seed, size(key_width()), deviation);
    k = random_tensor(seed + 1, size(key_width()), deviation);
    v = random_tensor(seed + 2, size(value_width()));
    log_decay = random_tensor(seed + 3, size(heads.heads), decay);
    for (float& value : log_decay) value = -std::abs(value);
    d_o = random_tensor(seed + 4, size(value_width()));
    const auto states = static_cast<std::size_t>(std::ssize(documents) * heads.heads * state_size());
    initial = random_tensor(seed + 5, states);
    d_final = random_tensor(seed + 6, states);
  }
  [[nodiscard]] std::size_t size(std::int64_t width) const { return static_cast<std::size_t>(rows * width); }
  [[nodiscard]] std::int64_t key_width() const { return heads.key_heads * heads.key_dim; }
  [[nodiscard]] std::int64_t value_width() const { return heads.heads * heads.value_dim; }
  [[nodiscard]] std::int64_t state_size() const { return heads.key_dim * heads.value_dim; }
  [[nodiscard]] bool has(std::int64_t row) const {
    return std::any_of(documents.begin(), documents.end(), [row](const Document& document) {
      return row >= document.begin && row < document.begin + document.tokens;
    });
  }
};

/// What a backend makes of it. Rows of no document are poison.
struct LinearRun {
  const LinearProblem& problem;
  GuardedRows q, k, v, o, d_o, d_q, d_k, d_v;
  std::vector<float> final_states, chunk_states, d_log_decay, d_initial;

  explicit LinearRun(const LinearProblem& of)
      : problem(of),
        q(of.rows, of.key_width()),
        k(of.rows, of.key_width()),
        v(of.rows, of.value_width()),
        o(of.rows, of.value_width()),
        d_o(of.rows, of.value_width()),
        d_q(of.rows, of.key_width()),
        d_k(of.rows, of.key_width()),
        d_v(of.rows, of.value_width()),
        final_states(of.initial.size(), NAN),
        chunk_states(static_cast<std::size_t>(of.heads.heads * linear_chunks(of.documents) * of.state_size()), NAN),
        d_log_decay(of.log_decay.size(), 0),
        d_initial(of.initial.size(), NAN) {
    for (const Document& document : of.documents) {
      q.set_rows(document.begin, document.tokens, of.q);
      k.set_rows(document.begin, document.tokens, of.k);
      v.set_rows(document.begin, document.tokens, of.v);
      d_o.set_rows(document.begin, document.tokens, of.d_o);
      for (GuardedRows* gradient : {&d_q, &d_k, &d_v}) gradient->fill_rows(document.begin, document.tokens, 0);
    }
  }
  void forward(Backend& backend) { forward(backend, problem.documents, problem.initial.data()); }
  void forward(Backend& backend, std::span<const Document> documents, const float* initial) {
    backend.run(LinearAttentionForward{.heads = problem.heads,
                                       .documents = documents,
                                       .q = {q.data(), q.stride()},
                                       .k = {k.data(), k.stride()},
                                       .v = {v.data(), v.stride()},
                                       .log_decay = problem.log_decay.data(),
                                       .decay_stride = problem.rows,
                                       .o = {o.data(), o.stride()},
                                       .initial = initial,
                                       .final_states = final_states.data(),
                                       .chunk_states = chunk_states.data()});
  }
  void backward(Backend& backend) { backward(backend, problem.documents, problem.d_final.data()); }
  void backward(Backend& backend, std::span<const Document> documents, const float* d_final) {
    backend.run(LinearAttentionBackward{.heads = problem.heads,
                                        .documents = documents,
                                        .q = {q.data(), q.stride()},
                                        .k = {k.data(), k.stride()},
                                        .v = {v.data(), v.stride()},
                                        .d_o = {d_o.data(), d_o.stride()},
                                        .log_decay = problem.log_decay.data(),
                                        .decay_stride = problem.rows,
                                        .chunk_states = chunk_states.data(),
                                        .d_final = d_final,
                                        .d_q = {d_q.data(), d_q.stride()},
                                        .d_k = {d_k.data(), d_k.stride()},
                                        .d_v = {d_v.data(), d_v.stride()},
                                        .d_log_decay = d_log_decay.data(),
                                        .d_initial = d_initial.data()});
  }
  [[nodiscard]] bool kept_to_its_rows() const {
    const auto used = [this](std::int64_t row) { return problem.has(row); };
    return o.untouched_except(used) && d_q.untouched_except(used) && d_k.untouched_except(used) &&
           d_v.untouched_except(used);
  }
};

struct LinearTruth {
  reference::LinearAttentionResult forward;
  reference::LinearAttentionGradients gradients;

  explicit LinearTruth(const LinearProblem& problem) {
    const auto q = to_double(problem.q);
    const auto k = to_double(problem.k);
    const auto v = to_double(problem.v);
    const auto log_decay = to_double(problem.log_decay);
    const auto initial = to_double(problem.initial);
    const reference::LinearAttentionInput input{problem.heads, problem.documents, q, k, v, log_decay, initial};
    forward = reference::linear_attention_forward(input);
    gradients = reference::linear_attention_backward(input, to_double(problem.d_o), to_double(problem.d_final));
  }
};

template <class T>
std::vector<T> rows_of(const std::vector<T>& dense, const Document& document, std::int64_t width) {
  return {dense.begin() + document.begin * width, dense.begin() + (document.begin + document.tokens) * width};
}

void check_run(const LinearProblem& problem, const LinearRun& run, const LinearTruth& truth) {
  for (const Document& document : problem.documents) {
    INFO(problem.heads.heads << "/" << problem.heads.key_heads << " heads of " << problem.heads.key_dim << " x "
                             << problem.heads.value_dim << ", " << document.tokens << " tokens");
    const auto check = [&](const GuardedRows& found, const std::vector<double>& right, std::int64_t width,
                           double error) {
      CHECK(relative_error(found.dense(document.begin, document.tokens), rows_of(right, document, width), 1) <= error);
    };
    check(run.o, truth.forward.o, problem.value_width(), linear_output_error);
    check(run.d_q, truth.gradients.d_q, problem.key_width(), linear_gradient_error);
    check(run.d_k, truth.gradients.d_k, problem.key_width(), linear_gradient_error);
    check(run.d_v, truth.gradients.d_v, problem.value_width(), linear_gradient_error);
  }
  CHECK(relative_error(run.final_states, truth.forward.final_states, 1) <= linear_output_error);
  CHECK(relative_error(run.d_initial, truth.gradients.d_initial, 1) <= linear_gradient_error);
  CHECK(relative_error(run.d_log_decay, truth.gradients.d_log_decay, 1) <= linear_gradient_error);
  CHECK(run.kept_to_its_rows());
}

void check_problem(const LinearProblem& problem) {
  const LinearTruth truth(problem);
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set));
    const auto backend = make_cpu_backend(set);
    LinearRun run(problem);
    run.forward(*backend);
    run.backward(*backend);
    check_run(problem, run, truth);
  }
}

}  // namespace

TEST_CASE("linear attention in chunks is what it is token by token, forward and backward", "[linear]") {
  const std::vector<std::int64_t> lengths = {1, 63, 64, 65, 0, 200};
  SECTION("a state of 64 x 64") {
    check_problem({1, {2, 2, 64, 64}, lengths, 0.1});
  }
  SECTION("heads that share keys, and values narrower than keys") {
    check_problem({2, {4, 2, 128, 64}, lengths, 0.1});
  }
  SECTION("values wider than keys") {
    check_problem({3, {2, 1, 32, 128}, lengths, 0.1});
  }
  SECTION("the widest") {
    check_problem({4, {1, 1, 256, 256}, {70}, 0.1});
  }
}

TEST_CASE("decays from none to such as leave nothing agree with fp64", "[linear]") {
  for (const double decay : {0.0, 1e-3, 1.0, 50.0}) {
    INFO("decay " << decay);
    check_problem({5, {2, 1, 64, 64}, {150}, decay});
  }
  SECTION("a document that forgets all at once in the middle of a chunk, and goes on") {
    LinearProblem problem(6, {1, 1, 64, 64}, {130}, 0.01);
    problem.log_decay[static_cast<std::size_t>(problem.documents[0].begin + 20)] = -2000;
    check_problem(problem);
  }
}

TEST_CASE("random documents agree with fp64", "[linear][property]") {
  for (std::uint64_t seed = 400; seed < 406; ++seed) {
    std::mt19937_64 engine(seed);
    std::vector<std::int64_t> lengths;
    for (std::int64_t left = random_between(engine, 1, 5); left > 0; --left) {
      lengths.push_back(random_between(engine, 0, 300));
    }
    const std::int64_t key_heads = random_between(engine, 1, 2);
    const LinearHeads heads{key_heads * random_between(engine, 1, 2), key_heads, 32 * random_between(engine, 1, 4),
                            32 * random_between(engine, 1, 4)};
    INFO("seed " << seed);
    check_problem({seed, heads, lengths, 0.05 * static_cast<double>(random_between(engine, 0, 10))});
  }
}

TEST_CASE("a document in two parts that hand on the state is the whole document", "[linear]") {
  const LinearProblem problem(7, {2, 1, 64, 64}, {170}, 0.02);
  const LinearTruth truth(problem);
  const Document whole = problem.documents[0];
  const Document first{whole.begin, 100};
  const Document second{whole.begin + 100, 70};
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set));
    const auto backend = make_cpu_backend(set);
    LinearRun run(problem);
    LinearRun behind(problem);
    run.forward(*backend, {&first, 1}, problem.initial.data());
    behind.forward(*backend, {&second, 1}, run.final_states.data());
    behind.backward(*backend, {&second, 1}, problem.d_final.data());
    run.backward(*backend, {&first, 1}, behind.d_initial.data());
    CHECK(relative_error(behind.final_states, truth.forward.final_states, 1) <= linear_output_error);
    CHECK(relative_error(run.d_initial, truth.gradients.d_initial, 1) <= linear_gradient_error);
    CHECK(relative_error(behind.o.dense(second.begin, 70), rows_of(truth.forward.o, second, problem.value_width()),
                         1) <= linear_output_error);
    CHECK(relative_error(run.d_k.dense(first.begin, 100), rows_of(truth.gradients.d_k, first, problem.key_width()),
                         1) <= linear_gradient_error);
  }
}

TEST_CASE("what linear attention does not take is refused by name", "[linear]") {
  const auto backend = make_cpu_backend();
  LinearAttentionForward op{.heads = {2, 1, 48, 64},
                            .documents = {},
                            .q = {nullptr, 64},
                            .k = {nullptr, 64},
                            .v = {nullptr, 128},
                            .o = {nullptr, 128}};
  CHECK_THROWS_WITH(backend->run(op),
                    "linear attention: states of 48 x 64 are not supported; multiples of 32 up to 256 are");
  op.heads = {3, 2, 64, 64};
  CHECK_THROWS_WITH(backend->run(op), "linear attention: 2 heads of keys do not divide 3 heads");
  op.heads = {3, 1, 64, 64};
  CHECK_THROWS_WITH(backend->run(op), "linear attention: a row of values does not fit in its stride");
  op.heads = {2, 1, 64, 64};
  const Document sharing[] = {{0, 5}, {4, 5}};
  op.documents = sharing;
  CHECK_THROWS_WITH(backend->run(op), "linear attention: two documents share row 4");
  op.documents = {sharing, 1};
  CHECK_THROWS_WITH(backend->run(op), "linear attention: a document ends beyond the rows of decays");
  op.documents = {};
  CHECK_NOTHROW(backend->run(op));
}
