#include "sim/profiler/step_trace.h"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "sim/profiler/operator_class.h"
#include "sim/profiler/training_range.h"
#include "tests/support/catch.h"
#include "tests/support/kineto_trace.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

using test::KinetoTrace;

constexpr double ms = 1e-3;

double seconds_of(const std::array<double, device_activities>& seconds, DeviceActivity activity) {
  return seconds.at(static_cast<std::size_t>(activity));
}

double sum(const std::array<double, device_activities>& seconds) {
  double all = 0;
  for (const double each : seconds) all += each;
  return all;
}

/// Times in milliseconds, as the tests state them.
class RangedTrace {
 public:
  void event(const char* category, const std::string& name, double begin, double took, int thread,
             const std::string& args = "") {
    trace_.raw(fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 9, "tid": {}, "ts": {}, "dur": {}, )"
                           R"("args": {{{}}}}})",
                           category, name, thread, 1000 * begin, 1000 * took, args));
  }
  void range(const std::string& name, double begin, double took, int thread = 1) {
    event("user_annotation", name, begin, took, thread);
  }
  void on_stream(const std::string& name, double begin, double took, int stream) {
    event("gpu_user_annotation", name, begin, took, stream);
  }
  void operation(const std::string& name, double begin, double took, int thread = 1) {
    event("cpu_op", name, begin, took, thread);
  }
  /// A kernel that the host launches at `launched`, if that is not negative, on a thread.
  void kernel(const std::string& name, double begin, double took, double launched, int thread = 1, int stream = 7) {
    const std::int64_t id = ++launches_;
    if (launched >= 0) {
      event("cuda_runtime", "cudaLaunchKernel", launched, 0.001, thread, fmt::format(R"("correlation": {})", id));
    }
    event("kernel", name, begin, took, stream,
          fmt::format(R"("device": 0, "stream": {}, "correlation": {})", stream, id));
  }
  [[nodiscard]] StepTrace read() const {
    const test::TemporaryFolder folder;
    return read_step_trace(trace_.write(folder.path() / "trace.json"));
  }

 private:
  KinetoTrace trace_{"GPU", 1};
  std::int64_t launches_ = 0;
};

TEST_CASE("ranges of a training are told from other names", "[profiler]") {
  using Kind = TrainingRange::Kind;
  const auto kind = [](const char* name) { return training_range(name).value().kind; };
  CHECK(kind("hdpsim:3/rank/2") == Kind::step);
  CHECK(training_range("hdpsim:3/rank/2")->rank == 2);
  CHECK(kind("hdpsim:3/7/forward") == Kind::forward);
  CHECK(training_range("hdpsim:3/7/backward")->micro_batch == 7);
  CHECK(training_range("hdpsim:3/reduce")->step == 3);
  CHECK(kind("hdpsim:attention/backward") == Kind::attention_backward);
  CHECK(kind("hdpsim:exchange") == Kind::exchange);
  CHECK(kind("Optimizer.step#AdamW.step") == Kind::optimizer);
  for (const char* other : {"hdpsim:", "hdpsim:3", "hdpsim:3/", "hdpsim:3/7/sideways", "hdpsim:-3/7/forward",
                            "hdpsim:3/x/forward", "hdpsim:3/rank/x", "hdpsim:3/7/forward/9", "forward"}) {
    INFO(other);
    CHECK_FALSE(training_range(other));
  }
}

TEST_CASE("operators of CPUs are classed by their names", "[profiler]") {
  CHECK(operator_class("aten::mm") == OperatorClass::product);
  CHECK(operator_class("aten::addmm_") == OperatorClass::product);
  CHECK(operator_class("aten::mul") == OperatorClass::memory_bound);
  CHECK(operator_class("aten::_scaled_dot_product_flash_attention_for_cpu") == OperatorClass::attention_forward);
  CHECK(operator_class("aten::_scaled_dot_product_flash_attention_for_cpu_backward") ==
        OperatorClass::attention_backward);
  CHECK(operator_class("c10d::allreduce_") == OperatorClass::message);
  CHECK(operator_class("gloo:recv") == OperatorClass::transfer);
  CHECK(operator_class("autograd::engine::evaluate_function: MmBackward0") == OperatorClass::frame);
  CHECK(operator_class("MmBackward0") == OperatorClass::frame);
}

