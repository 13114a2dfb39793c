#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

namespace hdpsim::test {

/// A file of samples of a device that follows known laws, as another program would write it: no law rounds to tiles.
struct SampleLaws {
  double attention_s = 5e-6;  ///< A launch; backward takes 2.5 times the rest of forward.
  double pair_s = 1e-12;      ///< A (query, key) pair of one head.
  double gemm_s = 4e-6;
  double gemm_rate = 6e14;
  double kernel_s = 3e-6;
  double memory_rate = 2.6e12;
  double node_s = 8e-6;
  double node_rate = 3e11;
  double network_s = 20e-6;
  double network_rate = 4e10;
  int heads = 32;

  [[nodiscard]] static double causal_pairs(double n) { return n * (n + 1) / 2; }
  [[nodiscard]] double attention(double pairs, bool backward) const {
    return attention_s + (backward ? 2.5 : 1) * pairs * heads * pair_s;
  }
  [[nodiscard]] double gemm(double m, double n, double k) const { return gemm_s + 2 * m * n * k / gemm_rate; }
  [[nodiscard]] double memory_bound(double bytes) const { return kernel_s + bytes / memory_rate; }
  [[nodiscard]] double message(double bytes, bool network) const {
    return network ? network_s + bytes / network_rate : node_s + bytes / node_rate;
  }
};

/// `extra` goes into the object: `"peak_flops": 9.89e14, `.
inline std::string sample_header(const std::string& extra) {
  return R"({"schema": "hdpsim.samples/1", "device": "H100-80GB", "device_name": "NVIDIA H100 80GB HBM3", "devices": 8, )" +
         extra +
         R"("through": "PyTorch", "program": "a test", "software": {"torch": "2.9.0", "nccl": "2.27"}, )"
         R"("date": "2026-01-02", "host_issue_s": 1.2e-05, "launch_s": 3e-06, "kernels": {"attention": "flash-attn 2.8.1", )"
         R"("gemm": "cuBLAS of torch 2.9.0", "memory_bound": "eager PyTorch", "messages": "NCCL 2.27"}})"
         "\n";
}

inline const std::string sheet_of_samples =
    R"("memory_bytes": 80000000000, "peak_flops": 9.894e14, "memory_bandwidth": 3.35e12, "multiprocessors": 132, )";

/// Two rounds of a subject.
inline std::string sample_lines(const std::string& subject, double seconds) {
  std::string lines;
  for (int round = 0; round < 2; ++round) {
    lines += fmt::format(
        "{{\"subject\": {{{}}}, \"round\": {}, \"median_s\": {}, \"p10_s\": {}, \"p90_s\": {}, "
        "\"cv\": 0.01, \"runs\": 10}}\n",
        subject, round, seconds, 0.99 * seconds, 1.01 * seconds);
  }
  return lines;
}

inline std::string attention_lines(const SampleLaws& laws) {
  std::string text;
  for (const bool backward : {false, true}) {
    for (const std::int64_t n : {512, 1024, 2048, 4096, 8192, 16384}) {
      for (const bool causal : {false, true}) {
        const auto length = static_cast<double>(n);
        const double pairs = causal ? SampleLaws::causal_pairs(length) : length * length;
        text += sample_lines(
            fmt::format("\"family\": \"attention\", \"backward\": {}, \"heads\": {}, \"kv_heads\": 8, \"dim\": 128, "
                        "\"blocks\": [[{}, {}, {}, 1]]",
                        backward, laws.heads, n, n, causal),
            laws.attention(pairs, backward));
      }
    }
  }
  return text;
}

inline std::string kernel_lines(const SampleLaws& laws) {
  std::string text;
  for (const std::int64_t m : {512, 1024, 2048, 4096, 8192}) {
    for (const auto& [n, k] : {std::pair(4096, 4096), std::pair(6144, 4096), std::pair(14336, 4096)}) {
      text += sample_lines(fmt::format(R"("family": "gemm", "m": {}, "n": {}, "k": {})", m, n, k),
                           laws.gemm(static_cast<double>(m), n, k));
    }
  }
  for (const char* kernel : {"rms_norm_forward", "swiglu_forward", "adam"}) {
    for (std::int64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 4) {
      text += sample_lines(fmt::format(R"("family": "memory_bound", "kernel": "{}", "bytes": {})", kernel, bytes),
                           laws.memory_bound(static_cast<double>(bytes)));
    }
  }
  return text;
}

inline std::string message_lines(const SampleLaws& laws) {
  std::string text;
  for (const char* kind : {"send_recv", "all_reduce"}) {
    for (const bool network : {false, true}) {
      for (std::int64_t bytes = 1 << 16; bytes <= 1 << 28; bytes *= 4) {
        text += sample_lines(fmt::format(R"("family": "messages", "kind": "{}", "ranks": 2, "bytes": {}, "link": "{}")",
                                         kind, bytes, network ? "network" : "node"),
                             laws.message(static_cast<double>(bytes), network));
      }
    }
  }
  return text;
}

/// All of it, with the data sheet in the header.
inline std::string samples_of_laws(const SampleLaws& laws = {}) {
  return sample_header(sheet_of_samples) + attention_lines(laws) + kernel_lines(laws) + message_lines(laws);
}

}  // namespace hdpsim::test
