#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

std::size_t lines_with(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.find(part) != std::string::npos ? 1 : 0;
  return count;
}

nlohmann::json rows_of(const Workplace& here, const std::string& arguments) {
  return nlohmann::json::parse(here.run("comm " + arguments + " --format json").out).at("results");
}

TEST_CASE("comm prints what nccl-tests prints", "[comm]") {
  const Workplace here;
  const Outcome outcome = here.run("comm all_reduce --cluster h100-rail -g 1024 -b 8 -e 8G -f 2");
  CHECK(outcome.err.empty());
  CHECK_THAT(outcome.out, Contains("all_reduce of 1024 ranks on 128 nodes of h100-rail, simulated"));
  for (const char* column : {"size", "count", "type", "redop", "root", "time", "algbw", "busbw"}) {
    CHECK_THAT(outcome.out, Contains(column));
  }
  // 8 B to 8 GiB by doubling: 31 sizes; all other lines are comments.
  CHECK(lines_with(outcome.out, "float     sum     -1") == 31);
  CHECK(lines_with(outcome.out, "") == 31 + lines_with(outcome.out, "#"));
  CHECK_THAT(outcome.out, Contains("# Fullest links, tree") && Contains("nic"));
  CHECK_THAT(outcome.out, Contains("# Avg bus bandwidth"));
}

TEST_CASE("what comm prints as JSON can be compared with", "[comm]") {
  const Workplace here;
  const auto json = nlohmann::json::parse(here.run("comm all_gather -g 16 -b 1M -e 64M -f 8 --format json").out);
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
  CHECK_THAT(here.refusal("comm all_gather -g 2 --compare all_reduce.txt"), Contains("holds no all_gather of 2 ranks"));
  // Where neither the text nor the name of the file tells the collective, it is that of the command line.
  fs::rename(here.folder() / "all_reduce.txt", here.folder() / "nccl.txt");
  CHECK(here.hdpsim("comm all_reduce -g 2 --compare nccl.txt").out == outcome.out);
}

TEST_CASE("a pattern names the links that hold it back", "[comm]") {
  const Workplace here;
  const Outcome outcome = here.run("comm incast -g 64");
  CHECK_THAT(outcome.out, Contains("incast of 64 gpus on h100-rail: 63 messages"));
  CHECK_THAT(outcome.out, Contains("node 0 nic 0 in") && Contains("100.0%"));
}

TEST_CASE("other traffic slows what shares links with it, by what it takes of the fullest", "[comm]") {
  const Workplace here;
  // GPUs 7 and 8, of two nodes, send to each other for ever: the rings of their NICs keep half of 50 GB/s.
  const auto row =
      rows_of(here, "all_gather -g 16 --profile none --algo ring --proto simple -b 1G -e 1G --background ring@7-8")[0];
  const double over_a_nic_us = 1073741824.0 * 15 / 16 / 8 / 50e9 * 1e6;
  CHECK(row.at("out_of_place").at("time").get<double>() - row.at("alone_us").get<double>() == Approx(over_a_nic_us));
  CHECK(row.at("bottleneck").at("used") == 1.0);
  CHECK_THAT(row["bottleneck"].at("first")[0].get<std::string>(), Contains("nic 0") || Contains("nic 7"));
  CHECK_THAT(here.run("comm all_reduce -g 1024 -b 1G -e 1G --background permutation@0-1023").out,
             Contains("alone") && Contains("100 % used"));
  // What runs elsewhere slows nothing.
  const auto apart = rows_of(here, "all_gather -g 16 -b 1G -e 1G --background incast@16-63")[0];
  CHECK(apart.at("out_of_place").at("time").get<double>() == Approx(apart.at("alone_us").get<double>()));
}

TEST_CASE("a narrow link holds collectives back and is named", "[comm]") {
  const Workplace here;
  std::ofstream(here.folder() / "cluster.yaml") << R"(device: H100-80GB
gpus: 32
node:
  gpus: 8
  gpu_memory: 80 GB
  host_memory: 2 TB
  nvlink: {bandwidth: 450 GB/s}
  nics: {count: 8, bandwidth: 400 Gbit/s}
  pcie: {bandwidth: 64 GB/s}
tiers:
  leaf: {fan_in: 32, latency: 0.3 us}
links: {node 1 nic 3 in: 0.25}
)";
  const std::string ring = " -g 32 --profile none --algo ring --proto simple -b 1G -e 1G";
  const auto narrow = rows_of(here, "all_gather --cluster cluster.yaml" + ring)[0];
  const auto whole = rows_of(here, "all_gather" + ring)[0];
  CHECK(narrow.at("bottleneck").at("links") == 1);
  CHECK(narrow["bottleneck"].at("first")[0] == "node 1 nic 3 in");
  // Three quarters of its rate are missing: three times the bytes over a NIC more.
  CHECK(narrow.at("out_of_place").at("time").get<double>() - whole.at("out_of_place").at("time").get<double>() ==
        Approx(3 * 1073741824.0 * 31 / 32 / 8 / 50e9 * 1e6));
}