// A step of 100 ms on CPUs: forward from 10 to 40 with attention from 12 to 22, backward from 50 to 80 on a thread of
// its own, 10 ms of a message that waits, then the optimizer from 100 to 110.
RangedTrace trace_of_cpu() {
  RangedTrace trace;
  trace.range("hdpsim:5/rank/3", 0, 100);
  trace.range("hdpsim:5/2/forward", 10, 30);
  trace.operation("aten::linear", 10, 2);  // 1 ms itself, and 1 ms of a product
  trace.operation("aten::addmm", 11, 1);
  trace.operation("Attend", 12, 10.5);  // a frame: what it does not call is the host's
  trace.range("hdpsim:attention/forward", 12, 10);
  trace.operation("aten::bmm", 13, 4);      // attention, for it is within it
  trace.operation("aten::softmax", 17, 2);  // attention, too
  trace.range("hdpsim:exchange", 19, 3);    // waits ...
  trace.operation("gloo:recv", 20, 2, 8);   // ... of which 2 ms are seen as a message, too
  trace.operation("aten::mul", 30, 5);
  trace.range("hdpsim:5/2/backward", 50, 30);
  trace.operation("autograd::engine::evaluate_function: MmBackward0", 50, 30, 2);
  trace.operation("MmBackward0", 51, 20, 2);
  trace.operation("aten::mm", 52, 12, 2);
  trace.operation("aten::resolve_conj", 54, 2, 2);  // of the product only 10 ms are left
  trace.range("hdpsim:5/reduce", 85, 14);
  trace.operation("c10d::allreduce_", 85, 1);
  trace.operation("gloo:all_reduce", 86, 10, 8);
  trace.range("Optimizer.step#AdamW.step", 100, 10);
  trace.operation("aten::add_", 101, 8);
  return trace;
}

TEST_CASE("operators of CPUs take the place of kernels: the innermost counts, on whatever thread", "[profiler]") {
  const StepTrace trace = trace_of_cpu().read();
  CHECK(trace.is_of_host);
  CHECK(trace.rank == 3);
  REQUIRE(trace.steps.size() == 1);
  const StepOfTrace& step = trace.steps[0];
  CHECK(step.step == 5);
  CHECK(step.has_optimizer);
  CHECK(step.seconds_in_all == Approx(110 * ms));
  CHECK(sum(step.seconds) == Approx(110 * ms));
  REQUIRE(step.passes.size() == 2);

  const PassOfTrace& forward = step.passes[0];
  CHECK(forward.micro_batch == 2);
  CHECK(forward.is_forward);
  CHECK(forward.begin_s == Approx(10 * ms));
  CHECK(forward.end_s == Approx(40 * ms));
  CHECK(sum(forward.seconds) == Approx(30 * ms));
  CHECK(seconds_of(forward.seconds, DeviceActivity::attention_forward) == Approx(6 * ms));
  CHECK(seconds_of(forward.seconds, DeviceActivity::product) == Approx(2 * ms));  // linear and addmm
  CHECK(seconds_of(forward.seconds, DeviceActivity::memory_bound) == Approx(5 * ms));
  CHECK(seconds_of(forward.seconds, DeviceActivity::send_recv) == Approx(3 * ms));
  CHECK(seconds_of(forward.seconds, DeviceActivity::idle) == Approx(14 * ms));

  const PassOfTrace& backward = step.passes[1];
  CHECK_FALSE(backward.is_forward);
  CHECK(seconds_of(backward.seconds, DeviceActivity::product) == Approx(10 * ms));
  CHECK(seconds_of(backward.seconds, DeviceActivity::memory_bound) == Approx(2 * ms));
  CHECK(seconds_of(backward.seconds, DeviceActivity::idle) == Approx(18 * ms));

  CHECK(seconds_of(step.seconds, DeviceActivity::all_reduce) == Approx(11 * ms));
  CHECK(seconds_of(step.seconds, DeviceActivity::memory_bound) == Approx((5 + 2 + 8) * ms));
}

