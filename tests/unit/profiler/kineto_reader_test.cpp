#include "sim/profiler/profiler_readers.h"

#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/file_text.h"
#include "tests/support/kineto_trace.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;
using test::KinetoTrace;

struct ReadTrace {
  ProfilerHeader header;
  std::vector<ProfilerEvent> events;
};

ReadTrace read(const fs::path& path) {
  ReadTrace result;
  result.header = read_kineto(path, [&](ProfilerEvent& event) { result.events.push_back(event); });
  return result;
}

/// What a person is told of a file with this text.
std::string refusal(const std::string& text, const std::string& name = "trace.json") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / name;
  std::ofstream(path, std::ios::binary) << text;
  try {
    static_cast<void>(read(path));
  } catch (const InputError& error) {
    std::string told = error.what();
    const std::string where = folder.path().string() + "/";
    for (std::size_t at = told.find(where); at != std::string::npos; at = told.find(where))
      told.erase(at, where.size());
    return told;
  }
  return "nothing";
}

KinetoTrace small_trace() {
  KinetoTrace trace;
  const auto id = trace.operation("aten::mm", "[[4096, 1024], [1024, 512]]", R"(["c10::BFloat16", "c10::BFloat16"])");
  trace.kernel("nvjet_tst", 10, 20, id, trace.launch(5));
  trace.kernel("ncclDevKernel_AllGather_RING_LL", 40, 7.5, id, 0, 17,
               KinetoTrace::message("_allgather_base", 1000, 8000, 8, "[0, 1, 2, 3, 4, 5, 6, 7]"));
  return trace;
}

TEST_CASE("a trace is read with its device, its job and its events", "[profiler]") {
  const test::TemporaryFolder folder;
  const ReadTrace plain = read(small_trace().write(folder.path() / "trace.json"));
  REQUIRE(plain.header.devices.size() == 8);
  CHECK(plain.header.devices[0] == ProfiledDevice{"NVIDIA H100 80GB HBM3", 132, 85028765696});
  CHECK(plain.header.nccl == "2.21.5");
  REQUIRE(plain.events.size() == 4);
  CHECK(plain.events[0].dims == std::vector<InputDims>{{4096, 1024}, {1024, 512}});
  CHECK(plain.events[0].types == std::vector<std::string>{"c10::BFloat16", "c10::BFloat16"});
  CHECK(plain.events[2].category == "kernel");
  CHECK(plain.events[2].begin_us == 10);
  CHECK(plain.events[2].duration_us == 20);
  CHECK(plain.events[2].external_id == plain.events[0].external_id);
  CHECK(plain.events[2].correlation == plain.events[1].correlation);
  CHECK(plain.events[3].elements_out == 8000);
  CHECK(plain.events[3].type == "BFloat16");
  CHECK(plain.events[3].group_ranks == "[0, 1, 2, 3, 4, 5, 6, 7]");

  SECTION("compressed, it is the same") {
    const ReadTrace compressed = read(small_trace().write(folder.path() / "trace.json.gz"));
    CHECK(compressed.events.size() == plain.events.size());
    CHECK(compressed.header.devices == plain.header.devices);
  }
}

TEST_CASE("a list of tensors has no dimensions, a number among inputs has none either", "[profiler]") {
  KinetoTrace trace;
  trace.operation("aten::cat", "[[[2, 3], [4, 3]], []]", R"(["TensorList", "Scalar"])", R"(["", "1"])");
  const test::TemporaryFolder folder;
  const ReadTrace result = read(trace.write(folder.path() / "trace.json"));
  REQUIRE(result.events.size() == 1);
  CHECK(result.events[0].dims == std::vector<InputDims>{{}, {}});
  CHECK(result.events[0].concrete == std::vector<std::string>{"", "1"});
}

TEST_CASE("a trace may be a mere list of events", "[profiler]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "trace.json";
  std::ofstream(path) << R"([{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {}}])";
  CHECK(read(path).events.size() == 1);
}

TEST_CASE("a trace that was cut off is told with the place where it ends", "[profiler]") {
  const std::string whole = small_trace().text();
  const std::string told = refusal(whole.substr(0, whole.find("nvjet")));
  CHECK(told.find("trace.json:10:") != std::string::npos);  // its third event: 7 lines stand before the first
  CHECK(told.find("the trace ends here: it is not whole") != std::string::npos);
}

