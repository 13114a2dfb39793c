#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/spec/command.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE("comm prints what nccl-tests prints", "[comm]") {
  const Workplace here;
  const Outcome outcome = here.hdpsim("comm all_reduce --cluster h100-rail -g 1024 -b 8 -e 8G -f 2");
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  CHECK_THAT(outcome.out, Contains("all_reduce of 1024 ranks on 128 nodes of h100-rail, simulated"));
  for (const char* column : {"size", "count", "type", "redop", "root", "time", "algbw", "busbw"}) {
    CHECK_THAT(outcome.out, Contains(column));
  }
  // 8 B to 8 GiB by doubling: 31 sizes, besides three lines above and one below.
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 31 + 4);
  CHECK_THAT(outcome.out, Contains("# Avg bus bandwidth"));
}

TEST_CASE("what comm prints as JSON can be compared with", "[comm]") {
  const Workplace here;
  const Outcome outcome = here.hdpsim("comm all_gather -g 16 -b 1M -e 64M -f 8 --format json");
  REQUIRE(outcome.code == 0);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json.at("simulated") == true);
  REQUIRE(json.at("results").size() == 3);
  const auto& row = json["results"][0];
  CHECK(row.at("size") == 1048576);
  CHECK(row.at("count") == 1048576 / 4 / 16);
  const double seconds = row.at("out_of_place").at("time").get<double>() * 1e-6;
  CHECK(row["out_of_place"].at("alg_bw").get<double>() == Approx(1048576 / seconds / 1e9));
  CHECK(row["out_of_place"].at("bus_bw").get<double>() == Approx(1048576 / seconds / 1e9 * 15 / 16));
}

TEST_CASE("measured times of nccl-tests stand beside the simulated ones", "[comm]") {
  const Workplace here;
  std::ofstream(here.folder() / "all_reduce.txt")
      << R"(# nThread 1 nGpus 8 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid  1 on  a device  0 [0x1b] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  1 on  a device  1 [0x43] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    50.00   20.97   20.97      0    50.00   20.97   20.97      0
     2097152        524288     float     sum      -1    60.00   34.95   34.95      0    60.00   34.95   34.95      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 27.96
#
)";
  const Outcome outcome = here.hdpsim("comm all_reduce -g 2 --compare all_reduce.txt");
  CHECK(outcome.err.empty());
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("measured") && Contains("50.00") && Contains("60.00"));
  const Outcome other = here.hdpsim("comm all_gather -g 2 --compare all_reduce.txt");
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Contains("holds no all_gather of 2 ranks"));
}

TEST_CASE("a pattern names the links that hold it back", "[comm]") {
  const Workplace here;
  const Outcome outcome = here.hdpsim("comm incast -g 64");
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("incast of 64 gpus on h100-rail: 63 messages"));
  CHECK_THAT(outcome.out, Contains("node 0 nic 0 in") && Contains("100.0%"));
}

TEST_CASE("other traffic slows what shares links with it", "[comm]") {
  const Workplace here;
  const Outcome outcome = here.hdpsim("comm all_reduce -g 1024 -b 1G -e 1G --background permutation@0-1023");
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("# other traffic leaves"));
}

TEST_CASE("a pattern is written for SimGrid: its links, its messages and when they arrive here", "[comm]") {
  const Workplace here;
  const Outcome outcome = here.hdpsim("comm incast -g 16 --size 1M --simgrid incast");
  REQUIRE(outcome.code == 0);
  CHECK(files_in(here.folder() / "incast") == std::vector<std::string>{"messages.csv", "platform.xml"});
  const std::string platform = here.read("incast/platform.xml");
  CHECK_THAT(platform, Contains("<link id=\"node 0 nic 0 in\" bandwidth=\"50000000000Bps\" latency=\"0s\"/>"));
  CHECK_THAT(platform, Contains("<route src=\"message 14 from gpu 15\" dst=\"message 14 to gpu 0\" symmetrical=\"NO\">"
                                "<link_ctn id=\"node 1 nic 7 out\"/><link_ctn id=\"node 0 nic 0 in\"/></route>"));
  const std::string messages = here.read("incast/messages.csv");
  CHECK(std::count(messages.begin(), messages.end(), '\n') == 1 + 15);
  CHECK_THAT(messages, StartsWith("sender,receiver,bytes,latency_s,arrival_s\n"
                                  "message 0 from gpu 1,message 0 to gpu 0,1048576,"));
}

TEST_CASE("what SimGrid could not end is not written for it", "[comm]") {
  const Workplace here;
  const Outcome endless = here.hdpsim("comm ring -g 16 --simgrid ring --background ring@0-15");
  CHECK(endless.code == 2);
  CHECK_THAT(endless.err, Contains("--simgrid cannot be combined with --background"));
  const Outcome collective = here.hdpsim("comm all_reduce -g 16 --simgrid ring");
  CHECK(collective.code == 2);
  CHECK_THAT(collective.err, Contains("all_reduce is not simulated message by message"));
  CHECK_FALSE(fs::exists(here.folder() / "ring"));
}

TEST_CASE("what comm cannot do is told with what to write instead", "[comm]") {
  const Workplace here;
  const auto problem = [&](const std::string& arguments) {
    const Outcome outcome = here.hdpsim("comm " + arguments);
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  CHECK_THAT(problem("all_reduce -g 12"),
             Contains("12 gpus are not a whole number of nodes of 8") && Contains("write -g 8"));
  CHECK_THAT(problem("all_reduce -b 8X"), Contains("-b 8X is no size"));
  CHECK_THAT(problem("ring --background permutation"), Contains("write a pattern and who takes part"));
  CHECK_THAT(problem("ring --background permutation@16-7"), Contains("is no traffic"));
  CHECK_THAT(problem("all_gather --algo tree"), Contains("all_gather has no such algorithm"));
  CHECK_THAT(problem("gossip"), Contains("gossip"));
  CHECK_THAT(problem("ring --cluster h100-rial"), Contains("h100-rial"));
}

}  // namespace
}  // namespace hdpsim::spec
