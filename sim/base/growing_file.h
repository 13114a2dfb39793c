#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

namespace hdpsim {

/// Opens a file that grows under its name, cut after its first `keep` bytes. A link is not followed, and while one
/// process writes the file a second one is refused, where the file system knows locks. MachineError.
[[nodiscard]] std::FILE* open_growing(const std::filesystem::path& path, std::uintmax_t keep);

/// A text file that grows line by line under a temporary name and gets its own name when it is complete. What was
/// appended survives the end of the process.
class GrowingFile {
 public:
  /// `keep` bytes of what is there under the temporary name stay; the rest is cut off.
  GrowingFile(std::filesystem::path path, std::uintmax_t keep);

  /// MachineError if it cannot be written.
  void append(std::string_view text);
  void finish();

  [[nodiscard]] static std::filesystem::path temporary(const std::filesystem::path& path);
  /// The file that is there: while something is missing the one that grows.
  [[nodiscard]] static std::filesystem::path present(const std::filesystem::path& path);
  /// What is complete goes on under the name of what is not. MachineError if it cannot be renamed.
  static void reopen(const std::filesystem::path& path);

 private:
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace hdpsim
