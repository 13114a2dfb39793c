#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/bf16.h"
#include "kernels/reference/attention.h"
#include "kernels/spec/backend.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels {

/// A device that computes attention in fp64, as plain as the formulas, between memory of its element type. New memory
/// is full of NaN, so that whatever is read before it is written shows. Other kernels than attention's are refused.
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
      reference::AttentionResult held{gather(in.query_rows, in.query_width(), op.o.stride, held_o),
                                      in.statistic(op.lse, op.lse_stride)};
      reference::merge(op.heads, held, result);
      result = std::move(held);
    }
    in.for_each_query_row([&](std::int64_t row) {
      for (std::int64_t i = 0; i < in.query_width(); ++i) {
        const double value = result.o[static_cast<std::size_t>(row * in.query_width() + i)];
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
        for (std::int64_t i = head * op.heads.dim; i < (head + 1) * op.heads.dim; ++i) {
          sum += load(op.o.data, row * op.o.stride + i) * load(op.d_o.data, row * op.d_o.stride + i);
        }
        op.delta[head * op.rows + row] = static_cast<float>(sum);
      }
    }
  }

  void run(const AttentionBackward& op) override {
    const Tensors in(*this, op);
    const auto found =
        reference::attention_backward(in.input(), gather(in.query_rows, in.query_width(), op.d_o),
                                      in.statistic(op.lse, op.lse_stride), in.statistic(op.delta, op.lse_stride));
    add(found.d_q, op.d_q, in.query_width());
    add(found.d_k, op.d_k, in.key_width());
    add(found.d_v, op.d_v, in.key_width());
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

  void run(const RmsNormForward&) override { refuse(); }
  void run(const RmsNormBackward&) override { refuse(); }
  void run(const Rope&) override { refuse(); }
  void run(const SwigluForward&) override { refuse(); }
  void run(const SwigluBackward&) override { refuse(); }
  void run(const EmbeddingForward&) override { refuse(); }
  void run(const EmbeddingBackward&) override { refuse(); }
  void run(const CrossEntropy&) override { refuse(); }
  void run(const Adam&) override { refuse(); }
  void run(const MatrixProduct&) override { refuse(); }

  void set_progress_hook(std::function<void()> hook) override { hook_ = std::move(hook); }
  [[nodiscard]] bool has_progress_hook() const { return hook_ != nullptr; }
  void set_sm_margin(int) override {}
  [[nodiscard]] std::vector<double> time(int, bool, const std::function<void()>&) override { refuse(); }

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
      v = backend.gather(key_rows, key_width(), op.v);
    }

    [[nodiscard]] std::int64_t query_width() const { return heads.heads * heads.dim; }
    [[nodiscard]] std::int64_t key_width() const { return heads.kv_heads * heads.dim; }
    [[nodiscard]] reference::AttentionInput input() const {
      return {.heads = heads, .blocks = blocks, .q = q, .k = k, .v = v};
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
    std::vector<double> q, k, v;
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

  [[noreturn]] static void refuse() { throw UnsupportedInput("the reference backend computes attention only"); }
  void call_hook() const {
    if (hook_) hook_();
  }

  Element element_;
  std::function<void()> hook_;
};

}  // namespace hdpsim::kernels