TEST_CASE("with a profile its own lines come first, and every row says what it rests on", "[comm]") {
  const Workplace here;
  const std::string node = " --cluster h200-rail -g 8 -b 1G -e 1G";
  const auto row = rows_of(here, "all_gather --profile h200-published" + node)[0];
  CHECK(row.at("rests_on") == "profile");
  // 21.2 us, seven steps of 3.4 us, 7/8 of the data at 357 GB/s.
  CHECK(row.at("out_of_place").at("time").get<double>() ==
        Approx(21.2 + 7 * 3.4 + 7.0 / 8 * 1073741824.0 / 357e9 * 1e6));
  CHECK(rows_of(here, "broadcast --profile h200-published" + node)[0].at("rests_on") == "NCCL's model");
  CHECK(rows_of(here, "all_gather --profile h200-published --algo ring" + node)[0].at("rests_on") == "NCCL's model");
  CHECK(rows_of(here, "all_reduce --cluster laptop-cpu -g 2 --profile epyc-cpu -b 1M -e 1M")[0].at("rests_on") ==
        "measured");
}

TEST_CASE("without --profile the profile of the cluster's device counts, as in a study, and the output says which",
          "[comm]") {
  const Workplace here;
  const std::string eight = "comm all_reduce -g 8 -b 8G -e 8G";
  const Outcome own = here.hdpsim(eight);
  CHECK_THAT(own.out, Contains("# rates of the profile h100-published"));
  CHECK(own.out == here.hdpsim(eight + " --profile h100-published").out);
  const Outcome bare = here.hdpsim(eight + " --profile none");
  CHECK_THAT(bare.out, Contains("# rates of the bare fabric, without a profile"));
  // 478 GB/s of bus bandwidth by the profile; the fabric alone would carry more.
  const auto bus = [&](const std::string& arguments) {
    return rows_of(here, arguments)[0].at("out_of_place").at("bus_bw").get<double>();
  };
  CHECK(bus("all_reduce -g 8 -b 8G -e 8G") == Approx(478).epsilon(0.01));
  CHECK(bus("all_reduce -g 8 -b 8G -e 8G --profile none") > 550);
  CHECK_THAT(here.hdpsim("comm permutation -g 16").out, Contains("rates of the profile h100-published"));
  const auto json = nlohmann::json::parse(here.hdpsim(eight + " --profile none --format json").out);
  CHECK(json.at("config").at("profile").is_null());
  // A device of which nobody has a profile is simulated bare, and this is said.
  std::ofstream(here.folder() / "own.yaml") << "{preset: h100-rail, device: X1, compute_capability: 9.0}\n";
  CHECK_THAT(here.run(eight + " --cluster own.yaml").err, Contains("not one shipped profile is of a X1"));
}

TEST_CASE("an all-to-all costs something for each peer, and for each round of messages", "[comm]") {
  const Workplace here;
  const auto us = [&](int gpus, const std::string& size) {
    const auto row = rows_of(here, fmt::format("alltoall -g {} -b {} -e {}", gpus, size, size))[0];
    return row.at("out_of_place").at("time").get<double>();
  };
  // 2.8 us of the proxy for each peer of another node.
  CHECK(us(64, "128K") > 56 * 2.8);
  CHECK(us(8192, "128K") > 8184 * 2.8);
  CHECK(us(8192, "128K") - us(1024, "128K") >= (8184 - 1016) * 2.8);
  // Large messages are as fast as their bytes on the NICs allow, 36 of 50 GB/s by the profile.
  CHECK(us(64, "8G") == Approx(8 * 1073741824.0 * 56 / 64 / 36e9 * 1e6).epsilon(0.01));
}

TEST_CASE("the device of a cluster decides what NCCL may do on it", "[comm]") {
  const Workplace here;
  const std::string nvls = "all_reduce --algo nvls -g 8 -b 1G -e 1G";
  CHECK(rows_of(here, nvls + " --cluster h100-rail")[0].at("algorithm") == "nvls");
  CHECK_THAT(here.refusal("comm " + nvls + " --cluster a100-rail-3tier"), Contains("no such algorithm"));
}

TEST_CASE("a pattern is written for SimGrid: its links, its messages and when they arrive here", "[comm]") {
  const Workplace here;
  here.run("comm incast -g 16 --size 1M --profile none --simgrid incast");
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
  CHECK_THAT(here.refusal("comm ring -g 16 --simgrid ring --background ring@0-15"),
             Contains("--simgrid cannot be combined with --background"));
  CHECK_THAT(here.refusal("comm all_reduce -g 16 --simgrid ring"),
             Contains("all_reduce is not simulated message by message"));
  CHECK_FALSE(fs::exists(here.folder() / "ring"));
}

TEST_CASE("what comm cannot do is told with what to write instead", "[comm]") {
  const Workplace here;
  const auto problem = [&](const std::string& arguments) { return here.refusal("comm " + arguments); };
  CHECK_THAT(problem("all_reduce -g 12"),
             Contains("12 gpus are not a whole number of nodes of 8") && Contains("write -g 8"));
  CHECK_THAT(problem("all_reduce -b 8X"), Contains("-b 8X is no size"));
  CHECK_THAT(problem("all_reduce -g 8 -b 8G -e 8"), Contains("-b 8G is above -e 8"));
  CHECK_THAT(problem("ring --background permutation"), Contains("write a pattern and who takes part"));
  CHECK_THAT(problem("ring --background permutation@16-7"), Contains("is no traffic"));
  CHECK_THAT(problem("all_gather --algo tree"), Contains("all_gather has no such algorithm"));
  CHECK_THAT(problem("gossip"), Contains("gossip"));
  CHECK_THAT(problem("ring --cluster h100-rial"), Contains("h100-rial"));
}

}  // namespace
}  // namespace hdpsim::spec
