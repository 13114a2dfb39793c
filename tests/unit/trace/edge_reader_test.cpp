#include <fmt/format.h>

#include <cmath>
#include <map>

#include "sim/trace/trace_file.h"
#include "tests/support/catch.h"
#include "tests/unit/trace/trace_files.h"

namespace hdpsim {
namespace {

using Tokens = std::vector<std::int64_t>;

TraceOptions edges(std::int64_t neighbours = 10, std::optional<std::int64_t> interactions = {}) {
  return {.format = TraceFormat::edges, .edges = {neighbours, interactions}};
}

Tokens sequences(const std::filesystem::path& path, const TraceOptions& options = edges()) {
  return tokens_of(*open_trace(path, options));
}

/// Those of sources and targets: every third length is that of a node drawn at random.
Tokens ends_of(const Tokens& lengths) {
  Tokens ends;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (i % 3 != 2) ends.push_back(lengths[i]);
  }
  return ends;
}

}  // namespace

TEST_CASE("an interaction of a graph is three sequences: a node and its neighbours of earlier times", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("graph.csv", "u,v,t\n1,2,0\n1,3,1\n2,3,1\n1,2,2\n4,1,5\n");
  // Of 2-3 at time 1, node 3 has met node 1 at the same time, which is not earlier.
  CHECK(ends_of(sequences(path)) == Tokens{1, 1, 2, 1, 2, 1, 3, 3, 1, 4});
  CHECK(ends_of(sequences(path, edges(2))) == Tokens{1, 1, 2, 1, 2, 1, 3, 3, 1, 3});
  CHECK(ends_of(sequences(path, edges(1))) == Tokens{1, 1, 2, 1, 2, 1, 2, 2, 1, 2});
}

TEST_CASE("the third node is one of the targets so far, each as likely", "[trace]") {
  // The first four interactions give the targets 0 ... 3 with 1, 2, 1 and 1 sources; later ones leave them alone but
  // for target 9, which has one neighbour more each time.
  std::string text = "10,0,0\n10,1,0\n11,1,0\n10,2,0\n10,3,0\n";
  constexpr int repeats = 6000;
  for (int i = 1; i <= repeats; ++i) text += fmt::format("{},9,{}\n", 100 + i, i);
  const TraceFolder folder;
  const Tokens lengths = sequences(folder.write("graph.csv", text), edges(2));
  std::map<std::int64_t, int> counts;
  for (std::size_t i = 3 * 8 + 2; i < lengths.size(); i += 3) ++counts[lengths[i]];
  // Of five targets, three have one neighbour, and two have two or more. The tolerance is five standard errors.
  const double expected = 0.6 * (repeats - 3);
  CHECK(counts.size() == 2);
  CHECK(std::abs(counts[2] - expected) < 5 * std::sqrt(expected * 0.4));
}

TEST_CASE("interactions of a graph come in steps of so many, three sequences each", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("graph.txt", "1 2 0\n1 3 1\n2 3 1\n1 2 2\n4 1 5\n");
  const Lengths lengths = load_lengths(path, edges(10, 2));
  CHECK(lengths.trace->steps == Tokens{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2});
  const auto batches = make_batches(lengths, {.context = 64, .tokens_per_step = 64});
  CHECK(batches->step(0).sequences.size() == 6);
  CHECK(batches->step(2).sequences.size() == 3);
}

TEST_CASE("a longest sequence has the neighbours that it may have: 600 interactions of 11 are 19,800 tokens",
          "[trace]") {
  // Two nodes that met ten times before have all the neighbours that count.
  std::string text;
  for (int i = 0; i < 610; ++i) text += fmt::format("1,2,{}\n", i);
  const TraceFolder folder;
  const Tokens lengths = sequences(folder.write("graph.csv", text), edges(10));
  std::int64_t tokens = 0;
  for (std::size_t i = 30; i < lengths.size(); ++i) tokens += lengths[i];
  CHECK(tokens == 1800 * 11);
}

TEST_CASE("graphs of JODIE, SNAP and KONECT are read as they are", "[trace]") {
  const TraceFolder folder;
  // Users and items are numbered apart; what follows has more values than the header has names.
  CHECK(ends_of(sequences(folder.write("jodie.csv",
                                       "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n"
                                       "0,0,0.0,0,-0.1,0.2\n0,1,36.5,0,1,2\n1,0,40,0,1,2\n"))) ==
        Tokens{1, 1, 2, 1, 1, 2});
  CHECK(ends_of(sequences(folder.write("snap.txt", "# SRC DST UNIXTS\n0 1 1217567877\n1 0 1217573801\n"))) ==
        Tokens{1, 1, 2, 2});
  CHECK(ends_of(sequences(folder.write("out.konect", "% bip unweighted\n1 1 1 10\n1\t2 1 11\n"))) ==
        Tokens{1, 1, 2, 1});
  CHECK(ends_of(sequences(folder.write("out.other", "% asym unweighted\n1 1 1 10\n2 1 1 11\n"))) == Tokens{1, 1, 1, 3});
  // TGL writes the number of the row first.
  CHECK(ends_of(sequences(folder.write("tgl.csv", ",src,dst,time,ext_roll\n0,5,6,1,0\n1,5,6,2,0\n"))) ==
        Tokens{1, 1, 2, 2});
}

TEST_CASE("every wrong line of a graph is told at once, with its place and how to write it", "[trace]") {
  const TraceFolder folder;
  const auto complaint = [&](std::string_view text) {
    return folder.complaint([&] { return sequences(folder.write("bad.csv", text)); });
  };
  CHECK(complaint("u,v,t\n1,x,0\n1,2\n1,3,5\n1,2,4\n-1,2,z\n") ==
        "bad.csv:2:3: error: the node \"x\" is not a whole number from 0; number the nodes\n"
        "bad.csv:3:1: error: the line has 2 of 3 fields; an interaction is source,target,time\n"
        "bad.csv:5:5: error: the time 4 is before 5, that of an interaction above; sort the interactions by time: "
        "sort -s -g -k3 -t,\n"
        "bad.csv:6:1: error: the node \"-1\" is not a whole number from 0; number the nodes\n"
        "bad.csv:6:6: error: the time \"z\" is not a number from 0; write seconds: 1082040961\n");
  CHECK_THAT(complaint("a,b,c\n1,2,3\n"), Catch::Contains("bad.csv:1:1: error: the header names no interactions"));
  CHECK_THAT(complaint("u,v,t\n"), Catch::Contains("the file holds no lengths"));
}

}  // namespace hdpsim
