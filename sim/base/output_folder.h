#pragma once

#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/input_files.h"

namespace hdpsim {

/// Creates a folder and those above it, and makes sure that files can be written there. MachineError if not.
void prepare_folder(const std::filesystem::path& path);

/// What a folder is opened for.
struct OutputUse {
  /// Results of one kind belong together, and a new run replaces all that an earlier one has left: those of a study
  /// ("study"), or what is laid beside them ("comparison").
  std::string kind;
  std::string writer;              ///< What a second process is told of this one: its command line.
  std::vector<std::string> names;  ///< Files that will be written, as far as they are known.
};

/// A folder of results. One process at a time writes there: the kernel holds a lock on its file .hdpsim, where the file
/// system knows locks, until the process ends, however it ends. The same file lists what this program has written, so
/// that a later run can remove what it does not write itself, and nothing else. Safe from several threads.
class OutputFolder {
 public:
  /// Creates the folder, and removes what a process that was killed has left unfinished. InputError, and nothing done,
  /// if one of the names is a file that was read; MachineError if the folder cannot be written or another process
  /// writes there. `inputs`, which may be null, lives as long as this.
  OutputFolder(std::filesystem::path path, OutputUse use, const InputFiles* inputs);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  /// Leaves the list in order.
  ~OutputFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The path of a file of this run, which stays when earlier ones are removed. InputError if it was read.
  std::filesystem::path file(const std::string& name);
  void write(const std::string& name, std::string_view text);
  /// A folder in it, which must be no link. MachineError otherwise.
  std::filesystem::path folder(const std::string& name);

  /// What earlier runs have left in one of its folders stays, for a run that goes on from it.
  void keep(const std::string& folder);
  /// Removes what earlier runs have left of this kind and this one has not written so far, but no file that was read.
  void remove_earlier();
  /// What was removed and not written again, as a line for people; empty if there is none.
  [[nodiscard]] std::string removed_text() const;

 private:
  using Entry = std::pair<std::string, std::string>;  // kind, name
  [[noreturn]] void refuse(const std::string& reason) const;
  void lock();
  void begin_list();
  void add_line(const std::string& line);
  void sweep(const std::filesystem::path& folder) const;

  std::filesystem::path path_;
  OutputUse use_;
  const InputFiles* inputs_;
  int list_ = -1;  // descriptor of .hdpsim
  std::mutex mutex_;
  std::set<Entry> earlier_;
  std::set<Entry> written_;
  std::set<std::string> removed_;
};

}  // namespace hdpsim
