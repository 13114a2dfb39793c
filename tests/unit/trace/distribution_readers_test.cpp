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
  CHECK(kind("length,count") == TraceFormat::histogram);
  CHECK(kind("percentile,length") == TraceFormat::quantiles);
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
                                 "21+,5\n"
                                 "\"[21, 30]\",-5\n");
  CHECK(
      folder.complaint([&] { return read_distribution(path); }) ==
      "a.csv:2:11: error: \"x\" is not a number\n"
      "a.csv:3:1: error: the range begins at 10, but the one before it ends at 10; ranges ascend and do not overlap\n"
      "a.csv:4:1: error: \"[30, 20]\" is not a range of lengths from 1 to 2^40; write a range as \"[2049, 4096]\" or "
      "2049-4096\n"
      "a.csv:5:1: error: \"21+\" is not a range of lengths from 1 to 2^40; write where it ends: the longest document\n"
      "a.csv:6:12: error: -5 is not a number from 0\n");
  CHECK(folder.complaint([&] { return read_distribution(folder.write("b.csv", "upper,count\n10,0\n")); }) ==
        "b.csv: error: all counts are 0\n");
  CHECK(folder.complaint([&] { return read_distribution(folder.write("c.csv", "upper,count\n10,1\n10,1\n0,1\n")); }) ==
        "c.csv:3:1: error: the upper end 10 is not above 10, the one before it\n"
        "c.csv:4:1: error: the length is 0; a length is a whole number of tokens from 1 to 2^40\n");
}

TEST_CASE("every wrong row of a quantile table is told", "[trace]") {
  const TraceFolder folder;
  const auto said = [&](const std::string& rows) {
    return folder.complaint([&] { return read_distribution(folder.write("a.csv", "quantile,length\n" + rows)); });
  };
  CHECK(said("0.1,5\n0.05,7\n0.5,6\n1.5,9\n1,0\n") ==
        "a.csv:2:1: error: the first quantile is not 0; begin with a row of it, which has the shortest length\n"
        "a.csv:3:1: error: the quantile 0.05 is below 0.1, the one before it\n"
        "a.csv:4:5: error: the length 6 is below 7, the one before it\n"
        "a.csv:5:1: error: the quantile 1.5 is above 1; a column of the name percentile goes from 0 to 100\n"
        "a.csv:6:1: error: the quantile 1 is below 1.5, the one before it\n"
        "a.csv:6:3: error: the length is 0; a length is a whole number of tokens from 1 to 2^40\n");
  CHECK(said("0,5\n0.5,7\n") ==
        "a.csv: error: the last quantile is not 1\n        end with a row of it, which has the longest length\n");
  CHECK(said("") == "a.csv: error: the file holds no rows under its header\n");
}

