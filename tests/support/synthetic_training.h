#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "tests/support/kineto_trace.h"

namespace hdpsim::test {

/// What a device does by these laws, with noise, as a trace. Times are in microseconds.
struct TrainingTruth {
  double product_rate = 600e6;  ///< FLOPs per microsecond.
  double product_us = 2;        ///< Of every product besides.
  double attention_rate = 500e6;
  double attention_us = 3;
  double memory_bytes_per_us = 2.4e6;
  double memory_us = 3;
  double gather_us = 45;
  double gather_bytes_per_us = 300e3;  ///< Bus bandwidth.
  double gap_us = 1.5;
  double issue_us = 9;
  double slowdown = 1.2;
  double noise = 0.02;  ///< Standard deviation of every time.
  int repeats = 6;
};

/// Writes the kernels of such a device one after the other: first compute alone, then collectives alone, then products
/// beside collectives. The host launches all of them before the first begins.
class SyntheticTraining {
 public:
  explicit SyntheticTraining(const TrainingTruth& truth, std::uint64_t seed = 1)
      : truth_(truth), noise_(seed, "synthetic training") {}

  void product(std::int64_t m, std::int64_t n, std::int64_t k, double factor = 1) {
    const std::string dims = fmt::format("[[{}, {}], [{}, {}]]", m, k, k, n);
    compute(
        "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", "aten::mm", dims, 2, "",
        factor * (truth_.product_us + 2e0 * static_cast<double>(m * n) * static_cast<double>(k) / truth_.product_rate));
  }

  /// A causal forward launch of one sequence with 32 heads of 128 and 8 of keys.
  void attention(std::int64_t tokens) {
    const std::string q = fmt::format("[1, {}, 32, 128]", tokens);
    const std::string k = fmt::format("[1, {}, 8, 128]", tokens);
    const double area = static_cast<double>(tokens) * static_cast<double>(tokens + 1) / 2;
    compute("void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<Mainloop>>>",
            "flash_attn::_flash_attn_forward", fmt::format("[{}, {}, {}]", q, k, k), 3,
            R"(["", "", "", "0.", "0.088", "True", "-1", "-1"])",
            truth_.attention_us + 4 * 32 * 128 * area / truth_.attention_rate);
  }

  /// x + y of so many elements in bf16.
  void add(std::int64_t elements) {
    const std::string dims = fmt::format("[[{}], [{}], []]", elements, elements);
    compute("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>",
            "aten::add", dims, 3, "",
            truth_.memory_us + 6 * static_cast<double>(elements) / truth_.memory_bytes_per_us);
  }

  /// An all-gather among the 8 GPUs of a node, after which it is quiet; `bytes` is what all together hold.
  void gather(std::int64_t bytes) {
    const double took = noisy(truth_.gather_us + 7.0 / 8 * static_cast<double>(bytes) / truth_.gather_bytes_per_us);
    message(bytes, took);
    now_ += took + 100;
  }

  /// The same products under a collective that lasts longer than all of them.
  void products_beside_gather(std::int64_t m, std::int64_t n, std::int64_t k) {
    now_ += 1000;
    const double begin = now_;
    now_ += 1;
    for (int i = 0; i < truth_.repeats; ++i) product(m, n, k, truth_.slowdown);
    const double took = now_ + 10 - begin;
    now_ = begin;
    message(1000, took, "ncclDevKernel_Broadcast_RING_LL", "broadcast");
    now_ += took + 1000;
  }

  /// Time in a kernel that nobody knows.
  void unknown(const std::string& name, double took) {
    trace_.kernel(name, now_, took, 0, 0);
    now_ += took + truth_.gap_us;
  }

  /// Several sizes of everything.
  void everything() {
    for (int i = 0; i < truth_.repeats; ++i) {
      for (const auto& [m, n, k] : products()) product(m, n, k);
      for (const std::int64_t tokens : {1024, 2048, 4096, 8192, 16384}) attention(tokens);
      for (const std::int64_t mega : {1, 2, 4, 8, 16, 32, 64, 128}) add(mega * 1'000'000);
    }
    now_ += 1000;
    for (int i = 0; i < truth_.repeats; ++i) {
      for (const std::int64_t mega : {1, 4, 16, 64, 256}) gather(mega * 1'000'000);
    }
    products_beside_gather(4096, 4096, 4096);
  }

  struct Sides {
    std::int64_t m, n, k;
  };
  static std::vector<Sides> products() {
    return {{4096, 4096, 4096},  {8192, 4096, 4096},  {16384, 4096, 4096},  {4096, 14336, 4096}, {8192, 14336, 4096},
            {4096, 4096, 14336}, {8192, 4096, 14336}, {16384, 14336, 4096}, {4096, 6144, 4096},  {8192, 6144, 4096}};
  }

  [[nodiscard]] KinetoTrace& trace() { return trace_; }

 private:
  double noisy(double time) { return time * std::exp(truth_.noise * noise_.normal()); }

  double launched() {
    host_ += noisy(truth_.issue_us);
    return host_;
  }

  void compute(const std::string& kernel, const std::string& operation, const std::string& dims, int inputs,
               const std::string& concrete, double took) {
    std::string types;
    for (int i = 0; i < inputs; ++i) types += fmt::format("{}\"c10::BFloat16\"", i == 0 ? "" : ", ");
    const std::int64_t id = trace_.operation(operation, dims, "[" + types + "]", concrete);
    const double length = noisy(took);
    trace_.kernel(kernel, now_, length, id, trace_.launch(launched()));
    now_ += length + noisy(truth_.gap_us);
  }

  void message(std::int64_t bytes, double took,
               const std::string& kernel = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
               const std::string& operation = "_allgather_base") {
    trace_.kernel(kernel, now_, took, 0, trace_.launch(launched()), 17,
                  KinetoTrace::message(operation, bytes / 16, bytes / 2, 8, "[0, 1, 2, 3, 4, 5, 6, 7]"));
  }

  TrainingTruth truth_;
  RandomStream noise_;
  KinetoTrace trace_;
  double now_ = 1e6;  // long after the last launch
  double host_ = 0;
};

}  // namespace hdpsim::test
