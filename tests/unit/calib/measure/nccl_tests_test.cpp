#include "calib/measure/nccl_tests.h"

#include "tests/support/catch.h"

namespace hdpsim::calib {
namespace {

// The layout is that of nccl-tests 2.17; the times are made up.
constexpr char all_reduce[] =
    R"(# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 5 iters: 30 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1584 on     node-1 device  0 [0000:0f:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   1584 on     node-1 device  1 [0000:10:00] NVIDIA H100 80GB HBM3
NCCL version 2.28.9+cuda13.0
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           0             0     float     sum      -1     0.30    0.00    0.00       0     0.30    0.00    0.00       0
        1024           256     float     sum      -1    12.50    0.08    0.08       0    11.98    0.09    0.09       0
        4096          1024     float     sum      -1    25.00    0.16    0.16       0    12.46    0.33    0.33       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.17
#
# Collective test concluded: all_reduce_perf
)";

struct Result {
  std::vector<NcclTestsRun> runs;
  std::string problems;
};

Result parsed(const std::string& text, const std::string& file = "out.txt") {
  Diagnostics diagnostics;
  Result result{parse_nccl_tests(file, text, diagnostics), ""};
  result.problems = diagnostics.text();
  return result;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("the text of nccl-tests holds collective, ranks, version and out-of-place times", "[nccl_tests]") {
  const Result result = parsed(all_reduce);
  CHECK(result.problems.empty());
  REQUIRE(result.runs.size() == 1);
  const NcclTestsRun& run = result.runs.front();
  CHECK(run.kind == MessageKind::all_reduce);
  CHECK(run.ranks == 2);
  CHECK(run.link == LinkKind::nvlink);
  CHECK(run.nccl == "2.28.9+cuda13.0");
  REQUIRE(run.timings.size() == 2);  // not the size that rounds to nothing
  CHECK(run.timings[1].bytes == 4096);
  CHECK(run.timings[1].timing.median_s == Approx(25e-6));
  CHECK(run.timings[1].timing.runs == 30);
  CHECK(run.timings[1].kind == MessageKind::all_reduce);
  CHECK(run.timings[1].ranks == 2);
}

TEST_CASE("ranks on two hosts talk over the network", "[nccl_tests]") {
  const std::string text = replaced(all_reduce, "1584 on     node-1 device  1", "1584 on     node-2 device  0");
  const Result result = parsed(text);
  REQUIRE(result.runs.size() == 1);
  CHECK(result.runs.front().timings.front().link == LinkKind::network);
}

TEST_CASE("a file may hold several runs one after another", "[nccl_tests]") {
  const std::string second = replaced(all_reduce, "starting: all_reduce_perf", "starting: alltoall_perf");
  const Result result = parsed(all_reduce + second);
  CHECK(result.problems.empty());
  REQUIRE(result.runs.size() == 2);
  CHECK(result.runs[0].kind == MessageKind::all_reduce);
  CHECK(result.runs[1].kind == MessageKind::all_to_all);
  CHECK(result.runs[1].ranks == 2);
}

TEST_CASE("where the collective is not stated, the name of the file tells it", "[nccl_tests]") {
  const std::string text = replaced(all_reduce, "# Collective test starting: all_reduce_perf\n", "");
  const Result named = parsed(text, "runs/sendrecv_2gpus.txt");
  REQUIRE(named.runs.size() == 1);
  CHECK(named.runs.front().kind == MessageKind::send_recv);
  CHECK_THAT(parsed(text, "out.txt").problems, Catch::Contains("which collective this is stands nowhere"));
}

TEST_CASE("a row that is no measurement is reported at its place", "[nccl_tests]") {
  struct Case {
    std::string from, to, problem;
  };
  const Case bad = GENERATE(values<Case>(
      {{"25.00    0.16    0.16       0", "  -1    0.16    0.16       0",
        "out.txt:14:59: error: '-1' is no time in microseconds"},
       {"25.00    0.16    0.16       0", "25.00    0.16    0.16       7", "out.txt:14:85: error: '7' wrong results"},
       {"25.00    0.16    0.16       0    12.46", "25.00    0.16    0.16", "out.txt:14:9: error: this row has"},
       {"25.00", "  nan", "is no time in microseconds"}}));
  CAPTURE(bad.to);
  const Result result = parsed(replaced(all_reduce, bad.from, bad.to));
  CHECK_THAT(result.problems, Catch::Contains(bad.problem));
}

TEST_CASE("a single rank, a run without a row and an unknown collective are refused", "[nccl_tests]") {
  const std::string second_rank =
      "#  Rank  1 Group  0 Pid   1584 on     node-1 device  1 [0000:10:00] NVIDIA H100 80GB HBM3\n";
  CHECK_THAT(parsed(replaced(all_reduce, second_rank, "")).problems, Catch::Contains("a single rank copies"));
  const std::string text = all_reduce;
  CHECK_THAT(parsed(text.substr(0, text.find("           0 "))).problems, Catch::Contains("no row that can be used"));
  CHECK_THAT(parsed(replaced(all_reduce, "all_reduce_perf", "scatter_perf")).problems,
             Catch::Contains("out.txt:1:29: error: scatter_perf is no collective"));
}

TEST_CASE("what is no output of nccl-tests is refused", "[nccl_tests]") {
  CHECK_THAT(parsed("").problems, Catch::Contains("this is no output of nccl-tests"));
  CHECK_THAT(parsed("make: *** No rule to make target\n").problems, Catch::Contains("this is no output of nccl-tests"));
}

constexpr char json[] = R"({"version": "2.17.6", "nccl_version": 22809,
 "args": [".\/build\/reduce_scatter_perf", "-b", "1K", "-J", "out.json"],
 "config": {"iterations": 20, "devices": [
   {"rank": 0, "hostname": "node-1", "device": 0}, {"rank": 1, "hostname": "node-1", "device": 1}]},
 "results": [
   {"size": 1024, "count": 256, "type": "float",
    "out_of_place": {"time": 12.5, "alg_bw": 0.1, "bus_bw": 0.1, "nwrong": 0.000000}},
   {"size": 2048, "count": 512, "type": "float",
    "out_of_place": {"time": 25.0, "alg_bw": 0.1, "bus_bw": 0.1, "nwrong": "0"},
    "out_of_place_per_iter": {"times_us": [10, 20, 30, 40, 900]}}]})";

