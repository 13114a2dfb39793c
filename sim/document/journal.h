#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.h"

namespace hdpsim {

/// Called for each part of a journal that cannot be used, with its place and the problem.
using TellDamage = std::function<void(const Diagnostic&)>;
/// "file:line:column: message".
[[nodiscard]] std::string damage_text(const Diagnostic& part);

/// What a journal is of.
struct JournalTitle {
  std::string work;      ///< A word for messages: "replay".
  std::string identity;  ///< Lines of what all records depend on; empty if the key of each record says it.
};

/// Results of finished jobs in a file, from which the same work continues after its process was stopped or killed. The
/// first line of the file is the title, every other line a record: a key, and a value in JSON. Each line ends with a
/// checksum of the line and, in a record, of the title: a byte that was changed, lost or added shows, and so does a
/// record of other work. A record is on disk as soon as it is added; a piece of a line that a killed process has left
/// is cut off. Records may be in any order; of several with one key the last counts.
///
/// Safe from several threads. One process at a time writes a journal, where the file system supports locks.
class Journal {
 public:
  /// A journal that keeps nothing.
  Journal();
  /// Begins anew; replaces a file that is there. MachineError if it cannot be written, here and in all functions.
  [[nodiscard]] static Journal begin(const std::filesystem::path& path, const JournalTitle& title);
  /// Continues with what is in the file. Damaged lines are reported to `tell` and removed. InputError if there is no
  /// file or if its title is another one; nothing is then changed.
  [[nodiscard]] static Journal resume(const std::filesystem::path& path, const JournalTitle& title,
                                      const TellDamage& tell);
  /// What is in the file, which is not changed: add() keeps nothing. Without such a file, or with another title, there
  /// is nothing.
  [[nodiscard]] static Journal read(const std::filesystem::path& path, const JournalTitle& title,
                                    const TellDamage& tell);
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();

  /// The value of a record, also of one that this execution has added; empty if there is none.
  [[nodiscard]] std::optional<std::string> kept(std::string_view key) const;
  /// The number of keys.
  [[nodiscard]] std::size_t size() const;
  /// The values of all records, in the order of the file.
  [[nodiscard]] std::vector<std::string> values() const;
  /// Adds a record. `value` is JSON in one line.
  void add(std::string_view key, std::string_view value);

 private:
  class File;
  explicit Journal(std::unique_ptr<File> file);
  std::unique_ptr<File> file_;  // null: keeps nothing
};

/// The name of the journal in a folder of results.
inline constexpr char journal_name[] = "journal.jsonl";

/// The folder in which an execution keeps what it has finished, and whether it continues from there.
struct JournalFolder {
  std::filesystem::path path{};  ///< Empty: nothing is kept.
  bool resume = false;
  TellDamage damaged = [](const Diagnostic&) {};  ///< Called for damaged records: their jobs are done again.

  /// The journal in the folder. A title without identity may be resumed from a folder without a journal.
  [[nodiscard]] Journal open(const JournalTitle& title) const;
};

}  // namespace hdpsim
