#include "sim/trace/trace.h"

#include <sys/resource.h>

#include <csignal>

#include "sim/base/check.h"
#include "tests/support/catch.h"
#include "tests/support/not_run.h"
#include "tests/unit/trace/trace_files.h"

namespace hdpsim {
namespace {

using Tokens = std::vector<std::int64_t>;

std::int64_t write(const std::vector<Length>& lengths, const std::filesystem::path& path,
                   const WriteOptions& options = {}) {
  ListedLengths source(lengths);
  return write_trace(source, path, options);
}

/// Files may not pass a size while it lives: what a full disk looks like to the program.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    static_cast<void>(std::signal(SIGXFSZ, handler_));
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace

TEST_CASE("lengths are written as lines, csv and jsonl, with steps where there is a place for them", "[trace]") {
  const TraceFolder folder;
  const std::vector<Length> plain{{5}, {70}};
  const std::vector<Length> stepped{{5, 0}, {70, 3}};
  CHECK(write(plain, folder.at("a.txt")) == 2);
  CHECK(folder.read("a.txt") == "5\n70\n");
  write(plain, folder.at("a.csv"));
  CHECK(folder.read("a.csv") == "length\n5\n70\n");
  write(stepped, folder.at("b.csv"));
  CHECK(folder.read("b.csv") == "step,length\n0,5\n3,70\n");
  write(plain, folder.at("a.jsonl"));
  CHECK(folder.read("a.jsonl") == "{\"length\": 5}\n{\"length\": 70}\n");
  write(stepped, folder.at("b.jsonl"));
  CHECK(folder.read("b.jsonl") == "{\"step\": 0, \"length\": 5}\n{\"step\": 3, \"length\": 70}\n");
  write(stepped, folder.at("b.out"), {.format = TraceFormat::lines});
  CHECK(folder.read("b.out") == "5\n70\n");
}

TEST_CASE("a written .npy file is the one that NumPy writes", "[trace]") {
  const TraceFolder folder;
  write({{5}, {70'000}}, folder.at("a.npy"));
  std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }";
  header.append(128 - 10 - 1 - header.size(), ' ');
  CHECK(folder.read("a.npy") ==
        std::string("\x93NUMPY\x01\0", 8) + little(128 - 10, 2) + header + "\n" + little(5, 8) + little(70'000, 8));
}

TEST_CASE("what is written in any format of documents is read back unchanged", "[trace]") {
  const TraceFolder folder;
  const auto lengths = make_distribution(Lognormal{.mu = 8, .sigma = 3});
  const Tokens expected = tokens_of(*make_drawn_lengths(lengths, 1, 50'000));
  for (const char* name : {"a.txt", "a.csv", "a.jsonl", "a.npy"}) {
    CAPTURE(name);
    CHECK(write_trace(*make_drawn_lengths(lengths, 1, 50'000), folder.at(name)) == 50'000);
    CHECK(tokens_of(*open_trace(folder.at(name))) == expected);
  }
}

TEST_CASE("a histogram counts exactly, in four bins an octave and single lengths up to 8", "[trace]") {
  const TraceFolder folder;
  write({{1}, {8}, {8}, {9}, {10}, {11}, {4096}, {4097}, {5120}, {5121}}, folder.at("h.csv"),
        {.format = TraceFormat::histogram});
  CHECK(folder.read("h.csv") ==
        "range,count\n\"[1, 1]\",1\n\"[8, 8]\",2\n\"[9, 10]\",2\n\"[11, 12]\",1\n\"[3585, 4096]\",1\n"
        "\"[4097, 5120]\",2\n\"[5121, 6144]\",1\n");
  CHECK(detect_format(folder.at("h.csv")) == TraceFormat::histogram);
  CHECK(read_distribution(folder.at("h.csv"))->quantile(1) == 6144);
}

TEST_CASE("a quantile table is written of documents and, without drawing, of a distribution", "[trace]") {
  const TraceFolder folder;
  write({{5}, {5}, {5}}, folder.at("q.csv"), {.format = TraceFormat::quantiles});
  CHECK(folder.read("q.csv") == "quantile,length\n0,5\n1,5\n");
  folder.write("h.csv", "upper,count\n100,1\n200,1\n");
  CHECK(convert(folder.at("h.csv"), {}, folder.at("t.csv"), {.format = TraceFormat::quantiles, .points = 100}) == 0);
  const auto source = read_distribution(folder.at("h.csv"));
  const auto table = read_distribution(folder.at("t.csv"));
  for (int i = 0; i <= 100; ++i) {
    CAPTURE(i);
    // One of 75 points up to quantile 0.99, half of them in [101, 200]: 2 % a point there, 7 % in [1, 100].
    CHECK(static_cast<double>(table->quantile(i / 100.0)) ==
          Approx(static_cast<double>(source->quantile(i / 100.0))).epsilon(0.13).margin(1));
  }
}

TEST_CASE("a conversion that fails leaves the old file and nothing else", "[trace]") {
  const TraceFolder folder;
  folder.write("a.txt", "5\nx\n");
  folder.write("b.csv", "what was there\n");
  CHECK(
      folder.complaint([&] { return convert(folder.at("a.txt"), {}, folder.at("b.csv")); }).starts_with("a.txt:2:1:"));
  CHECK(folder.read("b.csv") == "what was there\n");
  CHECK(folder.names().size() == 2);
}

TEST_CASE("a full disk is the machine's refusal, and leaves nothing", "[trace]") {
  const TraceFolder folder;
  const auto source = make_drawn_lengths(make_distribution(Lognormal{.mu = 8, .sigma = 1}), 1, 100'000);
  {
    const FullDisk disk(100'000);
    CHECK_THROWS_AS(write_trace(*source, folder.at("a.txt")), MachineError);
  }
  CHECK(folder.names().empty());
  if (!std::filesystem::exists("/dev/full")) return test::say_not_run("there is no /dev/full here");
  CHECK_THROWS_AS(write({{5}}, "/dev/full", {.format = TraceFormat::lines}), MachineError);
}

TEST_CASE("what cannot be written is refused before anything is read", "[trace]") {
  const TraceFolder folder;
  const std::string help = "        lines, csv, jsonl, npy, histogram and quantiles can be written\n";
  CHECK(folder.complaint([&] { return write({{5}}, folder.at("a.idx")); }) ==
        "a.idx: error: the format megatron cannot be written\n" + help);
  CHECK(folder.complaint([&] { return write({{5}}, folder.at("a.dat")); }) ==
        "a.dat: error: the extension does not name a known format\n" + help);
  CHECK(folder.complaint([&] { return write({}, folder.at("a.txt")); }) == "error: there are no lengths to write\n");
  CHECK(folder.complaint([&] { return write({{5}}, folder.at("a.csv"), {.points = 3}); }) ==
        "error: a quantile table of 3 points\n        take from 16 to 1000000 points\n");
  CHECK(folder.complaint([&] {
    return write({{5, 1}, {6}}, folder.at("a.csv"));
  }) == "error: some lengths have a step and some have none\n");
  CHECK(folder.names().empty());
}

}  // namespace hdpsim
