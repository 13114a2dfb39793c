#include "sim/replay/journal.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/document/json.h"
#include "sim/replay/impl/journal_lines.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

// At most this many damaged steps are simulated one by one to be replaced; beyond that all steps from the first damaged
// one on are simulated again.
constexpr std::size_t most_mended = 1000;

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw MachineError(fmt::format("cannot write {}: {}", path.string(), reason));
}

void remove_left(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) refuse(path, error.message());
}

}  // namespace

/// Goes through the rows of a folder, whatever has happened to them.
class Journal::Scan {
 public:
  struct Step {
    std::int64_t number = -1;
    std::vector<StepRow> rows;
  };

  Scan(const Journal& journal, const TellDamage& tell)
      : journal_(journal),
        plans_(static_cast<std::int64_t>(journal.plans_)),
        tell_(tell),
        lines_(GrowingFile::present(journal.rows_path_)),
        sums_(GrowingFile::present(journal.sums_path_)) {
    std::string line;
    if (lines_.next(line) && line + '\n' != StepTable::header()) damage("this is not the title of the steps");
  }

  /// The next whole step.
  std::optional<Step> next() {
    Step step;
    std::string line;
    while (lines_.next(line)) {
      const std::optional<std::int64_t> row = place_of(line);
      if (!row) not_kept();
      if (!row) continue;
      if (*row != next_ && !told_) damage("rows before this one are missing");
      told_ = false;
      next_ = *row + 1;
      add(line, *row, step);
      if (std::ssize(step.rows) < plans_) continue;
      end_ = lines_.read();
      return step;
    }
    if (next_ < sums_.rows() && !told_) damage("rows are missing from here on", 1);
    return std::nullopt;
  }

  /// Where the last step from next() ends.
  [[nodiscard]] std::uintmax_t end() const { return end_; }
  [[nodiscard]] bool damaged() const { return damaged_; }

 private:
  // Rows contain the number of their step, so that those behind a damaged one are found.
  std::optional<std::int64_t> place_of(const std::string& line) {
    const std::uint64_t sum = journal_.seal_.fingerprint(line);
    if (sums_.is_of(next_, sum)) return next_;
    std::int64_t step = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), step);
    if (error != std::errc{} || step < 0 || step >= sums_.rows()) return std::nullopt;
    for (std::int64_t row = step * plans_; row < (step + 1) * plans_; ++row) {
      if (row > next_ && sums_.is_of(row, sum)) return row;
    }
    return std::nullopt;
  }

  // A process that was killed may have left the rows of one step without their checksums.
  void not_kept() {
    if (next_ < sums_.rows()) return damage("this row is damaged or in the wrong place");
    if (++without_sums_ == plans_ + 1) damage("rows from here on have no checksum");
  }

  void add(const std::string& line, std::int64_t row, Step& step) const {
    const auto plan = static_cast<std::size_t>(row % plans_);
    if (plan == 0) step = {row / plans_, {}};
    const bool follows = step.number == row / plans_ && step.rows.size() == plan;
    const auto parsed = follows ? journal_.table_.parse(line, step.number, plan) : std::nullopt;
    if (parsed) step.rows.push_back(*parsed);
  }

  void damage(std::string what, int behind = 0) {
    damaged_ = told_ = true;
    tell_(lines_.problem(std::move(what), behind));
  }

  const Journal& journal_;
  std::int64_t plans_;
  const TellDamage& tell_;
  CompleteLines lines_;
  Sums sums_;
  std::int64_t next_ = 0;  // number of the next row
  std::int64_t without_sums_ = 0;
  std::uintmax_t end_ = 0;
  bool damaged_ = false;
  bool told_ = false;  // whether a problem was reported since the last whole row
};

Journal::Journal(fs::path folder, const std::string& identity, const std::vector<std::string>& plans)
    : folder_(std::move(folder)),
      rows_path_(folder_ / "steps.csv"),
      sums_path_(folder_ / "steps.sums"),
      seal_(identity),
      header_(Seal("").closed(json_line({{"schema", "hdpsim.sums/1"}, {"identity", identity}}))),
      table_(plans),
      plans_(plans.size()) {}

