#include "sim/replay/journal.h"

#include <fstream>
#include <iterator>

#include "sim/base/diagnostic.h"
#include "tests/support/catch.h"
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

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// What a replay of `steps` steps leaves behind.
std::string whole_file(std::int64_t steps) {
  const test::TemporaryFolder folder;
  Journal journal = Journal::begin(folder.path(), "me", plans);
  for (std::int64_t i = 0; i < steps; ++i) journal.append(step(i));
  journal.finish();
  return text_of(folder.path() / "steps.csv");
}

std::vector<Rows> resumed(const fs::path& folder, std::int64_t steps) {
  std::vector<Rows> taken;
  Journal::require_resumable(folder, "me", plans.size(), steps);
  Journal journal = Journal::resume(folder, plans, [&](const Rows& rows) { taken.push_back(rows); });
  for (std::int64_t i = std::ssize(taken); i < steps; ++i) journal.append(step(i));
  journal.finish();
  return taken;
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
  const std::string whole = whole_file(4);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    CAPTURE(cut);
    const test::TemporaryFolder folder;
    write(folder.path() / "identity", "me");
    write(folder.path() / "steps.csv.part", whole.substr(0, cut));
    const std::vector<Rows> taken = resumed(folder.path(), 4);
    for (std::size_t i = 0; i < taken.size(); ++i) REQUIRE(taken[i] == step(static_cast<std::int64_t>(i)));
    REQUIRE((text_of(folder.path() / "steps.csv") == whole));
    REQUIRE_FALSE(fs::exists(folder.path() / "steps.csv.part"));
  }
}

TEST_CASE("whole steps come back as they were, and a replay may become longer", "[replay]") {
  const test::TemporaryFolder folder;
  write(folder.path() / "identity", "me");
  write(folder.path() / "steps.csv", whole_file(3));
  CHECK(resumed(folder.path(), 5) == std::vector<Rows>{step(0), step(1), step(2)});
  CHECK((text_of(folder.path() / "steps.csv") == whole_file(5)));
  CHECK(resumed(folder.path(), 5).size() == 5);
}

TEST_CASE("what follows a damaged row is simulated again", "[replay]") {
  std::string damaged = whole_file(3);
  damaged[damaged.find("\n1,") + 12] = 'x';
  const test::TemporaryFolder folder;
  write(folder.path() / "identity", "me");
  write(folder.path() / "steps.csv.part", damaged);
  CHECK(resumed(folder.path(), 3).size() == 1);
  CHECK((text_of(folder.path() / "steps.csv") == whole_file(3)));
}

TEST_CASE("a folder of another replay, of none, or of a longer one is refused and left alone", "[replay]") {
  const test::TemporaryFolder folder;
  CHECK_THAT(complaint([&] { Journal::require_resumable(folder.path(), "me", plans.size(), 2); }),
             Catch::Contains("holds no replay to go on with"));
  write(folder.path() / "identity", "you");
  CHECK_THAT(complaint([&] { Journal::require_resumable(folder.path(), "me", plans.size(), 2); }),
             Catch::Contains("holds the replay of another study"));
  write(folder.path() / "identity", "me");
  write(folder.path() / "steps.csv", whole_file(3));
  CHECK_THAT(complaint([&] { (void)resumed(folder.path(), 2); }), Catch::Contains("holds more than 2 steps"));
  CHECK((text_of(folder.path() / "steps.csv") == whole_file(3)));
}

TEST_CASE("beginning anew removes what another replay left", "[replay]") {
  const test::TemporaryFolder folder;
  write(folder.path() / "steps.csv", "old");
  write(folder.path() / "steps.csv.part", "old");
  Journal journal = Journal::begin(folder.path(), "me", plans);
  CHECK_FALSE(fs::exists(folder.path() / "steps.csv"));
  CHECK(text_of(folder.path() / "steps.csv.part") == StepTable::header());
  CHECK(text_of(folder.path() / "identity") == "me");
}

}  // namespace
}  // namespace hdpsim
