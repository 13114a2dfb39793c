#include "sim/document/journal.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/fingerprint.h"
#include "sim/base/growing_file.h"
#include "sim/base/text.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view journal_schema = "hdpsim.journal/1";
constexpr std::string_view before_key = R"({"key":)";
constexpr std::string_view before_value = R"(,"value":)";
constexpr std::uint64_t no_owner = 0;  // of a title, which itself says what all else depends on

// The text that replaces the closing brace of a sealed object.
std::string closing(std::string_view object, std::uint64_t owner) {
  return fmt::format(R"(,"checksum":"{:016x}"}})", fingerprint(object, owner));
}

std::string sealed(std::string_view object, std::uint64_t owner) {
  return fmt::format("{}{}\n", object.substr(0, object.size() - 1), closing(object, owner));
}

// The object of a line without its end; empty if the line is not what sealed() makes of it for this owner.
std::optional<std::string> opened(std::string_view line, std::uint64_t owner) {
  static const std::size_t size = closing("", no_owner).size();
  if (line.size() <= size) return std::nullopt;
  std::string object = fmt::format("{}}}", line.substr(0, line.size() - size));
  if (!line.ends_with(closing(object, owner))) return std::nullopt;
  return object;
}

std::string title_line(const JournalTitle& title) {
  return sealed(json_line({{"schema", journal_schema}, {"work", title.work}, {"identity", title.identity}}), no_owner);
}

/// The parts of a record, both as JSON.
struct Record {
  std::string_view key;
  std::string_view value;
};

// An opened record is what add() wrote, and no string of JSON holds the text between its parts: a quote in it has a
// backslash before it.
Record record_of(std::string_view object) {
  object.remove_prefix(before_key.size());
  const std::size_t end = object.find(before_value);
  const std::size_t begin = end + before_value.size();
  return {object.substr(0, end), object.substr(begin, object.size() - begin - 1)};
}

/// The lines of a file that have a line end.
class CompleteLines {
 public:
  explicit CompleteLines(const fs::path& path) {
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) file_.open(path, std::ios::binary);
  }

  bool next(std::string& line) {
    begin_ = end_;
    if (!std::getline(file_, line) || file_.eof()) return false;
    end_ += line.size() + 1;
    ++number_;
    return true;
  }
  /// Where the last line begins, where it ends, and its number from 1.
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] int number() const { return number_; }

 private:
  std::ifstream file_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  int number_ = 0;
};

std::vector<std::string> lines_of_title(const JournalTitle& title) {
  std::vector<std::string> lines = {title.work};
  std::string_view rest = title.identity;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::size_t begin = std::min(rest.find_first_not_of(' '), end);
    lines.emplace_back(rest.substr(begin, end - begin));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  lines.emplace_back("nothing more");
  return lines;
}

// Says in which line of its title a whole journal differs from what is to be done.
[[noreturn]] void refuse_other(const fs::path& path, const std::string& object, const JournalTitle& title) {
  JournalTitle then;
  const Json json = parsed_json(object);
  if (json.is_object() && json.value("schema", "") == journal_schema) then = {json.at("work"), json.at("identity")};
  const std::vector<std::string> before = lines_of_title(then);
  const std::vector<std::string> now = lines_of_title(title);
  std::size_t at = 0;
  while (at + 1 < std::min(before.size(), now.size()) && before[at] == now[at]) ++at;
  throw InputError({path.string(), 1, 1},
                   fmt::format("this journal is of another {}: '{}', now '{}'", title.work, before[at], now[at]),
                   "leave out --resume to begin anew, or name another place with --out");
}

}  // namespace

std::string damage_text(const Diagnostic& part) {
  return fmt::format("{}:{}:{}: {}", part.position.file, part.position.line, part.position.column, part.message);
}

class Journal::File {
 public:
  File(fs::path path, const JournalTitle& title) : path_(std::move(path)), title_(title_line(title)) {}

  void begin() {
    end_ = 0;
    open();
    append(title_);
  }

  /// Indexes what is there; false if the title is whole and another one. `other` gets that one's object.
  bool scan(const TellDamage& tell, std::string& other) {
    CompleteLines lines(path_);
    std::string line;
    if (lines.next(line) && line + '\n' != title_) {
      const std::optional<std::string> object = opened(line, no_owner);
      if (object) {
        other = *object;
        return false;
      }
      damage(lines, "this line is damaged, or is of another version", tell);
    }
    while (lines.next(line)) {
      const std::optional<std::string> object = opened(line, owner_);
      if (!object) {
        damage(lines, "this line is damaged", tell);
      } else {
        places_[fingerprint(record_of(*object).key)] = lines.begin();
      }
    }
    end_ = lines.end();
    return true;
  }

  /// Continues behind what scan() has found, without its damaged lines.
  void reopen() {
    if (is_damaged_) mend();
    open();
    if (end_ == 0) append(title_);
  }

