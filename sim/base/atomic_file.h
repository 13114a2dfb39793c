#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace hdpsim {

/// What a committed file outlives. Every file outlives the end of the process. Results need no more: the same command
/// makes them again, and a study that keeps ten thousand runs need not wait for the disk as often. A checkpoint is
/// hours of work and also outlives a loss of power.
enum class Durability { process, power };

/// A file that appears under its name only when it is complete: until commit() it has a temporary name in the same
/// folder, and it is removed if commit() is not called. The temporary file is always a new one, so no link is
/// written through; a link that has the name is replaced, not followed. What is not a regular file (a pipe, a device,
/// the target of /dev/stdout) is written in place. Every refusal of the machine, also a full disk, is a MachineError.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::string_view bytes);
  void seek(std::int64_t offset);
  void commit(Durability durability = Durability::process);
  /// The descriptor for a library that writes by itself, before anything is written here. This object keeps owning it.
  [[nodiscard]] int descriptor() const { return fileno(file_); }
  /// Throws a MachineError, with the reason in errno unless another one is given.
  [[noreturn]] void refuse(std::string_view reason = {}) const;

 private:
  void require(bool success) const {
    if (!success) refuse();
  }
  void give_up() noexcept;

  std::filesystem::path path_;
  const char* temporary_ = nullptr;  // null if it is written in place
  std::FILE* file_ = nullptr;
};

/// Writes a whole file at once.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Removes the temporary files of all threads when a signal ends the process. Safe in a signal handler; a process that
/// continues afterwards cannot finish these files.
void remove_unfinished_files() noexcept;

/// Removes what processes that were killed have left of this file next to it. Its cost is that of listing the folder,
/// so that it is for those who write one file; OutputFolder sweeps a whole folder.
void remove_left_overs(const std::filesystem::path& path) noexcept;

/// Whether the name is one that an AtomicFile of a process gave, and that process no longer runs on this machine.
[[nodiscard]] bool is_left_over(const std::filesystem::path& name);

/// The name of a file that a process will write when its work is done. As long as this object lives a second process
/// that claims the name is refused, where the file system supports locks: both would do the work, and the later one
/// would silently replace what the earlier one found. The lock is on a file .NAME.lock next to it, which goes with the
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
