#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;

constexpr char tiny_step[] = "study configs/studies/tiny.yaml --set sweep=null --set data.steps=1";

TEST_CASE("a table of lengths is one to every command that takes lengths", "[lengths]") {
  const Workplace here;
  const std::string tables[] = {"length,count\n1024,500\n2048,300\n4096,150\n8192,50\n",
                                "bucket;docs\n0-1024;500\n1024-4096;450\n4096-8192;50\n",
                                "percentile,length\n0,10\n50,500\n90,4000\n100,8192\n"};
  for (const std::string& table : tables) {
    CAPTURE(table);
    here.write("table.csv", table);
    CHECK_THAT(here.hdpsim("check table.csv").out, Contains("table.csv: a distribution of lengths ("));
    const Outcome described = here.run("trace describe table.csv --format json --count 20000");
    CHECK(nlohmann::json::parse(described.out).at("sequences") == 20000);
    CHECK_THAT(described.err, Contains("20000 lengths are drawn from it"));
    here.run("new mine.yaml --force --gpus 8 --lengths table.csv --context 8Ki --steps 1 </dev/null");
    here.run("check mine.yaml");
    CHECK_THAT(here.run(fmt::format("{} --lengths table.csv", tiny_step)).out, !Contains("documents of the trace"));
  }
  // Every row is a document to whoever names the column of the lengths.
  here.write("table.csv", tables[0]);
  CHECK_THAT(here.hdpsim(fmt::format("{} --lengths table.csv --column length", tiny_step)).out,
             Contains("the 4 documents of the trace are read"));
  here.write("doubt.csv", "bin,count\n1024,500\n2048,300\n");
  for (const std::string command :
       {"check doubt.csv", "trace describe doubt.csv", "new other.yaml --lengths doubt.csv"}) {
    CHECK_THAT(here.refusal(command + " </dev/null"), Contains("doubt.csv:1:1: error: 'bin' holds single numbers"));
  }
}

// Of the study whose results are in `out`.
double sequences_of_first_step(const Workplace& here) {
  const std::string steps = here.read("out/steps.csv");
  const std::string header = steps.substr(0, steps.find('\n'));
  std::istringstream names(header);
  std::istringstream values(steps.substr(header.size() + 1));
  std::string name;
  std::string value;
  while (std::getline(names, name, ',') && std::getline(values, value, ',') && name != "sequences") {
  }
  return std::stod(value);
}

// The block of traces/README.md that begins with this text, without the fence behind it.
std::string block_of_readme(const std::string& begin) {
  const std::string page = test::text_of(std::filesystem::path(HDPSIM_SOURCE_DIR) / "traces" / "README.md");
  const std::size_t at = page.find(begin);
  REQUIRE(at != std::string::npos);
  return page.substr(at, page.find("```", at) - at);
}

TEST_CASE("a study runs with the media that the page of length data shows", "[lengths]") {
  const Workplace here;
  here.write("media.yaml",
             "name: media\ncluster: {preset: a100-rail-3tier, gpus: 32}\nmodel: {preset: llama-7b}\n"
             "profile: bytescale-implied\nmesh: {tp: 2, capacity: 8Ki}\nplans: [hdp-balance]\n" +
                 block_of_readme("data:\n  lengths:\n    lognormal"));
  // Text has exp(mu + sigma^2 / 2) = 403 tokens in the mean; images of log-uniform pixels add 0.8 x 2 x 15 x 256Ki /
  // ln 16 / 28^2 = 2,894, clips of audio 0.2 x 25 x 29 / ln 30 = 43, and videos up to 0.1 x 24,576. The tolerance is
  // that of a step of some hundred samples.
  here.run("study media.yaml --out out");
  const double with_media = sequences_of_first_step(here);
  CHECK(with_media < 1.2 * (1 << 20) / (403 + 2894 + 43));
  CHECK(with_media > 0.8 * (1 << 20) / (403 + 2894 + 43 + 2458));
  here.run("study media.yaml --set data.lengths.media=null --out out");
  CHECK(sequences_of_first_step(here) == Approx((1 << 20) / 403.0).epsilon(0.15));
}