TEST_CASE("the JSON of nccl-tests reads as its text does", "[nccl_tests]") {
  const Result result = parsed(json, "out.json");
  CHECK(result.problems.empty());
  REQUIRE(result.runs.size() == 1);
  const NcclTestsRun& run = result.runs.front();
  CHECK(run.kind == MessageKind::reduce_scatter);
  CHECK(run.ranks == 2);
  REQUIRE(run.timings.size() == 2);
  CHECK(run.timings[0].bytes == 1024);
  CHECK(run.timings[0].timing.median_s == Approx(12.5e-6));
  CHECK(run.timings[0].timing.runs == 20);
  CHECK(run.timings[1].timing.median_s == Approx(30e-6));  // of the single iterations, where they are stated
  CHECK(run.timings[1].timing.runs == 5);
}

TEST_CASE("mistakes in the JSON are reported at their place", "[nccl_tests]") {
  CHECK_THAT(parsed(replaced(json, "\"time\": 12.5", "\"time\": \"nan\""), "out.json").problems,
             Catch::Contains("out.json:7:30: error: 'nan' is no time in microseconds"));
  CHECK_THAT(parsed(replaced(json, "\"nwrong\": 0.000000", "\"nwrong\": 3"), "out.json").problems,
             Catch::Contains("wrong results"));
  CHECK_THAT(parsed(replaced(json, "reduce_scatter_perf", "broadcast_perf"), "out.json").problems,
             Catch::Contains("broadcast_perf is no collective"));
  CHECK_THAT(parsed("{\"results\": 3}", "out.json").problems, Catch::Contains("there is no list of 'results'"));
  CHECK_FALSE(parsed("{\"results\": [", "out.json").problems.empty());
}

}  // namespace
}  // namespace hdpsim::calib
