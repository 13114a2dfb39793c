// What memory bounds, copies, and matrix products.

#include "kernels/cuda/copies.h"
#include "tests/gpu/bench/bench.h"
#include "tests/support/attention_tensors.h"

namespace hdpsim::kernels::bench {
namespace {

constexpr std::int64_t tensor_rows = 16384;  // a token each
constexpr std::int64_t width = 8192;         // 256 MiB a tensor: no cache holds it
constexpr double element = 2;                // bytes

double rate_of(const std::vector<double>& seconds, double bytes) {
  return bytes / median(seconds);
}

}  // namespace

void measure_memory(Backend& backend, Report& report) {
  constexpr double tensor = tensor_rows * width * element;
  const auto bytes = static_cast<std::size_t>(tensor);
  const DeviceMemory x = random_elements(backend, tensor_rows * width, 1);
  const DeviceMemory d_y = random_elements(backend, tensor_rows * width, 2);
  const DeviceMemory weight = random_elements(backend, width, 3);
  const DeviceMemory y = zeros(backend, bytes);
  const DeviceMemory inverse_rms = zeros(backend, tensor_rows * sizeof(float));
  const DeviceMemory d_weight = zeros(backend, width * sizeof(float));
  const auto describe = [](const char* kernel) {
    return nlohmann::ordered_json{{"kernel", kernel}, {"tokens", tensor_rows}, {"width", width}};
  };

  const std::vector<double> copy = measure(backend, [&] { backend.copy(y.get(), x.get(), bytes); });
  report.add(describe("copy"), copy, "bytes_per_s", 2 * tensor);
  const std::vector<double> forward = measure(backend, [&] {
    backend.run(RmsNormForward{.tokens = tensor_rows,
                               .width = width,
                               .x = x.get(),
                               .weight = weight.get(),
                               .y = y.get(),
                               .inverse_rms = static_cast<float*>(inverse_rms.get())});
  });
  report.add(describe("rms_norm_forward"), forward, "bytes_per_s", 2 * tensor);
  const std::vector<double> backward = measure(backend, [&] {
    backend.run(RmsNormBackward{.tokens = tensor_rows,
                                .width = width,
                                .x = x.get(),
                                .weight = weight.get(),
                                .inverse_rms = static_cast<const float*>(inverse_rms.get()),
                                .d_y = d_y.get(),
                                .d_x = y.get(),
                                .d_weight = static_cast<float*>(d_weight.get())});
  });
  report.add(describe("rms_norm_backward"), backward, "bytes_per_s", 3 * tensor);
  report.at_least("rms_norm_forward_of_copy", rate_of(forward, 2 * tensor) / rate_of(copy, 2 * tensor), 0.80);
  report.at_least("rms_norm_backward_of_copy", rate_of(backward, 3 * tensor) / rate_of(copy, 2 * tensor), 0.70);

  constexpr std::size_t host_copy = std::size_t{64} << 20;
  constexpr int runs = 16;
  CopyTimer timer(backend, host_copy);
  for (const CopyDirection direction : {CopyDirection::to_host, CopyDirection::to_device}) {
    for (const bool both_ways : {false, true}) {
      nlohmann::ordered_json what{{"kernel", direction == CopyDirection::to_host ? "copy_to_host" : "copy_to_device"},
                                  {"bytes", host_copy}};
      what["both_ways"] = both_ways;
      report.add(what, timer.time(direction, host_copy, both_ways, runs), "bytes_per_s", host_copy);
    }
  }
}

void measure_matrix_products(Backend& backend, Report& report) {
  struct Shape {
    std::int64_t m, n, k;
  };
  for (const Shape& shape : {Shape{8192, 8192, 8192}, {8192, 6144, 4096}, {8192, 28672, 4096}, {8192, 4096, 14336}}) {
    const DeviceMemory a = random_elements(backend, shape.m * shape.k, 1);
    const DeviceMemory b = random_elements(backend, shape.n * shape.k, 2);
    const DeviceMemory c = zeros(backend, static_cast<std::size_t>(shape.m * shape.n) * 2);
    const MatrixProduct op{
        .m = shape.m, .n = shape.n, .k = shape.k, .a = a.get(), .b = b.get(), .c = c.get(), .b_transposed = true};
    report.add({{"kernel", "matrix_product"}, {"m", shape.m}, {"n", shape.n}, {"k", shape.k}},
               measure(backend, [&] { backend.run(op); }), "flops",
               2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k));
  }
}

}  // namespace hdpsim::kernels::bench
