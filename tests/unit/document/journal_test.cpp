#include "sim/document/journal.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"
#include "tests/support/catch.h"
#include "tests/support/file_text.h"
#include "tests/support/temporary_folder.h"

// That work ends with the same results whatever becomes of its journal is a property (property/kept_results).
namespace hdpsim {
namespace {

namespace fs = std::filesystem;

const JournalTitle title = {"replay", "seed: 1\nsteps: 2\n"};

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A journal of two records.
std::string written(const fs::path& path) {
  Journal journal = Journal::begin(path, title);
  journal.add("a \"key\"", R"({"value":[1,2]})");
  journal.add(R"(,"value":)", "2");
  return test::text_of(path);
}

/// What a journal keeps when it is resumed, and what is said of it.
struct Resumed {
  std::vector<std::string> kept;
  std::vector<std::string> told;
};

Resumed resumed(const fs::path& path, const JournalTitle& now = title) {
  Resumed found;
  const Journal journal =
      Journal::resume(path, now, [&](const Diagnostic& part) { found.told.push_back(damage_text(part)); });
  found.kept = journal.values();
  return found;
}

TEST_CASE("fingerprints are those of FNV-1a", "[journal]") {
  CHECK(fingerprint("") == 0xcbf29ce484222325);
  CHECK(fingerprint("a") == 0xaf63dc4c8601ec8c);  // the authors' test vectors
  CHECK(fingerprint("foobar") == 0x85944171f73967e8);
  CHECK(fingerprint("bar", fingerprint("foo")) == fingerprint("foobar"));
}

TEST_CASE("what a journal keeps is there for this execution and the next; of one key the last counts", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "j";
  (void)written(path);
  {
    Journal journal = Journal::resume(path, title, [](const Diagnostic&) { FAIL(); });
    CHECK(journal.kept("a \"key\"") == R"({"value":[1,2]})");
    CHECK(journal.kept(R"(,"value":)") == "2");
    CHECK_FALSE(journal.kept("another"));
    journal.add("another", "3");
    journal.add("another", "4");
    CHECK(journal.kept("another") == "4");
    CHECK(journal.size() == 3);
  }
  CHECK(resumed(path).kept == std::vector<std::string>{R"({"value":[1,2]})", "2", "4"});
  CHECK_FALSE(Journal().kept("a"));
}

TEST_CASE("a journal that is cut after any byte keeps its whole records, without a word", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "j";
  const std::string whole = written(path);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    CAPTURE(size);
    write(path, whole.substr(0, size));
    const Resumed found = resumed(path);
    const std::string left = whole.substr(0, size);
    const auto lines = std::count(left.begin(), left.end(), '\n');
    REQUIRE(found.told.empty());
    REQUIRE(std::ssize(found.kept) == std::max<std::ptrdiff_t>(0, lines - 1));
    REQUIRE((test::text_of(path) == whole.substr(0, std::max(whole.find('\n') + 1, left.rfind('\n') + 1))));
  }
}

TEST_CASE("a line of which any byte is another one, is missing or is there twice is named once and left out",
          "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "j";
  const std::string whole = written(path);
  const std::size_t first = whole.find('\n') + 1;
  const std::size_t second = whole.find('\n', first) + 1;
  for (std::size_t at = 0; at + 1 < second; ++at) {
    if (at + 1 == first) continue;  // the line end joins the title and the first record
    CAPTURE(at);
    for (const std::string& damaged :
         {whole.substr(0, at) + static_cast<char>(whole[at] ^ 1) + whole.substr(at + 1),
          whole.substr(0, at) + whole.substr(at + 1), whole.substr(0, at) + whole[at] + whole.substr(at)}) {
      write(path, damaged);
      const bool is_title = at < first;
      const std::string told =
          is_title ? ":1:1: this line is damaged, or is of another version" : ":2:1: this line is damaged";
      const Resumed found = resumed(path);
      REQUIRE(found.told == std::vector<std::string>{path.string() + told});
      REQUIRE(found.kept.size() == (is_title ? 2 : 1));
      REQUIRE(resumed(path).told.empty());
    }
  }
}

TEST_CASE("a journal of other work is refused at the line in which it differs, and left alone", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "j";
  const std::string whole = written(path);
  const auto refusal = [&](const JournalTitle& now) -> std::string {
    try {
      (void)resumed(path, now);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(refusal({"replay", "seed: 2\nsteps: 2\n"}),
             Catch::Contains("j:1:1: error: this journal is of another replay: 'seed: 1', now 'seed: 2'"));
  CHECK_THAT(refusal({"replay", "seed: 1\n"}), Catch::Contains("'steps: 2', now 'nothing more'"));
  CHECK_THAT(refusal({"tuning", title.identity}), Catch::Contains("another tuning: 'replay', now 'tuning'"));
  CHECK((test::text_of(path) == whole));
  CHECK(Journal::read(path, {"tuning", ""}, [](const Diagnostic&) {}).size() == 0);
  CHECK_THROWS_AS(Journal::resume(folder.path() / "none", title, [](const Diagnostic&) {}), InputError);
  CHECK_THROWS_AS(Journal::begin("/nowhere/j", title), MachineError);
}

TEST_CASE("reading a journal names damage and changes nothing", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "j";
  const std::string damaged = written(path) + "damage\n";
  write(path, damaged);
  std::size_t told = 0;
  Journal journal = Journal::read(path, title, [&](const Diagnostic&) { ++told; });
  CHECK(told == 1);
  CHECK(journal.size() == 2);
  journal.add("another", "3");
  CHECK((test::text_of(path) == damaged));
}

TEST_CASE("a folder begins anew, or continues; what names itself may continue from nothing", "[journal]") {
  const test::TemporaryFolder folder;
  const JournalFolder anew{folder.path()};
  const JournalFolder again{folder.path(), true};
  CHECK_THROWS_AS(again.open(title), InputError);
  again.open({"study", ""}).add("run", "1");
  CHECK(again.open({"study", ""}).kept("run") == "1");
  CHECK_FALSE(anew.open({"study", ""}).kept("run"));
  CHECK_FALSE(JournalFolder().open(title).kept("run"));
}

}  // namespace
}  // namespace hdpsim