TEST_CASE("a list of events without categories, as PyTorch without Kineto writes it, reads the same", "[profiler]") {
  const test::TemporaryFolder folder;
  const auto event = [](const char* name, int begin, int took, int thread) {
    return fmt::format(
        R"({{"name": "{}", "ph": "X", "ts": {}, "dur": {}, "tid": {}, "pid": "CPU functions", "args": {{}}}})", name,
        begin, took, thread);
  };
  const std::string text = "[" + event("hdpsim:0/rank/1", 0, 100, 1) + "," + event("hdpsim:0/0/forward", 10, 50, 1) +
                           "," + event("aten::mm", 20, 30, 1) +
                           R"(, {"name": "a kernel", "ph": "X", "ts": 0, "dur": 9, "pid": "CUDA functions"}])";
  std::ofstream(folder.path() / "rank9.json") << text;
  const StepTrace trace = read_step_trace(folder.path() / "rank9.json");
  CHECK(trace.is_of_host);
  CHECK(trace.rank == 1);
  REQUIRE(trace.steps.size() == 1);
  REQUIRE(trace.steps[0].passes.size() == 1);
  CHECK(seconds_of(trace.steps[0].passes[0].seconds, DeviceActivity::product) == Approx(30e-6));
  CHECK(seconds_of(trace.steps[0].seconds, DeviceActivity::idle) == Approx(70e-6));
}

constexpr char gemm[] = "nvjet_tst_128x256";
constexpr char add[] = "void at::native::vectorized_elementwise_kernel<4>";
constexpr char send[] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)";

// The host launches forward from 0 to 2 ms and backward, by a thread of autograd, from 2 to 4; the device runs 8 ms of
// forward from 1 on and 12 ms of backward from 10 on, with a message that outlasts the kernels by 2 ms.
RangedTrace trace_of_gpu() {
  RangedTrace trace;
  trace.range("hdpsim:0/rank/0", 0, 5);
  trace.range("hdpsim:0/4/forward", 0, 2);
  trace.range("hdpsim:attention/forward", 1, 0.5);
  trace.range("hdpsim:0/4/backward", 2, 2);
  trace.kernel(gemm, 1, 3, 0.5);
  trace.kernel(add, 4, 4, 1.2);  // within attention
  trace.kernel(add, 8, 1, 1.8);
  trace.kernel(gemm, 10, 10, 2.5, 77);
  trace.kernel(send, 12, 10, 3, 77, 20);
  return trace;
}

void check_gpu(const StepTrace& trace) {
  CHECK_FALSE(trace.is_of_host);
  CHECK(trace.outside == 0);
  REQUIRE(trace.steps.size() == 1);
  const StepOfTrace& step = trace.steps[0];
  CHECK(step.seconds_in_all == Approx(22 * ms));  // to the end of the message
  CHECK(sum(step.seconds) == Approx(22 * ms));
  REQUIRE(step.passes.size() == 2);
  const PassOfTrace& forward = step.passes[0];
  CHECK(forward.micro_batch == 4);
  CHECK(forward.is_forward);
  CHECK(forward.begin_s == Approx(1 * ms));
  CHECK(forward.end_s == Approx(9 * ms));
  CHECK(seconds_of(forward.seconds, DeviceActivity::product) == Approx(3 * ms));
  CHECK(seconds_of(forward.seconds, DeviceActivity::attention_forward) == Approx(4 * ms));
  CHECK(seconds_of(forward.seconds, DeviceActivity::memory_bound) == Approx(1 * ms));
  const PassOfTrace& backward = step.passes[1];
  CHECK_FALSE(backward.is_forward);
  CHECK(backward.begin_s == Approx(10 * ms));
  CHECK(backward.end_s == Approx(22 * ms));
  CHECK(seconds_of(backward.seconds, DeviceActivity::product) == Approx(10 * ms));
  CHECK(seconds_of(backward.seconds, DeviceActivity::send_recv) == Approx(2 * ms));  // what no kernel hides
  CHECK(seconds_of(step.seconds, DeviceActivity::idle) == Approx(2 * ms));           // before, and between the passes
}