TEST_CASE("the sequences of a temporal graph are a file of lengths and those of a study", "[lengths]") {
  const Workplace here;
  here.write("graph.csv", "u,v,t\n1,2,0\n1,3,1\n2,3,1\n1,2,2\n");
  std::istringstream lines(block_of_readme("hdpsim trace convert graph.csv"));
  std::string command;
  std::getline(lines, command);
  here.run(command.substr(std::string("hdpsim ").size()));
  CHECK_THAT(here.read("lengths.csv"), Catch::StartsWith("step,length\n0,1\n0,1\n0,1\n0,2\n0,1\n"));
  here.run(fmt::format("{} --set 'data.lengths={{file: {}, format: edges, interactions: 2}}'", tiny_step,
                       (here.folder() / "graph.csv").string()));
  CHECK_THAT(here.refusal("trace describe graph.csv --neighbours 3"), Contains("add --from edges"));
}

TEST_CASE("a file that is sorted by length gives what any order of it gives, unless its order is kept", "[lengths]") {
  const Workplace here;
  std::string sorted;
  for (int i = 1; i <= 4000; ++i) sorted += fmt::format("{}\n", 20 * i);
  here.write("sorted.txt", sorted);
  const std::string study = fmt::format(
      "{} --lengths sorted.txt --set data.context=128Ki --set data.tokens_per_step=16Mi "
      "--set 'plans=[hdp-balance]' --set compare_to=null",
      tiny_step);
  const auto sequences = [&](const std::string& options) {
    here.run(fmt::format("{} {} --out out", study, options));
    return sequences_of_first_step(here);
  };
  // 16Mi tokens of documents of 40,010 tokens on average are 419 of them; the shortest of the file are 1,295.
  CHECK(std::abs(sequences("") - 419) < 60);
  CHECK(std::abs(sequences("--set data.lengths.order=file") - 1295) < 5);
  CHECK_THAT(here.hdpsim(study).out,
             Contains("10% of the trace of 4000 documents is read, in random order\n") &&
                 Contains("the first half of the documents has 20.0k tokens each on average, the second half "
                          "60.0k\n"));
  CHECK_THAT(here.hdpsim(study + " --set data.lengths.order=file").out,
             Contains("the first 10% of the trace of 4000 documents is read\n") &&
                 Contains("early steps are unlike late ones"));
  for (const std::string command : {"check sorted.txt", "trace describe sorted.txt"}) {
    CHECK_THAT(here.hdpsim(command).out, Contains("the first half of the documents has 20.0k tokens"));
  }
  const Outcome replayed =
      here.run("replay configs/studies/tiny.yaml --point 1 --trace sorted.txt --steps 2 --plan static --out replayed");
  CHECK(nlohmann::json::parse(here.read("replayed/replay.json")).at("trace").at("order") == "file");
}

TEST_CASE("what asks for more than is simulated, or than the machine has, is refused with the figure", "[lengths]") {
  const Workplace here;
  const auto refused = [&](const std::string& arguments, int code, const std::string& figure,
                           const std::string& before = "") {
    const Outcome outcome = here.hdpsim(arguments, before);
    CAPTURE(arguments, outcome.err.substr(0, 500));
    CHECK(outcome.code == code);
    CHECK_THAT(outcome.err, Contains(figure));
  };
  here.write("large.yaml",
             "name: large\ncluster: {preset: a100-rail-3tier, gpus: 32}\nmodel: {preset: llama-7b}\n"
             "profile: a100-published\ndata:\n  lengths: {fixed: 1}\n  context: 256Mi\n"
             "  tokens_per_step: 256Mi\n  steps: 1\nmesh: {tp: 2, capacity: 16Mi}\nplans: [static]\n");
  refused("check large.yaml", 2, "large.yaml:8:20: error: a step has about 268M sequences: at most 64Mi are simulated");
  refused("study large.yaml --set data.tokens_per_step=1000000000000 --set data.context=32Ki", 2, "at most 64Mi");
  here.write("long.csv", "step,length\n0,476\n0,800000000000\n1,277\n");
  refused("check large.yaml --kind study", 2, "268M");
  refused("study large.yaml --lengths long.csv --set data.context=8Ki --set data.tokens_per_step=1Mi", 2,
          "a step has about 97.7M sequences");  // pieces of one document
  // 32 million sequences take 5 GB, and 2 GB may be used.
  refused("study large.yaml --set data.tokens_per_step=32Mi --set data.context=32Mi", 3,
          "a step of about 33.6M sequences takes about 5.03 GB of memory, and", "ulimit -v 2000000;");
  refused("trace generate --preset github --count 9223372036854775807 --out a.csv", 2, "--count");
  refused("comm all_reduce -g 9223372036854775807", 2, "-g");
  CHECK_FALSE(fs::exists(here.folder() / "a.csv"));
}

