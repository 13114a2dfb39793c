#include "sim/run/impl/study_letters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/base/text.h"
#include "sim/run/run_record.h"

namespace hdpsim {
namespace {

using Kind = StudyLetter::Kind;

constexpr std::array<std::string_view, 5> kinds = {"hello", "run", "done", "failed", "over"};

/// The words of a line, one after the other.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] bool is_fine() const { return is_fine_; }
  std::string_view word() {
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return word;
  }
  template <class Number>
  Number number() {
    const std::string_view text = word();
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    is_fine_ = is_fine_ && error == std::errc{} && end == text.data() + text.size();
    return number;
  }

 private:
  std::string_view rest_;
  bool is_fine_ = true;
};

// Reads what follows the number of the run in `done`. False if it is damaged.
bool read_done(Words& words, std::string_view text, FinishedRun& run) {
  std::vector<std::int64_t> numbers;
  while (!words.at_end()) numbers.push_back(words.number<std::int64_t>());
  auto coverage = Coverage::of_numbers(numbers);
  auto result = run_of_text(text);
  if (!coverage || !result) return false;
  run.coverage = std::move(*coverage);
  run.result = std::move(*result);
  return true;
}

}  // namespace

std::string to_text(const StudyLetter& letter) {
  std::string line = fmt::format("{} {}", kinds.at(static_cast<std::size_t>(letter.kind)), letter.study);
  if (letter.kind == Kind::over) return line;
  if (letter.kind == Kind::hello) return line + fmt::format(" {} {}", letter.fingerprint, letter.jobs);
  line += fmt::format(" {}", letter.run.run);
  if (letter.kind != Kind::done) return line;
  return fmt::format("{} {}\n{}", line, joined(letter.run.coverage.numbers(), " "), run_text(letter.run.result));
}

std::optional<StudyLetter> study_letter(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view behind = text.substr(std::min(end + 1, text.size()));
  Words words(text.substr(0, end));
  const auto kind = std::find(kinds.begin(), kinds.end(), words.word());
  if (kind == kinds.end()) return std::nullopt;
  StudyLetter letter{.kind = static_cast<Kind>(kind - kinds.begin()), .study = words.number<int>()};
  if (letter.kind == Kind::hello) {
    letter.fingerprint = words.number<std::uint64_t>();
    letter.jobs = words.number<std::size_t>();
  } else if (letter.kind != Kind::over) {
    letter.run.run = words.number<std::size_t>();
  }
  if (letter.kind == Kind::done && !read_done(words, behind, letter.run)) return std::nullopt;
  if (!words.is_fine() || !words.at_end()) return std::nullopt;
  return letter;
}

std::uint64_t study_fingerprint(const Study& study, std::string_view version) {
  std::uint64_t hash = fingerprint(version);
  for (std::size_t run = 0; run < study.run_count(); ++run) hash = fingerprint(run_identity(study, run, version), hash);
  return hash;
}

}  // namespace hdpsim
