#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// Opens a file that grows under its name, cut after its first `keep` bytes. A link is not followed. While one process
/// writes the file a second one is refused, where the file system supports locks. MachineError if it cannot be opened.
[[nodiscard]] std::FILE* open_growing(const std::filesystem::path& path, std::uintmax_t keep);

/// A text file that grows line by line under a temporary name and gets its own name when it is complete. Appended lines
/// survive the end of the process.
class GrowingFile {
 public:
  /// Keeps the first `keep` bytes of the file that has the temporary name; the rest is cut off.
  GrowingFile(std::filesystem::path path, std::uintmax_t keep);

  /// Appends a text. MachineError if it cannot be written.
  void append(std::string_view text);
  void finish();

  [[nodiscard]] static std::filesystem::path temporary(const std::filesystem::path& path);

 private:
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

/// All names that growing files have in a folder: their own, and those until they are complete.
[[nodiscard]] std::vector<std::string> growing_names(const std::vector<std::string>& names);

}  // namespace hdpsim
