#include "sim/trace/description.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/unit/trace/trace_files.h"

namespace hdpsim {
namespace {

/// Three documents whose figures can be computed in the head.
Description small() {
  ListedLengths lengths({{1000}, {4096}, {8904}});
  return describe(lengths);
}

}  // namespace

TEST_CASE("a description of three documents, computed by hand", "[trace]") {
  const Description d = small();
  CHECK(d.count == 3);
  CHECK(d.tokens == 14'000);
  CHECK(d.mean == Approx(14'000 / 3.0));
  const double squares = 1000.0 * 1000 + 4096.0 * 4096 + 8904.0 * 8904;
  CHECK(d.deviation == Approx(std::sqrt(squares / 3 - d.mean * d.mean)));
  CHECK(d.min == 1000);
  CHECK(d.max == 8904);
  REQUIRE(d.shares.size() == 10);  // 4Ki ... 2Mi
  CHECK(d.shares[0].above == 4096);
  CHECK(d.shares[0].sequences == Approx(1 / 3.0));  // 4096 is not above 4Ki
  CHECK(d.shares[0].tokens == Approx(8904 / 14'000.0));
  CHECK(d.shares[0].squares == Approx(8904.0 * 8904 / squares));
  CHECK(d.shares[1].tokens == d.shares[0].tokens);
  CHECK(d.shares[2].tokens == 0);
  CHECK(d.shares[9].above == 2 << 20);
}

TEST_CASE("equal lengths deviate by nothing, and no lengths cannot be described", "[trace]") {
  ListedLengths equal({{777}, {777}, {777}});
  CHECK(describe(equal).deviation == 0);
  ListedLengths none({});
  const TraceFolder folder;
  CHECK(folder.complaint([&] { return describe(none); }) == "error: there are no lengths to describe\n");
}

TEST_CASE("a description as a table for people", "[trace]") {
  CHECK(text_of(small()) ==
        "sequences                  3\n"
        "tokens                 14000\n"
        "mean                  4666.7\n"
        "deviation             3251.9\n"
        "min                     1000\n"
        "p1                      1000\n"
        "p5                      1000\n"
        "p10                     1000\n"
        "p25                     1000\n"
        "p50                     4096\n"
        "p75                     8904\n"
        "p90                     8904\n"
        "p95                     8904\n"
        "p99                     8904\n"
        "p99.9                   8904\n"
        "p99.99                  8904\n"
        "max                     8904\n"
        "\n"
        "above            sequences %        tokens %       sum s^2 %\n"
        "4Ki                  33.3333         63.6000         81.6840\n"
        "8Ki                  33.3333         63.6000         81.6840\n"
        "16Ki                  0.0000          0.0000          0.0000\n"
        "32Ki                  0.0000          0.0000          0.0000\n"
        "64Ki                  0.0000          0.0000          0.0000\n"
        "128Ki                 0.0000          0.0000          0.0000\n"
        "256Ki                 0.0000          0.0000          0.0000\n"
        "512Ki                 0.0000          0.0000          0.0000\n"
        "1Mi                   0.0000          0.0000          0.0000\n"
        "2Mi                   0.0000          0.0000          0.0000\n");
}

TEST_CASE("a description as csv and json holds the same figures", "[trace]") {
  const Description d = small();
  const std::string csv = csv_of(d);
  CHECK(csv.starts_with("quantity,at,value\nsequences,,3\ntokens,,14000\n"));
  CHECK(csv.find("percentile,99.9,8904\n") != std::string::npos);
  CHECK(csv.find("token_share_above,4096,0.636\n") != std::string::npos);
  const nlohmann::ordered_json json = json_of(d);
  CHECK(json["schema"] == "hdpsim.lengths/1");
  CHECK(json["sequences"] == 3);
  CHECK(json["tokens"] == 14'000);
  CHECK(json["percentiles"].size() == d.percentiles.size());
  CHECK(json["percentiles"][4] == nlohmann::ordered_json{{"percent", 50.0}, {"length", 4096}});
  CHECK(json["shares"][0]["tokens"] == 0.636);
}

}  // namespace hdpsim
