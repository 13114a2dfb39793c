#include "sim/replay/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/diagnostic.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw MachineError(fmt::format("cannot write {}: {}", path.string(), reason));
}

fs::path steps_of(const fs::path& folder) {
  return folder / "steps.csv";
}

fs::path identity_of(const fs::path& folder) {
  return folder / "identity";
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::int64_t lines_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

/// Reads whole steps as long as there are any.
class StepReader {
 public:
  StepReader(const fs::path& path, const StepTable& table, std::size_t plans)
      : file_(path, std::ios::binary), table_(table), plans_(plans) {
    std::string line;
    if (next_line(line) && line + '\n' == StepTable::header()) whole_ = read_;
    good_ = whole_ > 0;
  }

  std::optional<std::vector<StepRow>> next(std::int64_t step) {
    std::vector<StepRow> rows;
    std::string line;
    while (good_ && rows.size() < plans_) {
      good_ = next_line(line);
      const auto row = good_ ? table_.parse(line, step, rows.size()) : std::nullopt;
      good_ = row.has_value();
      if (row) rows.push_back(*row);
    }
    if (!good_) return std::nullopt;
    whole_ = read_;
    return rows;
  }

  /// Where the last whole step ends.
  [[nodiscard]] std::uintmax_t whole() const { return whole_; }

 private:
  // A line that has its end.
  bool next_line(std::string& line) {
    if (!std::getline(file_, line) || file_.eof()) return false;
    read_ += line.size() + 1;
    return true;
  }

  std::ifstream file_;
  const StepTable& table_;
  std::size_t plans_;
  std::uintmax_t read_ = 0;
  std::uintmax_t whole_ = 0;
  bool good_ = true;
};

}  // namespace

void Journal::require_resumable(const fs::path& folder, std::string_view identity, std::size_t plans,
                                std::int64_t steps) {
  if (!fs::exists(identity_of(folder))) {
    throw InputError(fmt::format("{} holds no replay to go on with", folder.string()), "leave --resume out");
  }
  if (text_of(identity_of(folder)) != identity) {
    throw InputError(fmt::format("{} holds the replay of another study, or by another version", folder.string()),
                     "name another folder, or leave --resume out to begin anew");
  }
  const std::int64_t rows = lines_of(GrowingFile::present(steps_of(folder))) - 1;  // without the header
  if (rows <= steps * static_cast<std::int64_t>(plans)) return;
  throw InputError(fmt::format("{} holds more than {} steps", folder.string(), steps),
                   "ask for as many steps, or leave --resume out to begin anew");
}

Journal Journal::begin(const fs::path& folder, std::string_view identity, const std::vector<std::string>& plans) {
  const fs::path steps = steps_of(folder);
  for (const fs::path& left : {steps, GrowingFile::temporary(steps), identity_of(folder)}) {
    std::error_code error;
    fs::remove(left, error);
    if (error) refuse(left, error.message());
  }
  write_file(identity_of(folder), identity);
  Journal journal(StepTable(plans), GrowingFile(steps, 0));
  journal.file_.append(StepTable::header());
  return journal;
}

Journal Journal::resume(const fs::path& folder, const std::vector<std::string>& plans, const Take& take) {
  const fs::path path = steps_of(folder);
  GrowingFile::reopen(path);
  const StepTable table(plans);
  StepReader reader(GrowingFile::temporary(path), table, plans.size());
  for (std::int64_t step = 0; auto rows = reader.next(step); ++step) take(*rows);
  Journal journal(table, GrowingFile(path, reader.whole()));
  if (reader.whole() == 0) journal.file_.append(StepTable::header());
  return journal;
}

void Journal::append(const std::vector<StepRow>& rows) {
  std::string text;
  for (const StepRow& row : rows) text += table_.line(row);
  file_.append(text);
}

}  // namespace hdpsim
