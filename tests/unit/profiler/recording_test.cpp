#include "sim/profiler/recording.h"

#include <filesystem>
#include <numeric>

#include "sim/profiler/impl/rank_trace.h"
#include "tests/support/catch.h"
#include "tests/support/kineto_trace.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

using test::KinetoTrace;

constexpr char mm_dims[] = "[[4096, 1024], [1024, 512]]";
constexpr char mm_types[] = R"(["c10::BFloat16", "c10::BFloat16"])";
constexpr char product_name[] = "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT";
constexpr char all_gather[] = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
constexpr char node[] = "[0, 1, 2, 3, 4, 5, 6, 7]";

Recording recorded(const std::vector<KinetoTrace>& traces, const RecordingOptions& options = {}) {
  const test::TemporaryFolder folder;
  std::vector<std::filesystem::path> files;
  for (const KinetoTrace& trace : traces) {
    files.push_back(trace.write(folder.path() / fmt::format("rank{}.json", files.size())));
  }
  return read_recording(files, options);
}

const KernelSamples& only_product(const Recording& recording) {
  REQUIRE(recording.products.size() == 1);
  return recording.products.begin()->second;
}

Approx about(double seconds) {
  return Approx(seconds).epsilon(1e-6);
}

TEST_CASE("kernels have the shape of the operation that launched them", "[profiler]") {
  KinetoTrace trace;
  const auto id = trace.operation("aten::mm", mm_dims, mm_types);
  trace.kernel(product_name, 100, 50, id, 0);
  trace.kernel("void cublasLt::splitKreduce_kernel<32, 16, int>", 151, 4, id, 0);
  const Recording recording = recorded({trace});
  const KernelSamples& samples = only_product(recording);
  CHECK(samples.alone.quantile(0.5) == about(54e-6));  // both kernels belong to the product
  CHECK(samples.kernels == 2);
  const ClassTime& products = recording.classes[static_cast<std::size_t>(KernelClass::product)];
  CHECK(products.kernels == 2);
  CHECK(products.with_shape_s == about(products.seconds));
}

TEST_CASE("kernels of one operation that are of another class are none of its time", "[profiler]") {
  KinetoTrace trace;
  const auto id = trace.operation("aten::mm", mm_dims, mm_types);
  trace.kernel("void at::native::vectorized_elementwise_kernel<4>", 90, 5, id, 0);
  trace.kernel(product_name, 100, 50, id, 0);
  CHECK(only_product(recorded({trace})).alone.quantile(0.5) == about(50e-6));
}

TEST_CASE("a product beside a collective is told from one alone, and one beside another kernel is neither",
          "[profiler]") {
  KinetoTrace trace;
  const auto mm = [&](double begin, double took, int stream) {
    trace.kernel(product_name, begin, took, trace.operation("aten::mm", mm_dims, mm_types), 0, stream);
  };
  mm(0, 50, 7);
  trace.kernel(all_gather, 100, 100, 0, 0, 17);
  mm(110, 60, 7);  // all of it beside the collective
  mm(180, 40, 7);  // half of it
  mm(300, 50, 7);  // beside a kernel of another stream
  mm(320, 50, 8);
  const Recording recording = recorded({trace});
  const KernelSamples& samples = only_product(recording);
  CHECK(samples.alone.count() == 1);
  CHECK(samples.alone.quantile(0.5) == about(50e-6));
  CHECK(samples.overlapped.count() == 1);
  CHECK(samples.overlapped.quantile(0.5) == about(60e-6));
}

TEST_CASE("messages have bytes as nccl-tests counts them, ranks, and the link that they cross", "[profiler]") {
  KinetoTrace trace;
  trace.kernel(all_gather, 0, 100, 0, 0, 17, KinetoTrace::message("_allgather_base", 1000, 8000, 8, node));
  trace.kernel("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", 200, 100, 0, 0, 17,
               KinetoTrace::message("_reduce_scatter_base", 8000, 1000, 8, node, "Float"));
  trace.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 400, 100, 0, 0, 17,
               KinetoTrace::message("allreduce", 500, 500, 4, "[0, 8, 16, 24]"));
  const Recording recording = recorded({trace});
  CHECK(recording.messages.size() == 3);
  CHECK(recording.messages.contains({MessageKind::all_gather, 8, 16000, LinkKind::nvlink}));
  CHECK(recording.messages.contains({MessageKind::reduce_scatter, 8, 32000, LinkKind::nvlink}));
  CHECK(recording.messages.contains({MessageKind::all_reduce, 4, 1000, LinkKind::network}));
}

