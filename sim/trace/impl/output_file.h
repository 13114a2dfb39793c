#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace hdpsim {

/// A file that appears under its name only when it is complete: until commit() it has a temporary name in the same
/// folder, and is removed if commit() is never reached. What is not a regular file (a pipe, a terminal) is written
/// directly. Every refusal of the machine, a full disk too, is a MachineError.
class OutputFile {
 public:
  explicit OutputFile(std::filesystem::path path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::string_view bytes);
  void seek(std::int64_t offset);
  void commit();

 private:
  void require(bool success) const;

  std::filesystem::path path_;
  std::filesystem::path written_;  // the temporary name, or path_ itself
  std::FILE* file_ = nullptr;
};

}  // namespace hdpsim
