#include "sim/replay/journal.h"

#include <fmt/format.h>

#include <fstream>
#include <map>

#include "sim/base/diagnostic.h"
#include "tests/support/catch.h"
#include "tests/support/file_text.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;
using Rows = std::vector<StepRow>;

const std::vector<std::string> plans = {"static", "hdp-balance {offload: auto, delta: 0.1}"};

Rows step(std::int64_t number) {
  Rows rows(2);
  for (std::size_t plan = 0; plan < 2; ++plan) {
    rows[plan].step = number;
    rows[plan].plan = plan;
    rows[plan].batch = {7, 1 << 20, 1 << 17, 1e5 / 3};
    rows[plan].micro_batches = 3;
    rows[plan].time_s = 1.0 / static_cast<double>(3 + number);
    rows[plan].breakdown_s[2] = 1e-12;
    rows[plan].device_gb = 79.9;
  }
  return rows;
}

using test::text_of;

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

using Texts = std::map<std::string, std::string>;  // by the name of the file

// What a folder holds when all is well.
void write(const fs::path& folder, const Texts& texts) {
  for (const auto& [name, text] : texts) write(folder / name, text);
}

Texts texts_of(const fs::path& folder) {
  Texts texts;
  for (const auto& entry : fs::directory_iterator(folder)) {
    texts[entry.path().filename().string()] = text_of(entry.path());
  }
  return texts;
}

// What a replay of `steps` steps leaves behind.
Texts whole_files(std::int64_t steps, const std::string& identity = "me") {
  const test::TemporaryFolder folder;
  Journal journal(folder.path(), identity, plans);
  journal.begin();
  for (std::int64_t i = 0; i < steps; ++i) journal.append(step(i));
  journal.finish();
  return texts_of(folder.path());
}

struct Resumed {
  std::vector<std::int64_t> again;  ///< Steps that were simulated to take the places of damaged ones.
  std::vector<Rows> taken;
  std::vector<std::string> told;
};

// Goes on as a replay does.
Resumed resumed(const fs::path& folder, std::int64_t steps) {
  Resumed found;
  Journal journal(folder, "me", plans);
  const Journal::Kept kept = journal.look([&](const Diagnostic& part) {
    found.told.push_back(
        fmt::format("{}:{}: {}", fs::path(part.position.file).filename().string(), part.position.line, part.message));
  });
  found.again = kept.missing;
  if (kept.damaged) {
    std::map<std::int64_t, Rows> again;
    for (const std::int64_t missing : kept.missing) again[missing] = step(missing);
    journal.mend(again);
  }
  journal.resume([&](const Rows& rows) { found.taken.push_back(rows); });
  for (std::int64_t i = std::ssize(found.taken); i < steps; ++i) journal.append(step(i));
  journal.finish();
  return found;
}

void require_rows(const std::vector<Rows>& taken) {
  for (std::size_t i = 0; i < taken.size(); ++i) REQUIRE(taken[i] == step(static_cast<std::int64_t>(i)));
}

std::string complaint(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.diagnostics().sorted().front().message;
  }
  return "";
}

TEST_CASE("a file that was cut off at any byte goes on to the same bytes", "[replay]") {
  const Texts whole = whole_files(3);
  const std::string& rows = whole.at("steps.csv");
  for (std::size_t cut = 0; cut <= rows.size(); ++cut) {
    CAPTURE(cut);
    const test::TemporaryFolder folder;
    write(folder.path() / "steps.csv.part", rows.substr(0, cut));
    write(folder.path() / "steps.sums.part", whole.at("steps.sums"));
    require_rows(resumed(folder.path(), 3).taken);
    REQUIRE((texts_of(folder.path()) == whole));
  }
}

TEST_CASE("a process that is killed leaves at most one step without checksums, which needs no word", "[replay]") {
  const Texts whole = whole_files(4);
  const std::string& sums = whole.at("steps.sums");
  const std::size_t step_bytes = 2 * 17;  // two plans
  for (std::size_t missing = 0; missing <= step_bytes; ++missing) {
    CAPTURE(missing);
    const test::TemporaryFolder folder;
    write(folder.path() / "steps.csv.part", whole.at("steps.csv"));
    write(folder.path() / "steps.sums.part", sums.substr(0, sums.size() - missing));
    const Resumed found = resumed(folder.path(), 4);
    REQUIRE(found.told.empty());
    REQUIRE(found.taken.size() == (missing == 0 ? 4 : 3));
    REQUIRE((texts_of(folder.path()) == whole));
  }
}

TEST_CASE("whole steps come back as they were, and a replay may become longer", "[replay]") {
  const test::TemporaryFolder folder;
  write(folder.path(), whole_files(3));
  CHECK(resumed(folder.path(), 5).taken == std::vector<Rows>{step(0), step(1), step(2)});
  CHECK((texts_of(folder.path()) == whole_files(5)));
  CHECK(resumed(folder.path(), 5).taken.size() == 5);
}

