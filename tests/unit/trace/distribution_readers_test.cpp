#include "sim/trace/trace.h"
#include "tests/support/catch.h"
#include "tests/unit/trace/trace_files.h"

namespace hdpsim {

TEST_CASE("the columns of a csv tell its kind", "[trace]") {
  const TraceFolder folder;
  const auto kind = [&](const std::string& header) { return detect_format(folder.write("a.csv", header + "\n")); };
  CHECK(kind("quantile,length") == TraceFormat::quantiles);
  CHECK(kind("range,number,percentage(%)") == TraceFormat::histogram);
  CHECK(kind("upper,count") == TraceFormat::histogram);
  CHECK(kind("edge,token_share") == TraceFormat::mixture);
  CHECK(kind("step,length") == TraceFormat::csv);
  CHECK(detect_format("x.npy") == TraceFormat::npy);
  CHECK(detect_format("x.idx") == TraceFormat::megatron);
  for (const std::string& name : trace_format_names()) CHECK(name_of(*trace_format(name)) == name);
  CHECK_FALSE(trace_format("parquet").has_value());
}

TEST_CASE("a histogram of ranges or of upper ends gives the same distribution", "[trace]") {
  const TraceFolder folder;
  const auto ranges = read_distribution(
      folder.write("a.csv", "range,number,percentage(%)\n\"[0, 10]\",3,75\n\"[11, 20]\",0,0\n\"[21, 40]\",1,25\n"));
  const auto uppers = read_distribution(folder.write("b.csv", "upper,count\n10,3\n20,0\n40,1\n"));
  for (int i = 0; i <= 1000; ++i) CHECK(ranges->quantile(i / 1000.0) == uppers->quantile(i / 1000.0));
  CHECK(ranges->quantile(0) == 1);
  CHECK(ranges->quantile(0.7499) == 10);
  CHECK(ranges->quantile(0.7501) == 21);
  CHECK(ranges->quantile(1) == 40);
}

TEST_CASE("every wrong row of a histogram is told", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.csv",
                                 "range,count\n"
                                 "\"[1, 10]\",x\n"
                                 "\"[10, 20]\",5\n"
                                 "\"[30, 20]\",5\n"
                                 "21-30,5\n"
                                 "\"[21, 30]\",-5\n");
  CHECK(folder.complaint([&] { return read_distribution(path); }) ==
        "a.csv:2:11: error: \"x\" is not a number\n"
        "    2 | \"[1, 10]\",x\n"
        "                  ^\n"
        "a.csv:3:1: error: the range begins at 10, but the one before it ends at 10\n"
        "    3 | \"[10, 20]\",5\n"
        "        ^ ranges ascend and do not overlap\n"
        "a.csv:4:1: error: \"[30, 20]\" is not a range of lengths from 1 to 2^40\n"
        "    4 | \"[30, 20]\",5\n"
        "        ^ write a range as \"[2049, 4096]\"\n"
        "a.csv:5:1: error: \"21-30\" is not a range of lengths from 1 to 2^40\n"
        "    5 | 21-30,5\n"
        "        ^ write a range as \"[2049, 4096]\"\n"
        "a.csv:6:12: error: -5 is not a number from 0\n"
        "    6 | \"[21, 30]\",-5\n"
        "                   ^\n");
  CHECK(folder.complaint([&] { return read_distribution(folder.write("b.csv", "upper,count\n10,0\n")); }) ==
        "b.csv: error: all counts are 0\n");
  CHECK(folder.complaint([&] { return read_distribution(folder.write("c.csv", "upper,count\n10,1\n10,1\n0,1\n")); }) ==
        "c.csv:3:1: error: the upper end 10 is not above 10, the one before it\n"
        "    3 | 10,1\n"
        "        ^\n"
        "c.csv:4:1: error: the length is 0\n"
        "    4 | 0,1\n"
        "        ^ a length is a whole number of tokens from 1 to 2^40\n");
}

