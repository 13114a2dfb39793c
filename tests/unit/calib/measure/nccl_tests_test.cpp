#include "calib/measure/nccl_tests.h"

#include <fmt/format.h>

#include <functional>

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

Result parsed(const std::string& text, const std::string& file = "out.txt", const NcclTestsAsked& asked = {}) {
  Diagnostics diagnostics;
  Result result{parse_nccl_tests(file, text, diagnostics, asked), ""};
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
  CHECK_THAT(parsed(text, "out.txt").problems, Catch::Contains("the output does not say which collective this is"));
}

// Every line behind what `prefix` makes for its number.
std::string behind(const std::string& text, const std::function<std::string(int)>& prefix) {
  std::string result;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    result += prefix(number++) + text.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

TEST_CASE("what launchers and logs put before every line is no part of it", "[nccl_tests]") {
  const std::vector<std::function<std::string(int)>> prefixes = {
      [](int) { return " 0: "; },              // srun -l
      [](int) { return "[1,0]<stdout>:"; },    // mpirun --tag-output
      [](int) { return "[0] "; },              // mpiexec -prepend-rank
      [](int) { return "node-0.cluster: "; },  // pdsh
      [](int) { return "worker-1  | "; },      // docker compose
      [](int) { return "[pod/nccl-0/launcher] "; },
      [](int line) { return fmt::format("2025-03-03T12:00:{:02}.{}Z ", line, 1 + 977 * line); },
      [](int line) { return fmt::format("Mar {:2} 09:{:02}:59 host nccl[4711]: ", 9 + line / 8, line); },
      [](int line) { return fmt::format("Mon Mar  3 12:00:{:02} 2025[1,0]<stdout>: ", line); },
  };
  for (const auto& prefix : prefixes) {
    const Result result = parsed(behind(all_reduce, prefix));
    CAPTURE(prefix(0), result.problems);
    REQUIRE(result.runs.size() == 1);
    CHECK(result.problems.empty());
    CHECK(result.runs.front().kind == MessageKind::all_reduce);
    CHECK(result.runs.front().ranks == 2);
    CHECK(result.runs.front().nccl == "2.28.9+cuda13.0");
    REQUIRE(result.runs.front().timings.size() == 2);
    CHECK(result.runs.front().timings[1].bytes == 4096);
    CHECK(result.runs.front().timings[1].timing.runs == 30);
  }
}

TEST_CASE("lines of other processes in between, behind other prefixes, are left out", "[nccl_tests]") {
  std::string text = behind(all_reduce, [](int) { return " 0: "; });
  text = replaced(text, " 0:         4096", "node-1:7:7 [1] NCCL INFO comm 0x1 rank 1\n 0:         4096");
  const Result result = parsed(text);
  CHECK(result.problems.empty());
  REQUIRE(result.runs.size() == 1);
  CHECK(result.runs.front().timings.size() == 2);
}

// The layout is that of nccl-tests 2.10.
constexpr char earlier[] =
    R"(# nThread 1 nGpus 2 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid   1584 on     node-1 device  0 [0x0f] A100-SXM4-40GB
#   Rank  1 Pid   1584 on     node-1 device  1 [0x10] A100-SXM4-40GB
#
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024           256   float     sum    12.50    0.08    0.08  5e-07    11.98    0.09    0.09  5e-07
        4096          1024   float     sum    25.00    0.16    0.16    N/A    12.46    0.33    0.33    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.17
)";

TEST_CASE("earlier releases state the largest deviation of a row, and below the table what failed", "[nccl_tests]") {
  const Result result = parsed(earlier, "all_reduce.txt");
  CHECK(result.problems.empty());
  REQUIRE(result.runs.size() == 1);
  CHECK(result.runs.front().ranks == 2);
  REQUIRE(result.runs.front().timings.size() == 2);
  CHECK(result.runs.front().timings[0].timing.median_s == Approx(12.5e-6));
  CHECK_THAT(parsed(replaced(earlier, ": 0 OK", ": 3 FAILED"), "all_reduce.txt").problems,
             Catch::Contains("all_reduce.txt:12:26: error: '3' results out of bounds"));
}

// 1 GB among 16 ranks: bus bandwidth is 2 x 15 / 16 of algorithm bandwidth.
constexpr char without_list[] =
    R"(# nThread 1 nGpus 1 minBytes 1G maxBytes 1G step: 2(factor) warmup iters: 5 iters: 20 validation: 1 graph: 0
#       size         count      type   redop    root     time   algbw   busbw #wrong
  1073741824     268435456     float     sum      -1   5818.1  184.55  346.03      0
)";

TEST_CASE("where the list of devices is missing, the ranks are those that are asked about", "[nccl_tests]") {
  const NcclTestsAsked sixteen{.collective = "all_reduce", .ranks = 16};
  const Result result = parsed(without_list, "out.txt", sixteen);
  CHECK(result.problems.empty());
  REQUIRE(result.runs.size() == 1);
  CHECK(result.runs.front().ranks == 16);
  CHECK(result.runs.front().timings.front().ranks == 16);
  CHECK_THAT(parsed(without_list, "all_reduce.txt").problems, Catch::Contains("how many ranks took part"));
  CHECK(parsed(earlier, "out.txt", {.collective = "all_reduce", .ranks = 4}).runs.front().ranks == 2);
  // Two runs, one behind the other.
  CHECK(parsed(std::string(without_list) + without_list, "out.txt", sixteen).runs.size() == 2);

  SECTION("unless the bandwidths are those of others, or of another collective") {
    CHECK_THAT(parsed(without_list, "out.txt", {.collective = "all_reduce", .ranks = 8}).problems,
               Catch::Contains("these are the bandwidths of an all_reduce of 16 ranks, not of 8"));
    CHECK_THAT(parsed(without_list, "out.txt", {.collective = "all_gather", .ranks = 16}).problems,
               Catch::Contains("these are not the bandwidths of an all_gather"));
  }
}

TEST_CASE("several runs of one process each that printed at once are no run of several ranks", "[nccl_tests]") {
  const std::string list =
      "#  Rank  0 Group  0 Pid   1585 on     node-1 device  1 [0000:10:00] NVIDIA H100 80GB HBM3\n";
  const Result result = parsed(replaced(all_reduce, "#  Rank  1 ", list + "#  Rank  1 "));
  CHECK_THAT(result.problems,
             Catch::Contains("out.txt:6:10: error: rank 0 is in this list a second time") && Catch::Contains("MPI=1"));
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
