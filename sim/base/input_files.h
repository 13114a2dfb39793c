#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace hdpsim {

/// The user's files that this thread has read since the object was made: nothing that a command writes may take the
/// place of one. Files are told apart by device and inode, so that other names and links of a file are the same file.
/// Of two objects that live at the same time the younger one is told.
class InputFiles {
 public:
  InputFiles();
  ~InputFiles();
  InputFiles(const InputFiles&) = delete;
  InputFiles& operator=(const InputFiles&) = delete;

  /// By whoever opens a file of the user. Only regular files count.
  static void record(const std::filesystem::path& path);

  /// InputError if the output would take the place of an input.
  void require_none_at(const std::filesystem::path& output) const;
  [[nodiscard]] bool holds(const std::filesystem::path& path) const { return name_of(path) != nullptr; }

 private:
  using Identity = std::pair<dev_t, ino_t>;
  [[nodiscard]] const std::string* name_of(const std::filesystem::path& path) const;

  std::map<Identity, std::string> names_;
  InputFiles* older_;
};

}  // namespace hdpsim