TEST_CASE("a kernel belongs to the pass in whose time the host launched it, from any thread", "[profiler]") {
  check_gpu(trace_of_gpu().read());
}

TEST_CASE("where the profiler lays ranges on streams, kernels belong to those", "[profiler]") {
  RangedTrace trace = trace_of_gpu();
  trace.on_stream("hdpsim:0/4/forward", 1, 8, 7);
  trace.on_stream("hdpsim:attention/forward", 4, 4, 7);
  check_gpu(trace.read());

  // Here no launch is known: forward has its kernels by the range on its stream, and the rest is in no pass.
  RangedTrace without;
  without.range("hdpsim:0/rank/0", 0, 25);
  without.range("hdpsim:0/4/forward", 0, 2);
  without.range("hdpsim:0/4/backward", 2, 2);
  without.on_stream("hdpsim:0/4/forward", 1, 8, 7);
  without.kernel(gemm, 1, 8, -1);
  without.kernel(gemm, 10, 10, -1);
  const StepTrace read = without.read();
  CHECK(read.outside == 1);
  REQUIRE(read.steps.at(0).passes.size() == 1);
  CHECK(seconds_of(read.steps[0].passes[0].seconds, DeviceActivity::product) == Approx(8 * ms));
  CHECK(seconds_of(read.steps[0].seconds, DeviceActivity::product) == Approx(18 * ms));
}

TEST_CASE("traces of several steps keep them apart, and those without ranges of steps go by their passes",
          "[profiler]") {
  RangedTrace trace;
  for (const int step : {6, 7}) {
    const double begin = 100.0 * (step - 6);
    trace.range(fmt::format("hdpsim:{}/0/forward", step), begin, 10);
    trace.operation("aten::mm", begin, 4.0 * (step - 5));
    trace.range(fmt::format("hdpsim:{}/0/backward", step), begin + 10, 10);
    trace.range(fmt::format("hdpsim:{}/reduce", step), begin + 20, 5);
  }
  const StepTrace read = trace.read();
  CHECK(read.rank == 0);  // of "distributedInfo"
  REQUIRE(read.steps.size() == 2);
  for (const StepOfTrace& step : read.steps) {
    CHECK(step.seconds_in_all == Approx(25 * ms));
    CHECK_FALSE(step.has_optimizer);
    CHECK(step.passes.size() == 2);
  }
  CHECK(seconds_of(read.steps[1].passes[0].seconds, DeviceActivity::product) == Approx(8 * ms));
}

TEST_CASE("ranges are found in plain and compressed traces without reading them", "[profiler]") {
  const test::TemporaryFolder folder;
  KinetoTrace trace;
  trace.kernel(gemm, 0, 1, 0, 0);
  CHECK_FALSE(has_training_ranges(trace.write(folder.path() / "without.json.gz")));
  // So that the name lies across the blocks in which the file is read.
  for (int i = 0; i < 3; ++i) trace.raw("{\"padding\": \"" + std::string(699'000 + 17 * i, 'x') + "\"}");
  trace.raw(
      R"({"ph": "X", "cat": "user_annotation", "name": "hdpsim:0/reduce", "ts": 0, "dur": 1, "pid": 1, "tid": 1})");
  CHECK(has_training_ranges(trace.write(folder.path() / "with.json.gz")));
  CHECK(has_training_ranges(trace.write(folder.path() / "with.json")));
}

}  // namespace
}  // namespace hdpsim