  [[nodiscard]] std::optional<std::string> kept(std::string_view key) const {
    const std::lock_guard lock(mutex_);
    const std::string key_text = json_string(key);
    const auto place = places_.find(fingerprint(key_text));
    if (place == places_.end()) return std::nullopt;
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(place->second));
    std::string line;
    std::getline(file, line);
    const std::optional<std::string> object = opened(line, owner_);
    if (!object || record_of(*object).key != key_text) return std::nullopt;
    return std::string(record_of(*object).value);
  }

  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return places_.size();
  }

  [[nodiscard]] std::vector<std::string> values() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> values;
    CompleteLines lines(path_);
    std::string line;
    while (lines.next(line)) {
      const std::optional<std::string> object = opened(line, owner_);
      if (!object) continue;
      const Record record = record_of(*object);
      if (places_.at(fingerprint(record.key)) == lines.begin()) values.emplace_back(record.value);
    }
    return values;
  }

  void add(std::string_view key, std::string_view value) {
    const std::lock_guard lock(mutex_);
    const std::string key_text = json_string(key);
    if (out_ == nullptr) return;
    places_[fingerprint(key_text)] = end_;
    append(sealed(fmt::format("{}{}{}{}}}", before_key, key_text, before_value, value), owner_));
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };

  void damage(const CompleteLines& lines, std::string problem, const TellDamage& tell) {
    is_damaged_ = true;
    tell({{path_.string(), lines.number(), 1}, std::move(problem), {}});
  }

  // Puts a file of the whole records in place at once, so that none is lost whatever happens.
  void mend() {
    AtomicFile mended(path_);
    mended.write(title_);
    end_ = title_.size();
    places_.clear();
    CompleteLines lines(path_);
    std::string line;
    while (lines.next(line)) {
      const std::optional<std::string> object = opened(line, owner_);
      if (!object) continue;
      places_[fingerprint(record_of(*object).key)] = end_;
      line += '\n';
      mended.write(line);
      end_ += line.size();
    }
    mended.commit();
  }

  void open() { out_.reset(open_growing(path_, end_)); }

  void append(const std::string& line) {
    const bool written = std::fwrite(line.data(), 1, line.size(), out_.get()) == line.size();
    if (std::fflush(out_.get()) != 0 || !written) {
      throw MachineError(fmt::format("cannot write {}: {}", path_.string(), std::strerror(errno)));
    }
    end_ += line.size();
  }

  const fs::path path_;
  const std::string title_;  // with its line end
  const std::uint64_t owner_ = fingerprint(title_);
  mutable std::mutex mutex_;                                 // guards the members below
  std::unordered_map<std::uint64_t, std::uint64_t> places_;  // where records begin, by the fingerprint of the key
  std::uint64_t end_ = 0;                                    // of the whole lines
  bool is_damaged_ = false;
  std::unique_ptr<std::FILE, Close> out_;  // null: nothing is added
};

Journal::Journal() = default;
Journal::Journal(std::unique_ptr<File> file) : file_(std::move(file)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

Journal Journal::begin(const fs::path& path, const JournalTitle& title) {
  auto file = std::make_unique<File>(path, title);
  file->begin();
  return Journal(std::move(file));
}

Journal Journal::resume(const fs::path& path, const JournalTitle& title, const TellDamage& tell) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw InputError(fmt::format("there is no {} to go on with: no file {}", title.work, path.string()),
                     "leave out --resume, or name the place of the one that was stopped with --out");
  }
  auto file = std::make_unique<File>(path, title);
  std::string other;
  if (!file->scan(tell, other)) refuse_other(path, other, title);
  file->reopen();
  return Journal(std::move(file));
}

Journal Journal::read(const fs::path& path, const JournalTitle& title, const TellDamage& tell) {
  auto file = std::make_unique<File>(path, title);
  std::string other;
  return file->scan(tell, other) ? Journal(std::move(file)) : Journal();
}

std::optional<std::string> Journal::kept(std::string_view key) const {
  return file_ == nullptr ? std::nullopt : file_->kept(key);
}

std::size_t Journal::size() const {
  return file_ == nullptr ? 0 : file_->size();
}

std::vector<std::string> Journal::values() const {
  return file_ == nullptr ? std::vector<std::string>() : file_->values();
}

void Journal::add(std::string_view key, std::string_view value) {
  if (file_ != nullptr) file_->add(key, value);
}

Journal JournalFolder::open(const JournalTitle& title) const {
  if (path.empty()) return {};
  const fs::path file = path / journal_name;
  std::error_code ignored;
  const bool may_begin = title.identity.empty() && !fs::exists(file, ignored);
  return resume && !may_begin ? Journal::resume(file, title, damaged) : Journal::begin(file, title);
}

}  // namespace hdpsim
