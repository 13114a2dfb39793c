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
  /// The kind of results: "study" for those of a study, "comparison" for what is written next to them. A new run
  /// replaces everything that an earlier run of the same kind has left.
  std::string kind;
  std::string writer;              ///< The command line of this process, shown to a second process that is refused.
  std::vector<std::string> names;  ///< Files that will be written, as far as they are known.
  /// Whether files of these names are replaced that the folder's list does not have, as when a copied folder is
  /// resumed.
  bool replaces_unlisted = false;
};

/// A folder of results. One process at a time writes there: until it ends, in whatever way, the kernel holds a lock on
/// the folder's file .hdpsim, where the file system supports locks. The same file lists what this program has written,
/// so that a later run can remove those files that it does not write itself, and no others. Safe from several threads.
class OutputFolder {
 public:
  /// Creates the folder, and removes unfinished files of processes that were killed. If one of the names is a file that
  /// was read, or is there and no run of this program has written it, throws an InputError and does nothing;
  /// MachineError if the folder cannot be written or another process writes there. `inputs`, which may be null, must
  /// outlive this object.
  OutputFolder(std::filesystem::path path, OutputUse use, const InputFiles* inputs);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  /// Writes the list of files in its final form.
  ~OutputFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The path of a file of this run, which stays when earlier ones are removed. InputError if the file was read.
  std::filesystem::path file(const std::string& name);
  void write(const std::string& name, std::string_view text);
  /// A folder inside this one, which must not be a link. MachineError otherwise.
  std::filesystem::path folder(const std::string& name);

  /// Removes the files of this kind that earlier runs have left and this one has not written so far, except files that
  /// were read.
  void remove_earlier();
  /// The files that were removed and not written again, as a line for people; empty if there are none.
  [[nodiscard]] std::string removed_text() const;

 private:
  using Entry = std::pair<std::string, std::string>;  // kind, name
  [[noreturn]] void refuse(const std::string& reason) const;
  void lock();
  void begin_list();
  void refuse_unlisted() const;
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
