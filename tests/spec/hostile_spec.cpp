#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/not_run.h"
#include "tests/support/processor_pace.h"

namespace hdpsim::spec {
namespace {

// What a command may take of memory, which sanitizers reserve much more of. The time ends what hangs.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr char bounds[] = "ulimit -t 600;";
constexpr char narrow_bounds[] = "ulimit -t 600;";
constexpr double slower = 10;
#else
constexpr char bounds[] = "ulimit -t 600; ulimit -v 1500000;";
// 256 MB beside what a process reserves for its libraries and threads.
constexpr char narrow_bounds[] = "ulimit -t 600; ulimit -v 600000;";
constexpr double slower = 1;
#endif

/// Of all commands that have ended.
double processor_s() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Whether what a command has computed is a small multiple of what is measured here and now.
bool is_moderate(double computed_s) {
  constexpr double most_paces = 50;
  static double pace_s = test::pace_s();
  for (int attempt = 0; attempt < 5 && computed_s > slower * most_paces * pace_s; ++attempt) {
    pace_s = std::max(pace_s, test::pace_s());
  }
  return computed_s <= slower * most_paces * pace_s;
}

// No file may grow beyond 4 blocks of 512 bytes.
constexpr char full_disk[] = "ulimit -f 4;";

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

void check_refused(const Workplace& here, const std::string& arguments, const char* within = bounds) {
  const double before_s = processor_s();
  const std::string outcome = here.refusal(arguments, within);
  const double computed_s = processor_s() - before_s;
  CAPTURE(arguments, outcome.substr(0, 500), computed_s);
  CHECK(is_moderate(computed_s));
  CHECK_THAT(outcome, Catch::Contains("error: "));
  CHECK(outcome.size() < 40'000);
}

bool holds_part(const fs::path& folder) {
  if (!fs::exists(folder)) return false;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".part") return true;
  }
  return false;
}

TEST_CASE("endless brackets and endless lines are refused at once, whatever file they are in", "[hostile]") {
  const Workplace here;
  constexpr std::size_t length = 3'000'000;  // no document may be as large
  here.write("brackets", std::string(length, '['));
  here.write("line", std::string(length, '1'));
  here.write("maps.json", repeated("{\"a\": ", length / 6));
  here.write("node.xml", repeated("<a>", length / 3));
  here.write("cluster.yaml", "gpus: 8\nnode: {nccl_topology: node.xml}\n");
  // Studies, clusters, profiles and validation sets have one reader; the other kinds have their own.
  for (const char* file : {"brackets", "line", "maps.json"}) {
    for (const char* kind : {"study", "plan", "model", "lengths"}) {
      check_refused(here, fmt::format("check {} --kind {}", file, kind));
    }
    check_refused(here, fmt::format("compare {0} {0}", file));
  }
  for (const char* kind : {"cluster", "profile", "validation"}) {
    check_refused(here, fmt::format("check brackets --kind {}", kind));
  }
  for (const char* command : {"study", "replay", "tune", "validate"}) {
    check_refused(here, fmt::format("{} brackets", command));
  }
  check_refused(here, "check cluster.yaml --kind cluster");
}

TEST_CASE("files as large as they may be are refused as fast, however many their problems", "[hostile]") {
  const Workplace here;
  constexpr std::size_t largest = 2'000'000;
  here.write("brackets.yaml", "a: " + std::string(largest - 3, '['));
  here.write("twice.yaml", repeated("a: 1\n", largest / 5));
  here.write("plans.yaml", "plans: [" + repeated("1,", largest / 2 - 5) + "]\n");
  std::string keys;
  for (int i = 0; keys.size() < largest - 20; ++i) keys += fmt::format("k{}: 1\n", i);
  here.write("keys.yaml", keys);
  std::string anchors = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    anchors += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  here.write("anchors.yaml", anchors);
  here.write("words.yaml", "plans: [" + repeated("hpd-balanse, ", largest / 13 - 2) + "x]\n");
  here.write("maps.yaml", "plans:\n" + repeated("  - {hpd-balanse: {offlod: 1}}\n", largest / 31 - 1));
  here.write("documents.yaml", repeated("--- 1\n", largest / 6));
  here.write("lists.yaml", repeated("- ", largest / 2 - 1) + "x\n");
  for (const char* file : {"brackets", "twice", "plans", "keys", "anchors", "words", "maps", "documents", "lists"}) {
    check_refused(here, fmt::format("check {}.yaml --kind study", file));
  }
  for (const char* kind : {"cluster", "profile"}) check_refused(here, fmt::format("check keys.yaml --kind {}", kind));
}

TEST_CASE("large files that are not what they should be are refused within a narrow memory", "[hostile]") {
  const Workplace here;
  constexpr std::size_t length = 30'000'000;
  here.write("nested.jsonl", "{\"length\": " + std::string(length, '['));
  here.write("text.jsonl", "{\"length\": \"" + std::string(length, 'x'));
  here.write("fields.csv", std::string(length, ','));
  here.write("row.csv", "length\n" + repeated("1,", length / 2));
  here.write("quotes.csv", "length,a\n1,\"" + std::string(length, '\n'));
  here.write("rows.csv", "upper,count\n" + repeated("1,1\n", length / 4));
  here.write("zeros.csv", "length\n" + repeated("0\n", length / 2));
  here.write("zeros.jsonl", repeated("{}\n", length / 3));
  here.write("zeros.txt", repeated("0\n", length / 2));
  here.write("empty.txt", std::string(length, '\n'));
  for (const char* file : {"nested.jsonl", "text.jsonl", "fields.csv", "row.csv", "quotes.csv", "rows.csv", "zeros.csv",
                           "zeros.jsonl", "zeros.txt", "empty.txt"}) {
    check_refused(here, fmt::format("trace describe {}", file), narrow_bounds);
  }
  check_refused(here, "check rows.csv", narrow_bounds);  // which finds out what a file is, and has the same readers
  const std::string plan = "{\"schema\": \"hdpsim.plan/1\", \"ranks\": 4, \"layers\": 1, \"sequences\": [";
  here.write("zeros.json", plan + repeated("0,", length / 2));
  here.write("letters.json", plan + "\"" + std::string(length, 'x'));
  here.write("lists.json", plan + "8], \"micro_batches\": [{\"group\": 0, \"spans\": [" + repeated("0,", length / 2));
  here.write("nothing.json", "{\"a\": [" + repeated("1,", length / 2));
  for (const char* file : {"zeros.json", "letters.json", "lists.json", "nothing.json"}) {
    check_refused(here, fmt::format("check {} --kind plan", file), narrow_bounds);
  }
  check_refused(here, "check zeros.json", narrow_bounds);
}

TEST_CASE("what never ends is refused at once", "[hostile]") {
  if (!fs::exists("/dev/zero")) return test::say_not_run("there is no /dev/zero here");
  const Workplace here;
  here.write("line", std::string(30'000'000, '1'));
  for (const char* file : {"/dev/zero", "line"}) {
    for (const char* format : {"lines", "csv", "jsonl"}) {
      check_refused(here, fmt::format("trace describe {} --from {}", file, format), narrow_bounds);
    }
    for (const char* command : {"comm all_reduce --compare", "calibrate --nccl-tests", "calibrate --report"}) {
      check_refused(here, fmt::format("{} {}", command, file), narrow_bounds);
    }
  }
  for (const char* command :
       {"check --kind study", "check --kind plan", "check --kind model", "compare /dev/zero", "validate"}) {
    check_refused(here, fmt::format("{} /dev/zero", command), narrow_bounds);
  }
  check_refused(here, "execute configs/studies/real.yaml --plan hdp-balance --text /dev/zero", bounds);
}

TEST_CASE("numbers of things that are far too many are refused before they are made", "[hostile]") {
  const Workplace here;
  check_refused(here, "comm all_reduce -f 1.0000001", narrow_bounds);
  std::string values;
  for (int i = 0; i < 400; ++i) values += fmt::format("{}{}", i == 0 ? "" : ",", i);
  const std::string sweep = fmt::format("--set sweep.data.seed=[{0}] --set sweep.data.steps=[{0}]", values);
  check_refused(here, fmt::format("study configs/studies/tiny.yaml {}", sweep), narrow_bounds);
  check_refused(here, "study configs/studies/tiny.yaml" + repeated(" --set data.seed=1", 3000), narrow_bounds);
}

TEST_CASE("what is set on the command line nests no deeper than a file", "[hostile]") {
  const Workplace here;
  for (const std::string& setting : {repeated("mesh.", 20'000) + "tp=2", "mesh=" + std::string(60'000, '['),
                                     "sweep." + repeated("mesh.", 20'000) + "tp=[2]"}) {
    check_refused(here, fmt::format("study configs/studies/tiny.yaml --set '{}'", setting), narrow_bounds);
  }
}

TEST_CASE("the name of a file cannot break a message's line", "[hostile]") {
  const Workplace here;
  const std::string outcome = here.refusal("check \"two\nlines.yaml\"");
  CHECK(outcome == "two lines.yaml: error: there is no such file\n");
}

TEST_CASE("where nothing can be written every command ends with 3 and leaves nothing but a journal", "[hostile]") {
  const Workplace here;
  here.write("file", "not a folder");
  const char* tuning =
      "tune configs/studies/tune.yaml --set data.steps=2 --set 'tune.space={mesh.tp: [2], mesh.pp: [1], mesh.capacity: "
      "[8Ki]}'";
  for (const char* command : {"study configs/studies/tiny.yaml --set sweep={} --set data.steps=1 --set compare_to=null",
                              tuning, "validate configs/validation/korthikanti.yaml"}) {
    const Outcome full = here.hdpsim(fmt::format("{} --out results", command), full_disk);
    CAPTURE(command, full.err);
    CHECK(full.code == 3);
    CHECK(full.err.find("error: cannot write results/") != std::string::npos);
    CHECK_FALSE(holds_part(here.folder() / "results"));
    fs::remove_all(here.folder() / "results");
    CHECK(here.hdpsim(fmt::format("{} --out file/results", command)).code == 3);
    if (fs::exists("/dev/full")) CHECK(here.hdpsim(fmt::format("{} >/dev/full", command)).code == 3);
    CHECK(here.hdpsim(fmt::format("{} >&-", command)).code == 3);
    CHECK(here.hdpsim(fmt::format("{} | true >.stdout", command)).err.find("bug") == std::string::npos);
  }
}

}  // namespace
}  // namespace hdpsim::spec
