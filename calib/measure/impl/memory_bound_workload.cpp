#include <algorithm>
#include <array>
#include <string_view>

#include "calib/measure/impl/tensors.h"
#include "calib/measure/impl/workloads.h"
#include "calib/measure/workload.h"
#include "sim/base/check.h"

namespace hdpsim::calib {
namespace {

constexpr std::int64_t width = 4096;         // hidden size of a 7B model
constexpr std::int64_t vocabulary = 32'000;  // vocabulary of Llama
constexpr std::int64_t table_rows = 8192;    // rows of an embedding: more than a cache holds
constexpr std::int64_t head_dim = 128;

using Work = std::function<void()>;
using Backend = kernels::Backend;

/// A kernel on `rows` rows (tokens, or elements of a parameter).
using Prepare = Work (*)(Backend& backend, const std::shared_ptr<Tensors>& t, std::int64_t rows);

/// Bytes that one row reads and writes: a number of the backend's elements and a number of fp32 values.
struct Kernel {
  std::string_view name;
  std::int64_t elements_per_row;
  std::int64_t floats_per_row;
  Prepare prepare;
};

template <class Op>
Work queued(Backend& backend, const std::shared_ptr<Tensors>& t, const Op& op) {
  return [&backend, t, op] { backend.run(op); };
}

Work rms_norm_forward(Backend& backend, const std::shared_ptr<Tensors>& t, std::int64_t rows) {
  return queued(backend, t,
                kernels::RmsNormForward{.tokens = rows,
                                        .width = width,
                                        .x = t->elements(rows * width),
                                        .weight = t->elements(width),
                                        .y = t->results(rows * width),
                                        .inverse_rms = t->sums(rows)});
}

Work rms_norm_backward(Backend& backend, const std::shared_ptr<Tensors>& t, std::int64_t rows) {
  return queued(backend, t,
                kernels::RmsNormBackward{.tokens = rows,
                                         .width = width,
                                         .x = t->elements(rows * width),
                                         .weight = t->elements(width),
                                         .inverse_rms = t->positive_floats(rows),
                                         .d_y = t->elements(rows * width),
                                         .d_x = t->results(rows * width),
                                         .d_weight = t->sums(width)});
}

Work rope(Backend& backend, const std::shared_ptr<Tensors>& t, std::int64_t rows) {
  return queued(backend, t,
                kernels::Rope{.tokens = rows,
                              .heads = width / head_dim,
                              .dim = head_dim,
                              .stride = width,
                              .x = t->elements(rows * width),
                              .positions = t->positions(rows)});
}

Work swiglu_forward(Backend& backend, const std::shared_ptr<Tensors>& t, std::int64_t rows) {
  return queued(
      backend, t,
      kernels::SwigluForward{
          .tokens = rows, .width = width, .gate_up = t->elements(rows * 2 * width), .y = t->results(rows * width)});
}

Work swiglu_backward(Backend& backend, const std::shared_ptr<Tensors>& t, std::int64_t rows) {
  return queued(backend, t,
                kernels::SwigluBackward{.tokens = rows,
                                        .width = width,
                                        .gate_up = t->elements(rows * 2 * width),
                                        .d_y = t->elements(rows * width),
                                        .d_gate_up = t->results(rows * 2 * width)});
}

Work add(Backend& backend, const std::shared_ptr<Tensors>& t, std::int64_t rows) {
  return queued(backend, t,
                kernels::Add{.count = rows * width,
                             .a = t->elements(rows * width),
                             .b = t->elements(rows * width),
                             .y = t->results(rows * width)});
}

Work embedding_forward(Backend& backend, const std::shared_ptr<Tensors>& t, std::int64_t rows) {
  return queued(backend, t,
                kernels::EmbeddingForward{.tokens = rows,
                                          .vocabulary = table_rows,
                                          .width = width,
                                          .table = t->elements(table_rows * width),
                                          .ids = t->integers(rows, table_rows),
                                          .y = t->results(rows * width)});
}

Work cross_entropy(Backend& backend, const std::shared_ptr<Tensors>& t, std::int64_t rows) {
  return queued(backend, t,
                kernels::CrossEntropy{.tokens = rows,
                                      .vocabulary = vocabulary,
                                      .logits = t->elements(rows * vocabulary),
                                      .targets = t->integers(rows, vocabulary),
                                      .loss = t->sums(rows)});
}

Work adam(Backend& backend, const std::shared_ptr<Tensors>& t, std::int64_t rows) {
  const std::int64_t count = rows * width;
  return queued(backend, t,
                kernels::Adam{.count = count,
                              .rate = 1e-6F,
                              .master = t->floats(count),
                              .gradient = t->floats(count),
                              .m = t->floats(count),
                              .v = t->positive_floats(count),
                              .parameter = t->results(count)});
}

Work attention_delta(Backend& backend, const std::shared_ptr<Tensors>& t, std::int64_t rows) {
  return queued(backend, t,
                kernels::AttentionDelta{.heads = {width / head_dim, width / head_dim, head_dim, 1},
                                        .rows = rows,
                                        .o = {t->elements(rows * width), width},
                                        .d_o = {t->elements(rows * width), width},
                                        .delta = t->sums(rows * width / head_dim)});
}

// Cross-entropy reads the logits twice (maximum and sum in one pass, gradient in another) unless a row stays in a
// cache, which it does: counted are one read and one write.
constexpr std::array<Kernel, 10> all_kernels = {{
    {"rms_norm_forward", 2 * width, 1, rms_norm_forward},
    {"rms_norm_backward", 3 * width, 1, rms_norm_backward},
    {"rope", 2 * width, 1, rope},
    {"swiglu_forward", 3 * width, 0, swiglu_forward},
    {"swiglu_backward", 5 * width, 0, swiglu_backward},
    {"add", 3 * width, 0, add},
    {"embedding_forward", 2 * width, 1, embedding_forward},
    {"cross_entropy", 2 * vocabulary, 2, cross_entropy},
    {"adam", width, 7 * width, adam},
    {"attention_delta", 2 * width, width / head_dim, attention_delta},
}};

const Kernel& kernel_of(const MemoryBoundSubject& op) {
  const auto* found = std::find_if(all_kernels.begin(), all_kernels.end(),
                                   [&](const Kernel& kernel) { return kernel.name == op.kernel; });
  HDPSIM_CHECK(found != all_kernels.end(), "no kernel {}", op.kernel);
  return *found;
}

std::int64_t row_bytes(const Kernel& kernel, kernels::Element element) {
  return kernel.elements_per_row * static_cast<std::int64_t>(kernels::element_bytes(element)) +
         kernel.floats_per_row * std::int64_t{sizeof(float)};
}

std::int64_t rows_of(const MemoryBoundSubject& op, kernels::Element element) {
  return std::max<std::int64_t>(1, op.bytes / row_bytes(kernel_of(op), element));
}

}  // namespace

std::vector<std::string> memory_bound_kernels() {
  std::vector<std::string> names;
  names.reserve(all_kernels.size());
  for (const Kernel& kernel : all_kernels) names.emplace_back(kernel.name);
  return names;
}

std::int64_t moved_bytes(const MemoryBoundSubject& op, kernels::Element element) {
  return rows_of(op, element) * row_bytes(kernel_of(op), element);
}

std::function<void()> memory_bound_workload(Backend& backend, const MemoryBoundSubject& op, std::uint64_t seed) {
  return kernel_of(op).prepare(backend, std::make_shared<Tensors>(backend, seed), rows_of(op, backend.element()));
}

}  // namespace hdpsim::calib
