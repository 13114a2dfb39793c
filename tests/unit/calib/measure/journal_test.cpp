#include "calib/measure/journal.h"

#include <algorithm>
#include <fstream>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "tests/support/catch.h"
#include "tests/support/file_text.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim::calib {
namespace {

namespace fs = std::filesystem;

JournalHeader header_of(const std::string& device) {
  JournalHeader header{.program = "1.0", .plan = "quick", .circumstances = {}};
  header.circumstances.device_name = device;
  header.circumstances.peak_flops = 1.25e14;
  header.circumstances.date = "2026-01-02";
  return header;
}

Measurement measured_with_journal(std::int64_t m, int round, double seconds) {
  return {.subject = Gemm{m, 2, 3}, .round = round, .timing = {seconds, 0.9 * seconds, 1.1 * seconds, 0.05, 12}};
}

using test::text_of;

void append(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
}

/// Goes on with a journal; `told` gets what is damaged.
Journal resumed(const fs::path& path, const JournalHeader& header, std::vector<std::string>* told = nullptr) {
  return Journal::resume(path, header, [&](const Diagnostic& part) {
    if (told != nullptr) told->push_back(damage_text(part));
  });
}

/// A journal of two measurements.
void fill(const fs::path& path) {
  Journal journal = Journal::start(path, header_of("a chip"));
  journal.add(measured_with_journal(1, 0, 0.1));
  Measurement cold = measured_with_journal(2, 1, 1.0 / 3);
  cold.emptying_s = 1.0 / 7;
  journal.add(cold);
}

TEST_CASE("a journal goes on where it ended, to the last digit of every time", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "samples.jsonl";
  fill(path);
  JournalHeader now = header_of("a chip");
  now.circumstances.date = "2026-01-03";
  Journal journal = resumed(path, now);
  REQUIRE(journal.measurements().size() == 2);
  CHECK(journal.measurements()[1].round == 1);
  CHECK(journal.measurements()[1].timing == measured_with_journal(2, 1, 1.0 / 3).timing);
  CHECK_FALSE(journal.measurements()[0].emptying_s);
  CHECK(journal.measurements()[1].emptying_s == 1.0 / 7);
  CHECK(journal.circumstances().date == "2026-01-02");  // of the journal, not of this execution
  CHECK(journal.circumstances().peak_flops == 1.25e14);
  journal.add(measured_with_journal(3, 0, 0.2));
  { const Journal ended = std::move(journal); }  // one at a time writes it
  CHECK(resumed(path, now).measurements().size() == 3);
}

TEST_CASE("every measurement is on disk as soon as it is made", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "samples.jsonl";
  Journal journal = Journal::start(path, header_of("a chip"));
  journal.add(measured_with_journal(1, 0, 0.1));
  const std::string text = text_of(path);
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
}

TEST_CASE("a last line that was cut off is dropped and written anew", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "samples.jsonl";
  fill(path);
  const std::string whole = text_of(path);
  append(path, R"({"subject":{"family":"ge)");
  Journal journal = resumed(path, header_of("a chip"));
  CHECK(journal.measurements().size() == 2);
  CHECK(text_of(path) == whole);
  journal.add(measured_with_journal(3, 0, 0.2));
  CHECK(text_of(path).starts_with(whole));
  { const Journal ended = std::move(journal); }
  CHECK(resumed(path, header_of("a chip")).measurements().size() == 3);
}

/// What resuming says, or nothing.
std::string refusal(const fs::path& path, const JournalHeader& header) {
  try {
    const Journal journal = resumed(path, header);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a journal of another device, program or plan is refused", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "samples.jsonl";
  fill(path);
  CHECK(refusal(path, header_of("a chip")).empty());
  CHECK_THAT(refusal(path, header_of("another chip")),
             Catch::Contains("samples.jsonl:1:1: error: these samples are of another device: 'a chip', now "
                             "'another chip'"));
  JournalHeader newer = header_of("a chip");
  newer.program = "1.1";
  CHECK_THAT(refusal(path, newer), Catch::Contains("another version of hdpsim: '1.0', now '1.1'"));
  JournalHeader larger = header_of("a chip");
  larger.plan = "full";
  CHECK_THAT(refusal(path, larger), Catch::Contains("another plan: 'quick', now 'full'"));
}

TEST_CASE("a line that is changed in any byte is named and left out, all others are kept", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "samples.jsonl";
  fill(path);
  const std::string whole = text_of(path);
  const std::size_t begin = whole.find('\n') + 1;
  const std::size_t end = whole.find('\n', begin);
  for (std::size_t at = begin; at < end; ++at) {
    CAPTURE(at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(path, std::ios::binary) << damaged;
    std::vector<std::string> told;
    const Journal journal = resumed(path, header_of("a chip"), &told);
    REQUIRE(told == std::vector<std::string>{path.string() + ":2:1: this line is damaged"});
    REQUIRE(journal.measurements().size() == 1);
    REQUIRE(journal.measurements()[0].round == 1);
    REQUIRE((text_of(path) == whole.substr(0, begin) + whole.substr(end + 1)));
  }
}

TEST_CASE("measurements outlive the damage of what stands before them", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "samples.jsonl";
  fill(path);
  std::string damaged = text_of(path);
  damaged.replace(2, 6, "scheme");
  std::ofstream(path, std::ios::binary) << damaged;
  std::vector<std::string> told;
  CHECK(resumed(path, header_of("a chip"), &told).measurements().size() == 2);
  REQUIRE(told.size() == 1);
  CHECK_THAT(told[0], Catch::Contains("samples.jsonl:1:1: this line is damaged"));
  told.clear();
  CHECK(resumed(path, header_of("a chip"), &told).measurements().size() == 2);
  CHECK(told.empty());
}

TEST_CASE("a line that stands there twice counts once, one of another journal not at all", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "samples.jsonl";
  fill(path);
  const std::string whole = text_of(path);
  const std::string last = whole.substr(whole.rfind('\n', whole.size() - 2) + 1);
  const fs::path other = folder.path() / "other.jsonl";
  {
    Journal journal = Journal::start(other, header_of("another chip"));
    journal.add(measured_with_journal(5, 0, 0.5));
  }
  const std::string strange = text_of(other);
  append(path, last + strange.substr(strange.find('\n') + 1));
  std::vector<std::string> told;
  CHECK(resumed(path, header_of("a chip"), &told).measurements().size() == 2);
  CHECK(told == std::vector<std::string>{path.string() + ":4:1: what this line holds is there twice",
                                         path.string() + ":5:1: this line is damaged"});
  CHECK((text_of(path) == whole));
}

TEST_CASE("a journal that is not there is refused, one of which nothing is left begins anew", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "samples.jsonl";
  CHECK_THAT(refusal(path, header_of("a chip")), Catch::Contains("there are no samples to go on with"));
  append(path, GENERATE("", "hello\n", "{\"schema\": \"hdpsim.samples/1\"}\n"));
  const bool is_empty = text_of(path).empty();
  std::vector<std::string> told;
  CHECK(resumed(path, header_of("a chip"), &told).measurements().empty());
  CHECK(told.empty() == is_empty);  // a process that was killed leaves an empty file
  CHECK(refusal(path, header_of("a chip")).empty());
}

TEST_CASE("a folder that is not there cannot hold a journal", "[journal]") {
  CHECK_THROWS_AS(Journal::start("/nowhere/samples.jsonl", header_of("a chip")), MachineError);
}

}  // namespace
}  // namespace hdpsim::calib
