#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/bf16.h"
#include "kernels/reference/reference_attention.h"
#include "kernels/reference/reference_layer.h"
#include "kernels/spec/backend.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels {

/// A device that computes in fp64, as plain as the formulas, between memory of its element type. New memory is full of
/// NaN, so that a read before the first write shows.
class ReferenceBackend : public Backend {
 public:
  explicit ReferenceBackend(Element element = Element::fp32) : element_(element) {}

  /// An element of this backend's memory, and what becomes of a value there.
  [[nodiscard]] double load(const void* data, std::int64_t at) const {
    if (element_ == Element::fp32) return static_cast<const float*>(data)[at];
    return cuda::to_float(static_cast<const cuda::bf16*>(data)[at]);
  }
  void store(void* data, std::int64_t at, double value) const {
    if (element_ == Element::fp32) {
      static_cast<float*>(data)[at] = static_cast<float>(value);
    } else {
      static_cast<cuda::bf16*>(data)[at] = cuda::to_bf16(static_cast<float>(value));
    }
  }

  [[nodiscard]] Element element() const override { return element_; }
  [[nodiscard]] DeviceInfo info() const override {
    DeviceInfo info;
    info.name = "reference";
    return info;
  }
  [[nodiscard]] DeviceState state() override { return {}; }

  [[nodiscard]] DeviceMemory allocate(std::size_t bytes) override {
    DeviceMemory memory{::operator new(bytes), [](void* data) { ::operator delete(data); }};
    std::memset(memory.get(), 0xFF, bytes);  // NaN in fp32 and in bf16
    return memory;
  }
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
    const Tensors in(*this, op);
    reference::AttentionResult result = reference::attention_forward(in.input());
    if (op.accumulate) {
      const auto held_o = [&](std::int64_t at) { return double{static_cast<const float*>(op.o.data)[at]}; };
      reference::AttentionResult held{gather(in.query_rows, in.output_width(), op.o.stride, held_o),
                                      in.statistic(op.lse, op.lse_stride)};
      reference::merge(op.heads, held, result);
      result = std::move(held);
    }
    in.for_each_query_row([&](std::int64_t row) {
      for (std::int64_t i = 0; i < in.output_width(); ++i) {
        const double value = result.o[static_cast<std::size_t>(row * in.output_width() + i)];
        if (op.accumulate) {
          static_cast<float*>(op.o.data)[row * op.o.stride + i] = static_cast<float>(value);
        } else {
          store(op.o.data, row * op.o.stride + i, value);
        }
      }
      for (std::int64_t head = 0; head < op.heads.heads; ++head) {
        const double value = result.lse[static_cast<std::size_t>(head * in.query_rows + row)];
        op.lse[head * op.lse_stride + row] = static_cast<float>(value);
      }
    });
    call_hook();
  }

  void run(const AttentionDelta& op) override {
    for (std::int64_t row = 0; row < op.rows; ++row) {
      for (std::int64_t head = 0; head < op.heads.heads; ++head) {
        double sum = 0;
        for (std::int64_t i = head * op.heads.value_width(); i < (head + 1) * op.heads.value_width(); ++i) {
          sum += load(op.o.data, row * op.o.stride + i) * load(op.d_o.data, row * op.d_o.stride + i);
        }
        op.delta[head * op.rows + row] = static_cast<float>(sum);
      }
    }
  }

  void run(const AttentionBackward& op) override {
    const Tensors in(*this, op);
    const auto found =
        reference::attention_backward(in.input(), gather(in.query_rows, in.output_width(), op.d_o),
                                      in.statistic(op.lse, op.lse_stride), in.statistic(op.delta, op.lse_stride));
    add(found.d_q, op.d_q, in.query_width());
    add(found.d_k, op.d_k, in.key_width());
    add(found.d_v, op.d_v, in.value_width());
    add(found.d_sinks, op.d_sinks);
    call_hook();
  }

  void run(const Add& op) override {
    for (std::int64_t i = 0; i < op.count; ++i) {
      if (op.fp32) {
        static_cast<float*>(op.y)[i] = static_cast<const float*>(op.a)[i] + static_cast<const float*>(op.b)[i];
      } else {
        store(op.y, i, load(op.a, i) + load(op.b, i));
      }
    }
  }
  void run(const Cast& op) override {
    for (std::int64_t i = 0; i < op.count; ++i) {
      if (op.to_fp32) {
        static_cast<float*>(op.to)[i] = static_cast<float>(load(op.from, i));
      } else {
        store(op.to, i, static_cast<const float*>(op.from)[i]);
      }
    }
  }

  void run(const RmsNormForward& op) override {
    const std::int64_t count = op.tokens * op.width;
    const auto result = reference::rms_norm_forward(numbers(op.x, count), numbers(op.weight, op.width), op.epsilon);
    store(op.y, result.y);
    std::copy(result.inverse_rms.begin(), result.inverse_rms.end(), op.inverse_rms);
  }
  void run(const RmsNormBackward& op) override {
    const std::int64_t count = op.tokens * op.width;
    const std::vector<double> inverse_rms(op.inverse_rms, op.inverse_rms + op.tokens);
    const auto found = reference::rms_norm_backward(numbers(op.x, count), numbers(op.weight, op.width), inverse_rms,
                                                    numbers(op.d_y, count));
    store(op.d_x, found.d_x);
    add(found.d_weight, op.d_weight);
  }
  void run(const Rope& op) override {
    if (op.head_stride != 0) throw UnsupportedInput("heads that are not side by side");
    const std::span positions(op.positions, static_cast<std::size_t>(op.tokens));
    const std::int64_t width = op.heads * op.dim;
    std::vector<double> x = gather(op.tokens, width, {op.x, op.stride});
    reference::rope(x, positions, op.dim, op.base, op.inverse);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      store(op.x, at / width * op.stride + at % width, x[i]);
    }
  }
  void run(const SwigluForward& op) override {
    store(op.y, reference::swiglu_forward(numbers(op.gate_up, 2 * op.tokens * op.width), op.width));
  }
  void run(const SwigluBackward& op) override {
    const std::int64_t count = op.tokens * op.width;
    store(op.d_gate_up, reference::swiglu_backward(numbers(op.gate_up, 2 * count), numbers(op.d_y, count), op.width));
  }
  void run(const EmbeddingForward& op) override {
    for (std::int64_t i = 0; i < op.tokens * op.width; ++i) {
      const std::int64_t id = op.ids[i / op.width];
      store(op.y, i, id < 0 ? 0 : load(op.table, id * op.width + i % op.width));
    }
  }
  void run(const EmbeddingBackward& op) override {
    for (std::int64_t i = 0; i < op.tokens * op.width; ++i) {
      const std::int64_t id = op.ids[i / op.width];
      if (id >= 0) op.d_table[id * op.width + i % op.width] += static_cast<float>(load(op.d_y, i));
    }
  }
  void run(const CrossEntropy& op) override {
    for (std::int64_t token = 0; token < op.tokens; ++token) {
      const std::int64_t row = token * op.vocabulary;
      const double log_sum =
          op.log_sum_exp != nullptr ? op.log_sum_exp[token] : log_sum_exp(op.logits, row, op.vocabulary);
      const std::int64_t target = op.targets[token];
      const bool is_here = target >= 0 && target < op.vocabulary;
      op.loss[token] = is_here ? static_cast<float>(log_sum - load(op.logits, row + target)) : 0;
      for (std::int64_t i = 0; i < op.vocabulary; ++i) {
        const double gradient = std::exp(load(op.logits, row + i) - log_sum) - (i == target ? 1 : 0);
        store(op.logits, row + i, target < 0 ? 0 : gradient * op.scale);
      }
    }
  }
  void run(const LogSumExp& op) override {
    for (std::int64_t token = 0; token < op.tokens; ++token) {
      op.result[token] = static_cast<float>(log_sum_exp(op.logits, token * op.vocabulary, op.vocabulary));
    }
  }
  void run(const JoinLogSumExp& op) override {
    for (std::int64_t token = 0; token < op.tokens; ++token) {
      double sum = 0;
      for (std::int64_t part = 0; part < op.parts; ++part)
        sum += std::exp(double{op.partial[part * op.tokens + token]});
      op.result[token] = static_cast<float>(std::log(sum));
    }
  }
  void run(const Adam& op) override {
    const auto count = static_cast<std::size_t>(op.count);
    const auto fp64 = [count](const float* from) { return std::vector<double>(from, from + count); };
    std::vector<double> master = fp64(op.master);
    std::vector<double> m = fp64(op.m);
    std::vector<double> v = fp64(op.v);
    reference::adam(op, master, m, v, fp64(op.gradient));
    std::copy(master.begin(), master.end(), op.master);
    std::copy(m.begin(), m.end(), op.m);
    std::copy(v.begin(), v.end(), op.v);
    if (op.parameter == nullptr) return;
    for (std::int64_t i = 0; i < op.count; ++i) store(op.parameter, i, op.master[i]);
  }
  void run(const MatrixProduct& op) override {
    const auto product = reference::matrix_product(op, numbers(op.a, op.m * op.k), numbers(op.b, op.k * op.n));
    auto* const fp32 = static_cast<float*>(op.c);
    for (std::int64_t i = 0; i < op.m * op.n; ++i) {
      double value = product[static_cast<std::size_t>(i)];
      if (op.beta != 0) value += op.beta * (op.fp32_result ? fp32[i] : load(op.c, i));
      if (op.fp32_result) {
        fp32[i] = static_cast<float>(value);
      } else {
        store(op.c, i, value);
      }
    }
  }

  void set_progress_hook(std::function<void()> hook) override { hook_ = std::move(hook); }
  [[nodiscard]] bool has_progress_hook() const { return hook_ != nullptr; }
  void set_sm_margin(int) override {}
  [[nodiscard]] std::vector<double> time(int, bool, const std::function<void()>&) override {
    throw UnsupportedInput("the reference backend has no speed");
  }

 private:
  // The tensors of one launch in fp64, dense, from the first row to the last that a block reads.
  struct Tensors {
    template <class Operation>
    Tensors(const ReferenceBackend& backend, const Operation& op) : heads(op.heads), blocks(op.blocks) {
      require_valid(op.heads, op.blocks);
      for (const AttentionBlock& block : blocks) {
        query_rows = std::max(query_rows, block.query_begin + block.queries);
        key_rows = std::max(key_rows, block.key_begin + block.keys);
      }
      q = backend.gather(query_rows, query_width(), op.q);
      k = backend.gather(key_rows, key_width(), op.k);
      v = backend.gather(key_rows, value_width(), op.v);
      if (op.sinks != nullptr) sinks.assign(op.sinks, op.sinks + heads.heads);
    }

    [[nodiscard]] std::int64_t query_width() const { return heads.heads * heads.dim; }
    [[nodiscard]] std::int64_t key_width() const { return heads.kv_heads * heads.dim; }
    [[nodiscard]] std::int64_t value_width() const { return heads.kv_heads * heads.value_width(); }
    [[nodiscard]] std::int64_t output_width() const { return heads.heads * heads.value_width(); }
    [[nodiscard]] reference::AttentionInput input() const {
      return {.heads = heads, .blocks = blocks, .q = q, .k = k, .v = v, .sinks = sinks};
    }
    // An LSE or delta, [heads, stride].
    [[nodiscard]] std::vector<double> statistic(const float* values, std::int64_t stride) const {
      return gather(heads.heads, query_rows, stride, [&](std::int64_t at) { return double{values[at]}; });
    }
    template <class Visit>
    void for_each_query_row(const Visit& visit) const {
      for (const AttentionBlock& block : blocks) {
        for (std::int64_t row = 0; row < block.queries; ++row) visit(block.query_begin + row);
      }
    }

    AttentionHeads heads;
    std::span<const AttentionBlock> blocks;
    std::int64_t query_rows = 0;
    std::int64_t key_rows = 0;
    std::vector<double> q, k, v, sinks;
  };

  template <class Load>
  static std::vector<double> gather(std::int64_t rows, std::int64_t width, std::int64_t stride, const Load& load) {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(rows * width));
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < width; ++i) values.push_back(load(row * stride + i));
    }
    return values;
  }
  [[nodiscard]] std::vector<double> gather(std::int64_t rows, std::int64_t width, Rows<const void> from) const {
    return gather(rows, width, from.stride, [&](std::int64_t at) { return load(from.data, at); });
  }

  static void add(std::span<const double> gradient, Rows<float> to, std::int64_t width) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      float& sum = to.data[at / width * to.stride + at % width];
      sum = static_cast<float>(sum + gradient[i]);
    }
  }

  static void add(std::span<const double> gradient, float* to) {
    for (std::size_t i = 0; i < gradient.size(); ++i) to[i] = static_cast<float>(to[i] + gradient[i]);
  }
  [[nodiscard]] std::vector<double> numbers(const void* data, std::int64_t count) const {
    return gather(1, count, {data, count});
  }
  void store(void* data, std::span<const double> values) const {
    for (std::size_t i = 0; i < values.size(); ++i) store(data, static_cast<std::int64_t>(i), values[i]);
  }
  [[nodiscard]] double log_sum_exp(const void* logits, std::int64_t begin, std::int64_t count) const {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += std::exp(load(logits, begin + i));
    return std::log(sum);
  }

  void call_hook() const {
    if (hook_) hook_();
  }

  Element element_;
  std::function<void()> hook_;
};

}  // namespace hdpsim::kernels
