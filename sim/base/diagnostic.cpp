#include "sim/base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/base/printable.h"
#include "sim/base/text.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_told = 100;  // a person reads at most this many; the rest is counted
constexpr std::size_t longest_text = 2000;
constexpr std::size_t longest_word = 200;  // longer words have no suggestion

/// The lines of a text, asked for from front to back, so that a large text is searched once, however many problems it
/// has.
class SourceLines {
 public:
  explicit SourceLines(std::string_view text) : rest_(text) { find_line(); }

  std::string_view line(int number) {
    for (; number_ < number; ++number_) {
      rest_.remove_prefix(std::min(end_, rest_.size()));
      if (!rest_.empty()) rest_.remove_prefix(1);
      find_line();
    }
    return line_;
  }

 private:
  void find_line() {
    end_ = rest_.find('\n');
    line_ = rest_.substr(0, end_);
    line_ = line_.substr(0, line_.find('\r'));
  }

  std::string_view rest_;  // text from the current line on
  std::string_view line_;
  std::size_t end_ = 0;
  int number_ = 1;
};

// Positions count bytes; the second and later bytes of a UTF-8 character take no column on the screen.
bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

std::size_t character_start(std::string_view line, std::size_t at) {
  while (at > 0 && at < line.size() && continues_character(line[at])) --at;
  return at;
}

std::string shortened(std::string_view text) {
  if (text.size() <= longest_text) return printable(text);
  return printable(text.substr(0, character_start(text, longest_text))) + " ...";
}

std::string heading(const Diagnostic& d) {
  const std::string file = shortened(d.position.file);
  const std::string message = shortened(d.message);
  if (file.empty()) return fmt::format("error: {}\n", message);
  if (d.position.line == 0) return fmt::format("{}: error: {}\n", file, message);
  return fmt::format("{}:{}:{}: error: {}\n", file, d.position.line, d.position.column, message);
}

// Width of a terminal line: longer source lines are cut around the caret.
constexpr std::size_t widest_source = 110;

std::string excerpt(const Diagnostic& d, std::string_view line) {
  auto column = static_cast<std::size_t>(std::max(1, d.position.column)) - 1;
  if (line.size() > widest_source) {
    const std::size_t from = character_start(line, column > widest_source / 2 ? column - widest_source / 2 : 0);
    const std::size_t to = character_start(line, std::min(line.size(), from + widest_source));
    line = from < line.size() ? line.substr(from, to - from) : std::string_view{};
    column -= from;
  }
  const std::string before = printable(line.substr(0, column));  // invalid bytes take a column each
  column -= std::min(column, line.size()) - before.size();
  column -= static_cast<std::size_t>(std::count_if(before.begin(), before.end(), continues_character));
  const std::string number = fmt::format("{:5}", d.position.line);
  return fmt::format("{} | {}\n{:{}}   {:>{}}{}{}\n", number, printable(line), "", number.size(), "^", column + 1,
                     d.help.empty() ? "" : " ", shortened(d.help));
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substituted}));
    }
  }
  return row[b.size()];
}

}  // namespace

bool comes_before(const Position& one, const Position& other) {
  return std::tie(one.file, one.line, one.column) < std::tie(other.file, other.line, other.column);
}

bool Diagnostics::keeps(const Position& position) {
  if (entries_.size() < most_kept || comes_before(position, entries_.rbegin()->position)) return true;
  ++count_;
  return false;
}

void Diagnostics::error(Position position, std::string message, std::string help) {
  add({std::move(position), std::move(message), std::move(help)});
}

void Diagnostics::unsupported(Position position, std::string message, std::string help) {
  add({std::move(position), std::move(message), std::move(help), true});
}

void Diagnostics::add(Diagnostic problem) {
  if (!keeps(problem.position)) return;
  ++count_;
  for (std::string* text : {&problem.message, &problem.help}) {
    if (text->size() <= longest_text) continue;
    text->resize(longest_text + 1);  // one byte more, by which shortened() sees that the text is longer
    text->shrink_to_fit();
  }
  if (is_told(problem)) {
    ++repeated_;
    return;
  }
  entries_.insert(std::move(problem));
  if (entries_.size() > most_kept) entries_.erase(std::prev(entries_.end()));
}

void Diagnostics::append(const Diagnostics& other) {
  for (const Diagnostic& problem : other.entries_) add(problem);
  count_ += other.count_ - other.entries_.size();
  repeated_ += other.repeated_;
  sources_.insert(other.sources_.begin(), other.sources_.end());
}

void Diagnostics::add_source(const std::string& file, std::string text) {
  sources_.insert_or_assign(file, std::move(text));
}

bool Diagnostics::is_told(const Diagnostic& problem) const {
  if (problem.position.line == 0) return false;
  const auto [first, last] = entries_.equal_range(problem);
  return std::any_of(first, last, [&](const Diagnostic& other) { return other.message == problem.message; });
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  return {entries_.begin(), entries_.end()};
}

std::string Diagnostics::text() const {
  std::string text;
  const std::vector<Diagnostic> problems = sorted();
  std::map<std::string_view, SourceLines> lines;
  for (std::size_t i = 0; i < std::min(problems.size(), most_told); ++i) {
    const Diagnostic& d = problems[i];
    text += heading(d);
    const auto source = sources_.find(d.position.file);
    if (d.position.line > 0 && source != sources_.end()) {
      SourceLines& of_file = lines.try_emplace(source->first, source->second).first->second;
      text += excerpt(d, of_file.line(d.position.line));
    } else if (!d.help.empty()) {
      text += fmt::format("        {}\n", shortened(d.help));
    }
  }
  const std::size_t others = count_ - repeated_ - std::min(problems.size(), most_told);
  if (others > 0) text += fmt::format("error: and {} more\n", others);
  return text;
}

void Diagnostics::throw_if_any() const {
  if (!empty()) throw InputError(*this);
}

namespace {
Diagnostics single(Position position, const std::string& message, const std::string& help) {
  Diagnostics diagnostics;
  diagnostics.error(std::move(position), message, help);
  return diagnostics;
}
}  // namespace

InputError::InputError(Diagnostics diagnostics)
    : std::runtime_error(diagnostics.text()), diagnostics_(std::move(diagnostics)) {}

InputError::InputError(const std::string& message, const std::string& help) : InputError(Position{}, message, help) {}

InputError::InputError(Position position, const std::string& message, const std::string& help)
    : InputError(single(std::move(position), message, help)) {}

std::string closest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::string::npos;
  for (const std::string& candidate : candidates) {
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    const std::size_t allowed = std::max<std::size_t>(1, longer / 3);
    // The distance is at least the difference of the lengths, and costs the product of both to compute.
    if (longer > longest_word || longer - shorter > allowed) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance <= allowed && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

namespace {

// The only candidate that begins with a word, which may be too short to be near to it.
std::string only_one_that_begins_with(std::string_view word, const std::vector<std::string>& candidates) {
  const auto begins = [&](const std::string& candidate) { return !word.empty() && candidate.starts_with(word); };
  const auto found = std::find_if(candidates.begin(), candidates.end(), begins);
  const bool is_alone = std::count_if(candidates.begin(), candidates.end(), begins) == 1;
  return is_alone ? *found : std::string{};
}

}  // namespace

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best = closest(word, candidates);
  if (best.empty()) best = only_one_that_begins_with(word, candidates);
  if (!best.empty()) return fmt::format("did you mean '{}'?", best);
  if (candidates.empty()) return {};
  return fmt::format("known: {}", joined(candidates, ", "));
}

}  // namespace hdpsim