TEST_CASE("older traces name the collective at the operation alone", "[profiler]") {
  KinetoTrace trace;
  trace.raw(R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 1, "dur": 1, )"
            R"("args": {"External id": 5, )" +
            KinetoTrace::message("allreduce", 500, 500, 8, node) + "}}");
  trace.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 400, 100, 5, 0, 17);
  CHECK(recorded({trace}).messages.contains({MessageKind::all_reduce, 8, 1000, LinkKind::nvlink}));
}

TEST_CASE("who shares a node is what the ranks of a group and the GPUs of a node say", "[profiler]") {
  CHECK(link_among(node, 8, 8) == LinkKind::nvlink);
  CHECK(link_among("[8, 9, 15]", 3, 8) == LinkKind::nvlink);
  CHECK(link_among("[7, 8]", 2, 8) == LinkKind::network);
  CHECK(link_among("[0, 1, ..., 31]", 32, 8) == LinkKind::network);
  CHECK_FALSE(link_among("", 4, 8).has_value());
  CHECK_FALSE(link_among("[0, 1]", 2, 0).has_value());  // the trace lists no devices
}

TEST_CASE("of the ranks of a collective the last to come shows how long the transfer takes", "[profiler]") {
  // Two ranks: each is late in turn, by 500 us, for which the other waits. The transfer takes 100 us.
  std::vector<KinetoTrace> ranks(2);
  for (int i = 0; i < 10; ++i) {
    for (int rank = 0; rank < 2; ++rank) {
      ranks[static_cast<std::size_t>(rank)].kernel(all_gather, 1000 * i, i % 2 == rank ? 100 : 600, 0, 0, 17,
                                                   KinetoTrace::message("_allgather_base", 500, 1000, 2, "[0, 1]"));
    }
  }
  const Recording recording = recorded(ranks);
  REQUIRE(recording.messages.size() == 1);
  const MessageSamples& samples = recording.messages.begin()->second;
  CHECK(samples.seconds.count() == 20);
  CHECK(samples.of_all_ranks.count() == 10);
  CHECK(samples.transfer_s() == about(100e-6));

  SECTION("one trace alone has its shortest kernels") {
    const Recording one = recorded({ranks[0]});
    CHECK(one.messages.begin()->second.of_all_ranks.empty());
    CHECK(one.messages.begin()->second.transfer_s() == about(100e-6));
  }
}

TEST_CASE("a gap is the device's only where the next kernel waited for it", "[profiler]") {
  KinetoTrace trace;
  const auto at = [&](double launched, double begin, double took) {
    trace.kernel(product_name, begin, took, 0, trace.launch(launched));
  };
  at(0, 100, 50);
  at(10, 152, 50);   // queued long before: 2 us
  at(203, 210, 50);  // launched after the one before it had ended
  CHECK(recorded({trace}).gaps.count() == 1);
  CHECK(recorded({trace}).gaps.quantile(0.5) == about(2e-6));
}

TEST_CASE("the host's time to issue is that between launches, without waiting", "[profiler]") {
  KinetoTrace trace;
  for (int i = 0; i < 50; ++i) trace.launch(10.0 * i);
  trace.raw(R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 100, "tid": 100, "ts": 495, )"
            R"("dur": 300, "args": {"correlation": 999}})");
  for (int i = 0; i < 50; ++i) trace.launch(800 + 10.0 * i);
  trace.launch(100'000);  // after the next batch has come
  trace.kernel(product_name, 0, 1, 0, 0);
  const Recording recording = recorded({trace});
  CHECK(recording.issues.count() == 98);
  CHECK(recording.issues.mean() == about(10e-6));
}

