#include "calib/measure/sample_journal.h"

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

SampleTitle header_of(const std::string& device) {
  SampleTitle header{.program = "1.0", .plan = "quick", .circumstances = {}};
  header.circumstances.device_name = device;
  header.circumstances.peak_flops = 1.25e14;
  header.circumstances.date = "2026-01-02";
  return header;
}

Measurement measured_with_journal(std::int64_t m, int round, double seconds) {
  return {.subject = Gemm{m, 2, 3}, .round = round, .timing = {seconds, 0.9 * seconds, 1.1 * seconds, 0.05, 12}};
}

using test::text_of;

/// Goes on with a journal; `told` gets what is damaged.
SampleJournal resumed(const fs::path& path, const SampleTitle& header, std::vector<std::string>* told = nullptr) {
  return SampleJournal::resume(path, header, [&](const Diagnostic& part) {
    if (told != nullptr) told->push_back(damage_text(part));
  });
}

/// A journal of two measurements.
void fill(const fs::path& path) {
  SampleJournal journal = SampleJournal::start(path, header_of("a chip"));
  journal.add(measured_with_journal(1, 0, 0.1));
  Measurement cold = measured_with_journal(2, 1, 1.0 / 3);
  cold.emptying_s = 1.0 / 7;
  journal.add(cold);
}

TEST_CASE("a journal goes on where it ended, to the last digit of every time", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "samples.jsonl";
  fill(path);
  SampleTitle now = header_of("a chip");
  now.circumstances.date = "2026-01-03";
  SampleJournal journal = resumed(path, now);
  REQUIRE(journal.measurements().size() == 2);
  CHECK(journal.measurements()[1].round == 1);
  CHECK(journal.measurements()[1].timing == measured_with_journal(2, 1, 1.0 / 3).timing);
  CHECK_FALSE(journal.measurements()[0].emptying_s);
  CHECK(journal.measurements()[1].emptying_s == 1.0 / 7);
  CHECK(journal.circumstances().date == "2026-01-02");  // of the journal, not of this execution
  CHECK(journal.circumstances().peak_flops == 1.25e14);
  journal.add(measured_with_journal(3, 0, 0.2));
  { const SampleJournal ended = std::move(journal); }  // one at a time writes it
  CHECK(resumed(path, now).measurements().size() == 3);
}

/// What resuming says, or nothing.
std::string refusal(const fs::path& path, const SampleTitle& header) {
  try {
    const SampleJournal journal = resumed(path, header);
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
             Catch::Contains("samples.jsonl:1:1: error: this journal is of another calibration: 'device: a chip', now "
                             "'device: another chip'"));
  SampleTitle newer = header_of("a chip");
  newer.program = "1.1";
  CHECK_THAT(refusal(path, newer), Catch::Contains("'hdpsim: 1.0', now 'hdpsim: 1.1'"));
  SampleTitle larger = header_of("a chip");
  larger.plan = "full";
  CHECK_THAT(refusal(path, larger), Catch::Contains("'plan: quick', now 'plan: full'"));
}

TEST_CASE("measurements that are damaged, or impossible, are left out; all others are kept", "[journal]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "samples.jsonl";
  fill(path);
  std::string damaged = text_of(path);
  damaged[damaged.find("\"round\":0") + 8] = '7';
  std::ofstream(path, std::ios::binary) << damaged;
  std::vector<std::string> told;
  SampleJournal journal = resumed(path, header_of("a chip"), &told);
  CHECK(told == std::vector<std::string>{path.string() + ":3:1: this line is damaged"});
  REQUIRE(journal.measurements().size() == 1);
  CHECK(journal.measurements()[0].round == 1);
  journal.add(measured_with_journal(3, 0, -1));
  { const SampleJournal ended = std::move(journal); }
  CHECK(resumed(path, header_of("a chip")).measurements().size() == 1);
}

}  // namespace
}  // namespace hdpsim::calib
