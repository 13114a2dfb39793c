#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string_view>

namespace hdpsim {

/// What a file outlives once it has its name. All of them outlive the end of the process. The same command gives the
/// same results again, so these need no more, and a study that keeps ten thousand runs does not wait for the disk as
/// often; a checkpoint is hours of work, and outlives a loss of power.
enum class Durability { process, power };

/// A file that appears under its name only when it is complete: until commit() it has a temporary name in the same
/// folder, and is removed if commit() is never reached. The temporary file is always a new one, so no link is written
/// through; a link that has the name is replaced, not followed. What is no regular file (a pipe, a device, and what
/// /dev/stdout stands for) is written to as it is. Every refusal of the machine, a full disk too, is a MachineError.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::string_view bytes);
  void seek(std::int64_t offset);
  void commit(Durability durability = Durability::process);
  /// For a library that writes by itself, before anything is written here; it stays this object's.
  [[nodiscard]] int descriptor() const { return fileno(file_); }
  /// MachineError, with the reason in errno unless another is given.
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

/// A whole file at once.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Removes the temporary files of all threads: for a process that a signal ends. Safe in a signal handler; whoever goes
/// on afterwards cannot finish these files.
void remove_unfinished_files() noexcept;

/// Whether a name is one that an AtomicFile gives, of a process that runs on this machine no longer.
[[nodiscard]] bool is_left_over(const std::filesystem::path& name);

}  // namespace hdpsim