TEST_CASE("every moment of a device is one activity, kernels before messages", "[profiler]") {
  KinetoTrace trace;
  trace.kernel(product_name, 0, 100, 0, 0, 7);
  trace.kernel(all_gather, 50, 100, 0, 0, 17);  // 50 us of it are exposed
  trace.kernel(product_name, 200, 10, 0, 0, 7);
  trace.step(3, 0, 210);
  const Recording recording = recorded({trace});
  REQUIRE(recording.ranks.size() == 1);
  const RankRecording& rank = recording.ranks[0];
  const auto seconds = [&](DeviceActivity activity) { return rank.seconds[static_cast<std::size_t>(activity)]; };
  CHECK(seconds(DeviceActivity::product) == about(110e-6));
  CHECK(seconds(DeviceActivity::all_gather) == about(50e-6));
  CHECK(seconds(DeviceActivity::idle) == about(50e-6));
  CHECK(rank.span_s == about(210e-6));
  CHECK(std::accumulate(rank.seconds.begin(), rank.seconds.end(), 0.0) == about(rank.span_s));
  CHECK(rank.steps_s.size() == 1);
}

TEST_CASE("copies count from pinned memory, in one direction at a time", "[profiler]") {
  KinetoTrace trace;
  trace.copy("Memcpy DtoH (Device -> Pinned)", 0, 100, 1'000'000);
  trace.copy("Memcpy HtoD (Pageable -> Device)", 200, 100, 1'000'000);
  trace.copy("Memcpy DtoH (Device -> Pinned)", 400, 100, 2'000'000, 20);
  trace.copy("Memcpy HtoD (Pinned -> Device)", 450, 100, 2'000'000, 21);
  const Recording recording = recorded({trace});
  REQUIRE(recording.copies.size() == 1);
  CHECK(recording.copies.begin()->first == TracedCopy{CopyKind::d2h, 1'000'000});
}

TEST_CASE("kernels of two devices in one trace are refused", "[profiler]") {
  KinetoTrace trace;
  trace.kernel(product_name, 0, 100, 0, 0);
  trace.raw(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {"device": 1, "stream": 7}})");
  CHECK_THROWS_WITH(recorded({trace}), Catch::Matchers::Contains("a kernel of device 1 among those of device 0"));
}

TEST_CASE("a message that takes no time says nothing of its link", "[profiler]") {
  KinetoTrace trace;
  const auto gather = [&](double begin, double took) {
    trace.kernel(all_gather, begin, took, 0, 0, 17, KinetoTrace::message("_allgather_base", 1000, 8000, 8, node));
  };
  gather(0, 0);
  gather(200, 100);
  const Recording recording = recorded({trace});
  REQUIRE(recording.messages.size() == 1);
  CHECK(recording.messages.begin()->second.seconds.count() == 1);
  CHECK(recording.messages.begin()->second.transfer_s() == about(100e-6));
}

TEST_CASE("a trace that is given twice, under whatever name, is refused", "[profiler]") {
  const test::TemporaryFolder folder;
  KinetoTrace trace;
  trace.kernel(product_name, 0, 100, 0, 0);
  const std::filesystem::path file = trace.write(folder.path() / "rank0.json");
  const std::filesystem::path link = folder.path() / "rank1.json";
  std::filesystem::create_symlink(file, link);
  CHECK_THROWS_WITH(read_recording({file, file}),
                    Catch::Matchers::Contains("rank0.json: error: this trace is given twice"));
  CHECK_THROWS_WITH(read_recording({file, link}),
                    Catch::Matchers::Contains("rank1.json: error: this trace is given twice"));
}

TEST_CASE("a trace without kernels is refused", "[profiler]") {
  KinetoTrace trace;
  trace.operation("aten::mm", mm_dims, mm_types);
  CHECK_THROWS_WITH(recorded({trace}), Catch::Matchers::Contains("the trace has no kernels of a GPU"));
}

TEST_CASE("samples are thinned evenly, and counted all", "[profiler]") {
  SampleSet set;
  for (int i = 0; i < 100'000; ++i) set.add(i);
  CHECK(set.count() == 100'000);
  CHECK(set.kept().size() <= 4096);
  CHECK(set.mean() == Approx(49999.5));
  CHECK(set.quantile(0.5) == Approx(50'000).epsilon(0.01));
  CHECK(set.quantile(0.1) == Approx(10'000).epsilon(0.02));
}

}  // namespace
}  // namespace hdpsim