TEST_CASE("a row that is changed is named, and its step alone is simulated again", "[replay]") {
  const Texts whole = whole_files(5);
  const test::TemporaryFolder folder;
  write(folder.path(), whole);
  std::string damaged = whole.at("steps.csv");
  const std::size_t at = damaged.find("\n2,") + 6;
  damaged[at] = static_cast<char>(damaged[at] ^ 1);
  write(folder.path() / "steps.csv", damaged);
  const Resumed found = resumed(folder.path(), 5);
  CHECK(found.told == std::vector<std::string>{"steps.csv:6: this row is damaged or in the wrong place"});
  CHECK(found.again == std::vector<std::int64_t>{2});
  CHECK(found.taken.size() == 5);
  require_rows(found.taken);
  CHECK((texts_of(folder.path()) == whole));
}

TEST_CASE("rows that are missing, stand there twice, have changed places or are of another replay are told",
          "[replay]") {
  const Texts whole = whole_files(4);
  const std::string& rows = whole.at("steps.csv");
  const std::size_t begin = rows.find("\n1,") + 1;
  const std::size_t next = rows.find("\n2,") + 1;
  const std::string one = rows.substr(begin, next - begin);
  const std::string before = rows.substr(0, begin);
  const std::string behind = rows.substr(next);
  struct Case {
    std::string text;
    std::size_t told;
    std::vector<std::int64_t> again;
  };
  const Case damage =
      GENERATE_COPY(Case{before + behind, 1, {1}}, Case{before + one + one + behind, 2, {}},
                    Case{"step,plan\n" + rows, 2, {}}, Case{behind, 1, {0, 1, 2}}, Case{before + behind + one, 1, {1}});
  const test::TemporaryFolder folder;
  write(folder.path(), whole);
  write(folder.path() / "steps.csv", damage.text);
  const Resumed found = resumed(folder.path(), 4);
  CHECK(found.told.size() == damage.told);
  CHECK(found.again == damage.again);
  require_rows(found.taken);
  CHECK((texts_of(folder.path()) == whole));
}

TEST_CASE("rows of another replay are not taken, whatever they say", "[replay]") {
  const Texts whole = whole_files(4);
  const test::TemporaryFolder folder;
  write(folder.path(), whole);
  const std::string& rows = whole.at("steps.csv");
  write(folder.path() / "steps.sums", whole_files(4, "you").at("steps.sums"));
  CHECK_THAT(complaint([&] { (void)resumed(folder.path(), 4); }), Catch::Contains("holds the replay of another study"));
  // Its checksums below the right title.
  const std::string title = whole.at("steps.sums").substr(0, whole.at("steps.sums").find('\n') + 1);
  const std::string others = whole_files(4, "you").at("steps.sums");
  write(folder.path() / "steps.sums", title + others.substr(others.find('\n') + 1));
  CHECK(resumed(folder.path(), 4).taken.empty());
  CHECK((text_of(folder.path() / "steps.csv") == rows));
}

TEST_CASE("without checksums all steps are simulated again, with a word", "[replay]") {
  const Texts whole = whole_files(2);
  const test::TemporaryFolder folder;
  write(folder.path() / "steps.csv", whole.at("steps.csv"));
  const Resumed found = resumed(folder.path(), 2);
  CHECK(found.told == std::vector<std::string>{"steps.csv:1: these steps have no checksums in steps.sums"});
  CHECK(found.taken.empty());
  CHECK((texts_of(folder.path()) == whole));
}

TEST_CASE("where more steps are damaged than are mended one by one, all that follow are simulated again", "[replay]") {
  constexpr std::int64_t steps = 1500;
  const Texts whole = whole_files(steps);
  const test::TemporaryFolder folder;
  write(folder.path(), whole);
  std::string damaged = whole.at("steps.csv");
  for (std::int64_t i = 10; i < 1200; ++i) damaged[damaged.find(fmt::format("\n{},", i)) + 1] = 'x';
  write(folder.path() / "steps.csv", damaged);
  const Resumed found = resumed(folder.path(), steps);
  CHECK(found.again.empty());
  CHECK(found.taken.size() == 10);
  CHECK((texts_of(folder.path()) == whole));
}

TEST_CASE("a folder of another replay, or of none, is refused and left alone", "[replay]") {
  const test::TemporaryFolder folder;
  const auto said = [&] { return complaint([&] { (void)resumed(folder.path(), 2); }); };
  CHECK_THAT(said(), Catch::Contains("holds no replay to go on with"));
  write(folder.path() / "steps.csv", "point,plan\n");  // of a study
  CHECK_THAT(said(), Catch::Contains("holds no replay to go on with"));
  const Texts other = whole_files(3, "you");
  write(folder.path(), other);
  CHECK_THAT(said(), Catch::Contains("holds the replay of another study"));
  CHECK((texts_of(folder.path()) == other));
}

TEST_CASE("beginning anew removes what another replay left", "[replay]") {
  const test::TemporaryFolder folder;
  for (const char* left : {"steps.csv", "steps.csv.part", "steps.sums", "steps.sums.part", "identity"}) {
    write(folder.path() / left, "old");
  }
  Journal journal(folder.path(), "me", plans);
  journal.begin();
  const Texts left = texts_of(folder.path());
  CHECK(left.size() == 2);
  CHECK(left.at("steps.csv.part") == StepTable::header());
  CHECK_THAT(left.at("steps.sums.part"),
             Catch::StartsWith(R"({"schema":"hdpsim.sums/1","identity":"me","checksum":")"));
}

}  // namespace
}  // namespace hdpsim
