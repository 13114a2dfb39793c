#include "sim/base/random.h"
#include "sim/trace/trace.h"
#include "tests/support/catch.h"
#include "tests/unit/trace/trace_files.h"

namespace hdpsim {
namespace {

/// Files of every format, as small as they can be and still have all parts.
std::vector<std::pair<std::string, std::string>> whole_files(const TraceFolder& folder) {
  std::vector<std::pair<std::string, std::string>> files{
      {"a.csv", "step,name,length\n0,\"a, \"\"b\"\"\",5\n1,c,6\n"},
      {"q.csv", "quantile,length\n0,5\n0.5,6\n1,7\n"},
      {"h.csv", "range,count\n\"[0, 10]\",3\n\"[11, 20]\",4\n"},
      {"m.csv", "edge,token_share\n2Ki,50\n4Ki,50\n"},
      {"a.jsonl", "{\"length\": 5, \"step\": 1}\n{\"length\": 6, \"step\": 2}\n"},
      {"a.txt", "# comment\n5\n6\n"},
      {"a.idx", std::string("MMIDIDX\0\0", 9) + little(1, 8) + little(4, 1) + little(2, 8) + little(3, 8) +
                    little(5, 4) + little(6, 4) + little(0, 8) + little(10, 8) + little(0, 8) + little(1, 8) +
                    little(2, 8)}};
  ListedLengths lengths({{5}, {6}});
  static_cast<void>(write_trace(lengths, folder.at("a.npy")));
  files.emplace_back("a.npy", folder.read("a.npy"));
  return files;
}

void damage(std::string& bytes, RandomStream& random) {
  const std::string_view likely("\0\xff\x7f\x80,\"\n'({[]})-9", 16);
  const std::size_t at = random.below(bytes.size());
  switch (random.below(4)) {
    case 0:
      bytes[at] = static_cast<char>(random.below(256));
      break;
    case 1:
      bytes[at] = likely[random.below(likely.size())];
      break;
    case 2:
      bytes.erase(at, 1 + random.below(4));
      break;
    default:
      bytes.insert(at, 1, likely[random.below(likely.size())]);
      break;
  }
}

}  // namespace

TEST_CASE("a damaged file is read or complained about, whatever the damage", "[trace]") {
  const TraceFolder folder;
  int complaints = 0;
  for (const auto& [name, whole] : whole_files(folder)) {
    for (std::uint64_t round = 0; round < 300; ++round) {
      INFO("replay: " << name << ", round " << round);
      RandomStream random(1, name, round);
      std::string bytes = whole;
      const std::uint64_t times = 1 + random.below(3);
      for (std::uint64_t i = 0; i < times && !bytes.empty(); ++i) damage(bytes, random);
      const auto path = folder.write(name, bytes);
      // Anything but an InputError ends the test.
      complaints +=
          folder.complaint([&] { return describe(*open_lengths(path, {}, {.seed = 1, .count = 10})); }).empty() ? 0 : 1;
    }
  }
  CHECK(complaints > 500);  // most damage does not go unseen
}

}  // namespace hdpsim