TEST_CASE("a mixture that makes no sense is told with the name of its file", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.csv", "edge,token_share\n2Ki,50\n4Ki,50\n");
  CHECK(folder.complaint([&] { return read_distribution(path, {}, {.lowest = 4096}); }) ==
        "a.csv: error: lowest 4096 is not below 4096, where the lowest class ends\n");
  CHECK(folder.complaint([&] {
    return read_distribution(folder.write("b.csv", "edge,token_share\n2Kb,50\n2Ki,5\n2Ki,5\n"));
  }) == "b.csv:2:1: error: \"2Kb\" is not a whole number within 64 bits; write a whole number such as 4096, 256Ki (x "
        "1024) or 32k (x 1000)\n"
        "b.csv:4:1: error: the edge 2048 is not above 2048, the one before it\n");
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

namespace {

/// The quantiles of a distribution at every thousandth.
std::vector<std::int64_t> thousandths(const LengthDistribution& lengths) {
  std::vector<std::int64_t> all;
  for (int i = 0; i <= 1000; ++i) all.push_back(lengths.quantile(i / 1000.0));
  return all;
}

}  // namespace

TEST_CASE("lengths with their counts are a histogram, whatever both columns are called and whichever comes first",
          "[trace]") {
  const TraceFolder folder;
  // Half of the documents have 1,024 tokens, three tenths 2,048, the others 4,096.
  const auto expected =
      thousandths(*make_distribution(std::vector<LengthBin>{{1024, 1024, 50}, {2048, 2048, 30}, {4096, 4096, 20}}));
  const auto read = [&](const std::string& name, const std::string& text) {
    const auto path = folder.write(name, text);
    REQUIRE(detect_format(path) == TraceFormat::histogram);
    return thousandths(*load_lengths(path).distribution);
  };
  for (const std::string header :
       {"length,count", "seq_len,frequency", "num_tokens,weight", "tokens,docs", "Seq Len,# of documents", "len,n",
        "length,percent", "n_tokens,p", "seqlen,num_samples"}) {
    CAPTURE(header);
    CHECK(read("a.csv", header + "\n1024,50\n2048,30\n4096,20\n") == expected);
  }
  CHECK(read("a.csv", "count,length\n20,4096\n50,1024\n30,2048\n") == expected);  // as pandas counts values
  CHECK(read("a.csv", "source,length,count\nweb,1024,20\nweb,4096,20\ncode,1024,30\ncode,2048,30\n") == expected);
  CHECK(read("a.csv", "tokens;n\n1024;50\n2048;30\n4096;20\n") == expected);
  CHECK(read("a.tsv", "length\tshare\n1024\t50%\n2048\t30 %\n4096\t20%\n") == expected);
  CHECK(read("a.txt", "len weight\n1024   0.5\n2048 0.3\n4096 0.2\n") == expected);
  CHECK(read("a.csv", "length,count,percent\n1024,50,0.5\n2048,30,0.3\n4096,20,0.2\n") == expected);
}

TEST_CASE("bins with counts are a histogram in every way in which bins are written", "[trace]") {
  const TraceFolder folder;
  const auto expected =
      thousandths(*make_distribution(std::vector<LengthBin>{{1, 1024, 5}, {1025, 2048, 3}, {2049, 4096, 2}}));
  const auto read = [&](const std::string& text) {
    return thousandths(*read_distribution(folder.write("a.csv", text)));
  };
  CHECK(read("bin,count\n0-1024,5\n1024-2048,3\n2048-4096,2\n") == expected);
  CHECK(read("bucket,docs\n\"(0, 1024]\",5\n\"(1024, 2048]\",3\n\"(2048, 4096]\",2\n") == expected);
  CHECK(read("len_range,fraction\n1..1Ki,0.5\n1025..2Ki,0.3\n2049..4Ki,0.2\n") == expected);
  CHECK(read("interval,n\n1 to 1024,5\n1025 to 2048,3\n2049 to 4096,2\n") == expected);
  CHECK(read("upper_bound,fraction\n1024,0.5\n2048,0.3\n4096,0.2\n") == expected);
  CHECK(read("bin_start,bin_end,count\n0,1024,5\n1024,2048,3\n2048,4096,2\n") == expected);
  CHECK(read("max_len,cum_share\n1024,0.5\n2048,0.8\n4096,1\n") == expected);
  CHECK(read("length,cdf\n1024,50%\n2048,80%\n4096,100%\n") == expected);
  CHECK(read("upper,cumulative_count\n1024,50\n2048,80\n4096,100\n") == expected);
  CHECK(read("upper,fraction\n1024,0.5\n2048,0.8\n4096,1\n") == expected);  // that rise to 1
  const auto half_open = read_distribution(folder.write("b.csv", "range,count\n\"[1, 8)\",1\n\"[8, 9)\",1\n"));
  CHECK(half_open->quantile(0.499) == 7);
  CHECK(half_open->quantile(1) == 8);
}

TEST_CASE("quantiles go to 1 or to 100, with or without a percent sign, under any name of theirs", "[trace]") {
  const TraceFolder folder;
  const auto expected =
      thousandths(*make_distribution(std::vector<QuantilePoint>{{0, 10}, {0.5, 500}, {0.9, 4000}, {1, 131072}}));
  for (const std::string text :
       {"percentile,length\n0,10\n50,500\n90,4000\n100,131072\n", "p,tokens\n0,10\n0.5,500\n0.9,4000\n1,131072\n",
        "p,tokens\n0,10\n50,500\n90,4000\n100,131072\n", "quantile,seq_len\n0,10\n0.5,500\n0.9,4000\n1,131072\n",
        "quantile,length\n0%,10\n50%,500\n90%,4000\n100%,131072\n",
        "percentile,num_tokens\np0,10\np50,500\np90,4000\np100,131072\n",
        "length,percent\n10,0\n500,50\n4000,90\n131072,100\n"}) {
    CAPTURE(text);
    const auto path = folder.write("a.csv", text);
    REQUIRE(detect_format(path) == TraceFormat::quantiles);
    CHECK(thousandths(*read_distribution(path)) == expected);
  }
  CHECK_THAT(folder.complaint([&] { return load_lengths(folder.write("b.csv", "percentile,length\n50,5\n99,7\n")); }),
             Catch::Contains("b.csv:2:1: error: the first quantile is not 0") &&
                 Catch::Contains("begin with a row of it, which has the shortest length"));
}

TEST_CASE("what might be a table and might be documents is refused with the way to say which", "[trace]") {
  const TraceFolder folder;
  const auto said = [&](const std::string& text) {
    return folder.complaint([&] { return load_lengths(folder.write("a.csv", text)); });
  };
  CHECK_THAT(said("bin,count\n1024,5\n2048,3\n"),
             Catch::Contains("'bin' holds single numbers") && Catch::Contains("name the column upper or length"));
  CHECK_THAT(said("bin,tokens\n0-10,50\n10-20,30\n"), Catch::Contains("what does 'tokens' say of a bin?"));
  CHECK_THAT(said("x,length\n0,10\n50,500\n100,4000\n"),
             Catch::Contains("is this a table of quantiles?") && Catch::Contains("name the column of the lengths"));
  CHECK_THAT(said("lower,count\n1,5\n1024,3\n"), Catch::Contains("nothing where the last one ends"));
  CHECK_THAT(said("length,ccdf\n10,1\n500,0.2\n"), Catch::Contains("does not say how many documents have a length"));
  CHECK_THAT(said("length,token_share\n10,0.8\n500,0.2\n"), Catch::Contains("edge and token_share"));
  CHECK_THAT(said("prompt_len,output_len,count\n10,20,5\n"), Catch::Contains("several columns of this table"));
  CHECK_THAT(said("step,length,count\n0,20,5\n"), Catch::Contains("a table of lengths has no steps"));
  CHECK_THAT(said("length,cum_share\n10,0.5\n20,0.4\n30,1\n"), Catch::Contains("0.4 is below 0.5, the one before it"));
  CHECK_THAT(said("length,cum_share\n10,0.5\n20,0.9\n"), Catch::Contains("longer documents are missing"));
  CHECK_THAT(folder.complaint([&] { return load_lengths(folder.write("a.jsonl", "{\"length\": 5, \"count\": 7}\n")); }),
             Catch::Contains("a.jsonl:1:1: error: these fields state how many documents have a length") &&
                 Catch::Contains("name the field of the lengths"));
}

TEST_CASE("a named column, and a second column that says something else, leave documents documents", "[trace]") {
  const TraceFolder folder;
  const auto tokens = [&](const std::string& text, const TraceOptions& options = {}) {
    return load_lengths(folder.write("a.csv", text), options).trace->tokens;
  };
  using Tokens = std::vector<std::int64_t>;
  CHECK(tokens("length,count\n1024,50\n2048,30\n", {.column = "length"}) == Tokens{1024, 2048});
  CHECK(tokens("length,count\n1024,50\n2048,30\n", {.format = TraceFormat::csv}) == Tokens{1024, 2048});
  CHECK(tokens("n,length\n1,10\n2,20\n3,5\n") == Tokens{10, 20, 5});           // numbers of rows
  CHECK(tokens("id,num_tokens\n0,500\n1,700\n") == Tokens{500, 700});          // that end at 1
  CHECK(tokens("length,num_turns\n10,2\n20,5\n") == Tokens{10, 20});           // no number of documents
  CHECK(tokens("length,ratio\n10,2.5\n20,0.5\n") == Tokens{10, 20});           // of something else
  CHECK(tokens("doc_id,n_tokens,p\n7,10,0.2\n8,20,0.1\n") == Tokens{10, 20});  // of each document
  CHECK(tokens("seq_no,length\n4,10\n9,20\n") == Tokens{10, 20});
}

}  // namespace hdpsim
