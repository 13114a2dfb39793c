#pragma once

#include <filesystem>
#include <string>

namespace hdpsim {

/// The name of a file that a process will write when its work is done. As long as this object lives a second process
/// that claims the name is refused, where the file system supports locks: both would do the work, and the later one
/// would silently replace what the earlier one found. The lock is on a file .NAME.lock beside it, which goes with the
/// claim; after the death of a process the next claim takes it over.
class FileClaim {
 public:
  /// `writer` is the command line of this process, shown to one that is refused. MachineError if another process has
  /// the name or the folder cannot be written.
  FileClaim(const std::filesystem::path& path, const std::string& writer);
  FileClaim(const FileClaim&) = delete;
  FileClaim& operator=(const FileClaim&) = delete;
  ~FileClaim();

 private:
  std::filesystem::path lock_;
  int descriptor_ = -1;
};

}  // namespace hdpsim