TEST_CASE("the end of memory is the machine's refusal, wherever it comes", "[lengths]") {
  const Workplace here;
  // A quarter of a million sequences a step: from a limit at which nothing is begun to one at which all runs.
  for (const int megabytes : {300, 500, 700}) {
    CAPTURE(megabytes);
    const Outcome outcome = here.hdpsim(fmt::format("{} --set 'data.lengths={{fixed: 64}}' --jobs 2", tiny_step),
                                        fmt::format("ulimit -v {}000;", megabytes));
    CAPTURE(outcome.err.substr(0, 500));
    CHECK((outcome.code == 0 || outcome.code == 3 || outcome.code == 127));
  }
}

TEST_CASE("what a killed generator has left is removed by the next one of the same file", "[lengths]") {
  const Workplace here;
  const auto parts = [&] {
    std::int64_t count = 0;
    for (const auto& entry : fs::directory_iterator(here.folder()))
      count += entry.path().extension() == ".part" ? 1 : 0;
    return count;
  };
  Background generator(here, "trace generate --preset github --count 200000000 --out lengths.csv");
  generator.await([&] { return parts() > 0; });
  generator.send(SIGKILL);
  CHECK(generator.wait() == 128 + SIGKILL);
  CHECK(parts() == 1);
  here.run("trace generate --preset github --count 10 --out other.csv");
  CHECK(parts() == 1);  // of another file
  here.run("trace generate --preset github --count 10 --out lengths.csv");
  CHECK(parts() == 0);
}

TEST_CASE("a plan that trains nothing, and one without a schema, are refused by their file", "[lengths]") {
  const Workplace here;
  here.write("nothing.json",
             R"({"schema": "hdpsim.plan/1", "policy": "hdp-balance", "step": 0, "ranks": 4, "capacity": 1024, )"
             R"("layers": 4, "sequences": [], "micro_batches": [], "schedule": [[], [], [], []]})");
  const Outcome nothing = here.hdpsim("execute nothing.json --study configs/studies/real.yaml");
  CHECK(nothing.code == 2);
  CHECK_THAT(nothing.err, Contains("nothing.json: error: the plan has no sequences: nothing would be trained"));
  CHECK_THAT(here.hdpsim("check nothing.json").out, Contains("note: hdpsim execute refuses it"));
  here.write("old.json", R"({"policy": "hdp-balance", "step": 0, "ranks": 1, "capacity": 1024, "layers": 4, )"
                         R"("sequences": [10], "micro_batches": [{"group": "0", "spans": [0]}], "schedule": [[0]]})");
  CHECK_THAT(here.refusal("execute old.json --study configs/studies/real.yaml"),
             Contains("old.json") && Contains("schema"));
  const Outcome study = here.hdpsim("execute configs/studies/real.yaml --study configs/studies/real.yaml");
  CHECK(study.code == 2);
  CHECK_THAT(study.err, Contains("configs/studies/real.yaml: error: this is no plan, to which --study belongs"));
}

}  // namespace
}  // namespace hdpsim::spec