TEST_CASE("a compressed trace that was cut off is told with the place that was reached", "[profiler]") {
  const test::TemporaryFolder folder;
  KinetoTrace trace;
  for (int i = 0; i < 5000; ++i) trace.kernel(fmt::format("k{}", i * 7919 % 5000), i, 0.5, i, i);
  const std::string bytes = test::text_of(trace.write(folder.path() / "whole.json.gz"));
  const std::string told = refusal(bytes.substr(0, bytes.size() / 2), "cut.json.gz");
  CHECK(told.find("cut.json.gz:") != std::string::npos);
  CHECK(told.find("its compression is damaged") != std::string::npos);
}

TEST_CASE("what is no trace is told", "[profiler]") {
  CHECK(refusal("").find("the trace ends here") != std::string::npos);
  CHECK(refusal("steps: 3\n").find("trace.json:1:2: error: this is no JSON") != std::string::npos);
  CHECK(refusal("\x1f\x8b\x08").find("this is no JSON") != std::string::npos);
  CHECK(refusal("\x1f\x8b\x08").find("a compressed trace ends in .gz") != std::string::npos);
  CHECK(refusal("{\"steps\": 3}").find("it has no 'traceEvents'") != std::string::npos);
  CHECK(refusal("{\"traceEvents\": 3}").find("it has no 'traceEvents'") != std::string::npos);
  CHECK(refusal(std::string(100, '[')).find("more than 64 levels") != std::string::npos);
  CHECK(refusal(R"({"traceEvents": [{"name": ")" + std::string(17 << 20, 'x')).find("no value ends within 16 MiB") !=
        std::string::npos);
}

TEST_CASE("all events with wrong types are told, each at its place", "[profiler]") {
  KinetoTrace trace;
  trace.raw(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": "soon", "dur": 1})");
  trace.raw(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1})");
  trace.raw(R"({"ph": "X", "cat": "kernel", "ts": 1, "dur": 1})");
  trace.raw(R"({"ph": "X", "cat": "kernel", "name": 5, "ts": 1, "dur": 1})");
  trace.raw(R"({"ph": "X", "cat": "gpu_memcpy", "name": "k", "ts": 1, "dur": -1})");
  trace.raw(R"({"ph": "X", "cat": "cpu_op", "name": "k", "ts": 1e300, "dur": 1})");
  trace.raw(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 600000001})");
  trace.raw(R"({"ph": "i", "cat": "kernel"})");
  trace.raw("7");
  const std::string told = refusal(trace.text());
  CHECK(told.find("trace.json:8:4: error: an event of the trace cannot be read: its 'ts' is no number") !=
        std::string::npos);
  CHECK(told.find("trace.json:9:4: error: an event of the trace cannot be read: it has no 'dur'") != std::string::npos);
  CHECK(told.find("trace.json:10:4: error: an event of the trace cannot be read: it has no 'name'") !=
        std::string::npos);
  CHECK(told.find("trace.json:11:4: error: an event of the trace cannot be read: its 'name' is a number") !=
        std::string::npos);
  CHECK(told.find("trace.json:12:4: error: an event of the trace cannot be read: its duration is negative") !=
        std::string::npos);
  CHECK(told.find("trace.json:13:4: error: an event of the trace cannot be read: its 'ts' is 1e+300") !=
        std::string::npos);
  CHECK(told.find("trace.json:14:4: error: an event of the trace cannot be read: it runs on a device for more than ten "
                  "minutes") != std::string::npos);
  CHECK(told.find("trace.json:15") == std::string::npos);
}

TEST_CASE("of thousands of wrong events the first twenty are told, and the number of the others", "[profiler]") {
  KinetoTrace trace;
  for (int i = 0; i < 3000; ++i) trace.raw(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1})");
  CHECK(refusal(trace.text()).find("and 2980 more events") != std::string::npos);
}

TEST_CASE("progress goes from nothing to all of the file", "[profiler]") {
  const test::TemporaryFolder folder;
  const fs::path path = small_trace().write(folder.path() / "trace.json");
  std::vector<double> shares;
  static_cast<void>(read_kineto(
      path, [](ProfilerEvent&) {}, [&](double share) { shares.push_back(share); }));
  REQUIRE_FALSE(shares.empty());
  CHECK(shares.back() == 1);
}

}  // namespace
}  // namespace hdpsim
