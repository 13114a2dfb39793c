#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace hdpsim::test {

/// Writes a trace with the keys that PyTorch's profiler gives its events. Times are in microseconds.
class KinetoTrace {
 public:
  /// A device that the trace lists, as often as the node has it.
  explicit KinetoTrace(std::string device = "NVIDIA H100 80GB HBM3", int devices = 8) {
    for (int i = 0; i < devices; ++i) {
      devices_ += fmt::format(
          R"({}{{"id": {}, "name": "{}", "totalGlobalMem": 85028765696, "computeMajor": 9, "computeMinor": 0, "numSms": 132}})",
          i == 0 ? "" : ", ", i, device);
    }
  }

  /// An operation of the framework; `inputs` are "Input Dims", "Input type" and, if not empty, "Concrete Inputs", as
  /// the file has them. Returns its external id.
  std::int64_t operation(const std::string& name, const std::string& dims, const std::string& types,
                         const std::string& concrete = "") {
    const std::int64_t id = ++ids_;
    std::string args = fmt::format(R"("External id": {}, "Record function id": 0)", id);
    if (!dims.empty()) args += fmt::format(R"(, "Input Dims": {}, "Input type": {})", dims, types);
    if (!concrete.empty()) args += fmt::format(R"(, "Concrete Inputs": {})", concrete);
    event("cpu_op", name, host_, 1, 100, 100, args);
    return id;
  }

  /// The host launches the next kernel at this moment. Returns the correlation id.
  std::int64_t launch(double at, double took = 3) {
    const std::int64_t id = ++correlations_;
    event("cuda_runtime", "cudaLaunchKernel", at, took, 100, 100, fmt::format(R"("cbid": 211, "correlation": {})", id));
    return id;
  }

  /// A kernel of an operation (its external id) on a stream; more arguments as the file has them.
  void kernel(const std::string& name, double begin, double took, std::int64_t id, std::int64_t correlation,
              int stream = 7, const std::string& more = "") {
    event("kernel", name, begin, took, 0, stream,
          fmt::format(R"("External id": {}, "queued": 0, "device": 0, "context": 1, "stream": {}, "correlation": {}, )"
                      R"("registers per thread": 168, "grid": [132, 1, 1], "block": [384, 1, 1]{}{})",
                      id, stream, correlation, more.empty() ? "" : ", ", more));
  }

  void copy(const std::string& name, double begin, double took, std::int64_t bytes, int stream = 20) {
    event("gpu_memcpy", name, begin, took, 0, stream,
          fmt::format(R"x("device": 0, "stream": {}, "bytes": {}, "memory bandwidth (GB/s)": 1.0)x", stream, bytes));
  }

  void step(int number, double begin, double took) {
    event("user_annotation", fmt::format("ProfilerStep#{}", number), begin, took, 100, 100,
          R"("Record function id": 0)");
  }

  /// The arguments of a kernel that communicates.
  static std::string message(const std::string& collective, std::int64_t in, std::int64_t out, int ranks,
                             const std::string& group_ranks, const std::string& type = "BFloat16") {
    return fmt::format(R"("Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "Group size": {}, )"
                       R"("dtype": "{}", "Process Group Name": "1", "Process Group Description": "mesh", )"
                       R"("Process Group Ranks": "{}")",
                       collective, in, out, ranks, type, group_ranks);
  }

  /// Any other event, or what is no event.
  void raw(const std::string& text) { events_.push_back(text); }

  [[nodiscard]] std::string text() const {
    std::string all = fmt::format(
        "{{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{}],\n"
        "  \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": 0, \"world_size\": 8, \"nccl_version\": "
        "\"2.21.5\"}},\n"
        "  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": 1700000000000000000,\n  \"traceEvents\": [",
        devices_);
    for (std::size_t i = 0; i < events_.size(); ++i) all += (i == 0 ? "\n  " : ",\n  ") + events_[i];
    return all + "\n  ],\n  \"traceName\": \"trace.json\"\n}\n";
  }

  std::filesystem::path write(const std::filesystem::path& path) const {
    const std::string all = text();
    if (path.extension() != ".gz") {
      std::ofstream(path, std::ios::binary) << all;
    } else {
      gzFile file = gzopen(path.c_str(), "wb");
      static_cast<void>(gzwrite(file, all.data(), static_cast<unsigned>(all.size())));
      static_cast<void>(gzclose(file));
    }
    return path;
  }

 private:
  void event(const std::string& category, const std::string& name, double begin, double took, int pid, int tid,
             const std::string& args) {
    host_ = std::max(host_, begin);
    events_.push_back(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": {}, "ts": {:.4f}, "dur": {:.4f}, "args": {{{}}}}})",
        category, name, pid, tid, begin, took, args));
  }

  std::string devices_;
  std::vector<std::string> events_;
  std::int64_t ids_ = 1000;
  std::int64_t correlations_ = 0;
  double host_ = 0;
};

}  // namespace hdpsim::test
