#include "sim/report/growing_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw MachineError(fmt::format("cannot write {}: {}", path.string(), reason));
}

}  // namespace

fs::path GrowingFile::temporary(const fs::path& path) {
  return path.string() + ".part";
}

fs::path GrowingFile::present(const fs::path& path) {
  const fs::path part = temporary(path);
  return fs::exists(part) ? part : path;
}

void GrowingFile::reopen(const fs::path& path) {
  const fs::path part = temporary(path);
  if (fs::exists(part) || !fs::exists(path)) return;
  std::error_code error;
  fs::rename(path, part, error);
  if (error) refuse(path, error.message());
}

GrowingFile::GrowingFile(fs::path path, std::uintmax_t keep) : path_(std::move(path)) {
  const fs::path part = temporary(path_);
  std::error_code error;
  if (keep > 0) fs::resize_file(part, keep, error);
  if (error) refuse(path_, error.message());
  file_.reset(std::fopen(part.c_str(), keep > 0 ? "ab" : "wb"));
  if (!file_) refuse(path_, std::strerror(errno));
}

void GrowingFile::append(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (std::fflush(file_.get()) != 0 || !written) refuse(path_, std::strerror(errno));
}

void GrowingFile::finish() {
  if (std::fclose(file_.release()) != 0) refuse(path_, std::strerror(errno));
  std::error_code error;
  fs::rename(temporary(path_), path_, error);
  if (error) refuse(path_, error.message());
}

}  // namespace hdpsim