TEST_CASE("every wrong row of a quantile table is told", "[trace]") {
  const TraceFolder folder;
  const auto said = [&](const std::string& rows) {
    return folder.complaint([&] { return read_distribution(folder.write("a.csv", "quantile,length\n" + rows)); });
  };
  CHECK(said("0.1,5\n0.05,7\n0.5,6\n1.5,9\n1,0\n") ==
        "a.csv:2:1: error: the first quantile is not 0\n"
        "    2 | 0.1,5\n"
        "        ^\n"
        "a.csv:3:1: error: the quantile 0.05 is below 0.1, the one before it\n"
        "    3 | 0.05,7\n"
        "        ^\n"
        "a.csv:4:5: error: the length 6 is below 7, the one before it\n"
        "    4 | 0.5,6\n"
        "            ^\n"
        "a.csv:5:1: error: the quantile 1.5 is above 1\n"
        "    5 | 1.5,9\n"
        "        ^\n"
        "a.csv:6:1: error: the quantile 1 is below 1.5, the one before it\n"
        "    6 | 1,0\n"
        "        ^\n"
        "a.csv:6:3: error: the length is 0\n"
        "    6 | 1,0\n"
        "          ^ a length is a whole number of tokens from 1 to 2^40\n");
  CHECK(said("0,5\n0.5,7\n") == "a.csv: error: the last quantile is not 1\n");
  CHECK(said("") == "a.csv: error: the file holds no rows under its header\n");
}

TEST_CASE("a mixture that makes no sense is told with the name of its file", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.csv", "edge,token_share\n2Ki,50\n4Ki,50\n");
  CHECK(folder.complaint([&] { return read_distribution(path, {}, {.lowest = 2048}); }) ==
        "a.csv: error: lowest 2048 is not below 2048, where the lowest class ends\n");
  CHECK(folder.complaint([&] {
    return read_distribution(folder.write("b.csv", "edge,token_share\n2Kb,50\n2Ki,5\n2Ki,5\n"));
  }) == "b.csv:2:1: error: \"2Kb\" is not a whole number within 64 bits\n"
        "    2 | 2Kb,50\n"
        "        ^ write a whole number such as 4096, 256Ki (x 1024) or 32k (x 1000)\n"
        "b.csv:4:1: error: the edge 2048 is not above 2048, the one before it\n"
        "    4 | 2Ki,5\n"
        "        ^\n");
}

TEST_CASE("a distribution and documents are not taken for each other", "[trace]") {
  const TraceFolder folder;
  const auto table = folder.write("a.csv", "quantile,length\n0,1\n1,9\n");
  const auto lines = folder.write("a.txt", "5\n");
  CHECK(folder.complaint([&] { return open_trace(table); }) ==
        "a.csv: error: holds a distribution (quantiles), not documents\n");
  CHECK(folder.complaint([&] { return read_distribution(lines); }) ==
        "a.txt: error: holds documents (lines), not a distribution\n");
  CHECK(load_lengths(table).distribution != nullptr);
  CHECK(load_lengths(table).trace == nullptr);
  CHECK(load_lengths(lines).trace->tokens == std::vector<std::int64_t>{5});
}

TEST_CASE("where documents are asked for, a distribution is drawn from", "[trace]") {
  const TraceFolder folder;
  const auto table = folder.write("a.csv", "quantile,length\n0,100\n1,200\n");
  const auto drawn = tokens_of(*open_lengths(table, {}, {.seed = 3, .count = 500}));
  CHECK(drawn.size() == 500);
  CHECK(drawn == tokens_of(*open_lengths(table, {}, {.seed = 3, .count = 500})));
  CHECK(drawn != tokens_of(*open_lengths(table, {}, {.seed = 4, .count = 500})));
  for (const std::int64_t tokens : drawn) CHECK((tokens >= 100 && tokens <= 200));
}

}  // namespace hdpsim
