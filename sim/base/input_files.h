#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace hdpsim {

/// The user's files that this thread has read since the object was made: no output of a command may replace one of
/// them. Files are identified by device and inode, so that other names and links of a file are the same file. If two
/// objects live at the same time, reads are recorded in the younger one.
class InputFiles {
 public:
  InputFiles();
  ~InputFiles();
  InputFiles(const InputFiles&) = delete;
  InputFiles& operator=(const InputFiles&) = delete;

  /// Records a file of the user; whoever opens one calls this. Only regular files count.
  static void record(const std::filesystem::path& path);

  /// Throws an InputError if the output would replace an input.
  void require_none_at(const std::filesystem::path& output) const;
  [[nodiscard]] bool holds(const std::filesystem::path& path) const { return name_of(path) != nullptr; }

 private:
  using Identity = std::pair<dev_t, ino_t>;
  [[nodiscard]] const std::string* name_of(const std::filesystem::path& path) const;

  std::map<Identity, std::string> names_;
  InputFiles* older_;
};

}  // namespace hdpsim