Journal::Kept Journal::look(const TellDamage& tell) const {
  CompleteLines rows(GrowingFile::present(rows_path_));
  CompleteLines sums(GrowingFile::present(sums_path_));
  Kept kept;
  std::string line;
  if (!fs::exists(GrowingFile::present(sums_path_))) {
    if (!rows.next(line) || line + '\n' != StepTable::header()) {
      throw InputError(fmt::format("{} holds no replay to go on with", folder_.string()), "leave --resume out");
    }
    tell(rows.problem("these steps have no checksums in steps.sums"));
    kept.damaged = true;
    return kept;
  }
  if (sums.next(line) && line + '\n' != header_) {
    if (Seal("").opened(line)) {
      throw InputError(fmt::format("{} holds the replay of another study, or by another version", folder_.string()),
                       "name another folder, or leave --resume out to begin anew");
    }
    tell(sums.problem("this line is damaged"));
    kept.damaged = true;
  }
  Scan scan(*this, tell);
  while (const auto step = scan.next()) {
    for (std::int64_t missing = kept.steps; missing < step->number; ++missing) kept.missing.push_back(missing);
    kept.steps = step->number + 1;
    if (kept.missing.size() <= most_mended) continue;
    kept.steps = kept.missing.front();
    kept.missing.clear();
    break;
  }
  kept.damaged = kept.damaged || scan.damaged();
  return kept;
}

void Journal::mend(const std::map<std::int64_t, std::vector<StepRow>>& steps) {
  AtomicFile rows(GrowingFile::temporary(rows_path_));
  AtomicFile sums(GrowingFile::temporary(sums_path_));
  rows.write(StepTable::header());
  sums.write(header_);
  const auto put = [&](const std::vector<StepRow>& step) {
    const Texts texts = texts_of(step);
    rows.write(texts.rows);
    sums.write(texts.sums);
  };
  const TellDamage told_before = [](const Diagnostic&) {};
  Scan scan(*this, told_before);
  std::int64_t next = 0;
  for (auto step = scan.next(); step; step = scan.next()) {
    for (; next < step->number && steps.contains(next); ++next) put(steps.at(next));
    if (next < step->number) break;
    put(step->rows);
    ++next;
  }
  rows.commit();
  sums.commit();
  remove_left(rows_path_);
  remove_left(sums_path_);
}

void Journal::begin() {
  // Versions without checksums left a file `identity`.
  for (const fs::path& path : {rows_path_, sums_path_, folder_ / "identity"}) {
    remove_left(GrowingFile::temporary(path));
    remove_left(path);
  }
  open(0, 0);
}

void Journal::resume(const Take& take) {
  GrowingFile::reopen(rows_path_);
  GrowingFile::reopen(sums_path_);
  const TellDamage told_before = [](const Diagnostic&) {};
  Scan scan(*this, told_before);
  std::int64_t steps = 0;
  for (auto step = scan.next(); step && step->number == steps; step = scan.next()) {
    take(step->rows);
    ++steps;
  }
  open(steps, scan.end());
}

void Journal::open(std::int64_t steps, std::uintmax_t bytes) {
  const std::uintmax_t sums = static_cast<std::uintmax_t>(steps * sum_bytes) * plans_;
  sums_.emplace(sums_path_, steps == 0 ? 0 : header_.size() + sums);
  rows_.emplace(rows_path_, steps == 0 ? 0 : bytes);
  if (steps == 0) write_headers();
}

void Journal::write_headers() {
  sums_->append(header_);
  rows_->append(StepTable::header());
}

Journal::Texts Journal::texts_of(const std::vector<StepRow>& rows) const {
  Texts texts;
  for (const StepRow& row : rows) {
    const std::string line = table_.line(row);
    texts.rows += line;
    texts.sums += sum_line(seal_.fingerprint(std::string_view(line).substr(0, line.size() - 1)));
  }
  return texts;
}

void Journal::append(const std::vector<StepRow>& rows) {
  const Texts texts = texts_of(rows);
  rows_->append(texts.rows);
  sums_->append(texts.sums);
}

void Journal::finish() {
  rows_->finish();
  sums_->finish();
}

}  // namespace hdpsim
