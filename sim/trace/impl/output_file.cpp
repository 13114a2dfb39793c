#include "sim/trace/impl/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

fs::path temporary_name(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  const bool special = fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
  if (special) return path;
  return path.parent_path() / fmt::format(".{}.{}.part", path.filename().string(), getpid());
}

}  // namespace

OutputFile::OutputFile(fs::path path)
    : path_(std::move(path)), written_(temporary_name(path_)), file_(std::fopen(written_.c_str(), "wb")) {
  require(file_ != nullptr);
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  static_cast<void>(std::fclose(file_));
  std::error_code ignored;
  if (written_ != path_) fs::remove(written_, ignored);
}

void OutputFile::write(std::string_view bytes) {
  require(std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size());
}

void OutputFile::seek(std::int64_t offset) {
  require(fseeko(file_, offset, SEEK_SET) == 0);
}

void OutputFile::commit() {
  require(std::fflush(file_) == 0);
  if (written_ != path_) {
    require(fsync(fileno(file_)) == 0);
    require(std::rename(written_.c_str(), path_.c_str()) == 0);
  }
  static_cast<void>(std::fclose(std::exchange(file_, nullptr)));
}

void OutputFile::require(bool success) const {
  if (!success) throw MachineError(fmt::format("cannot write {}: {}", path_.string(), std::strerror(errno)));
}

}  // namespace hdpsim
