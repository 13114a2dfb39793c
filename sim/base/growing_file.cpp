#include "sim/base/growing_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

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

std::FILE* open_growing(const fs::path& path, std::uintmax_t keep) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) refuse(path, errno == ELOOP ? "it is a link" : std::strerror(errno));
  std::string reason;
  std::FILE* stream = nullptr;
  if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    reason = "another process is writing it";
  } else if (ftruncate(file, static_cast<off_t>(keep)) != 0 || (stream = fdopen(file, "ab")) == nullptr) {
    reason = std::strerror(errno);
  }
  if (stream != nullptr) return stream;
  close(file);
  refuse(path, reason);
}

fs::path GrowingFile::temporary(const fs::path& path) {
  return path.string() + ".part";
}

GrowingFile::GrowingFile(fs::path path, std::uintmax_t keep) : path_(std::move(path)) {
  file_.reset(open_growing(temporary(path_), keep));
}

void GrowingFile::append(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (std::fflush(file_.get()) != 0 || !written) refuse(path_, std::strerror(errno));
}

std::vector<std::string> growing_names(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    all.push_back(name);
    all.push_back(GrowingFile::temporary(name).string());
  }
  return all;
}

void GrowingFile::finish() {
  if (std::fclose(file_.release()) != 0) refuse(path_, std::strerror(errno));
  std::error_code error;
  fs::rename(temporary(path_), path_, error);
  if (error) refuse(path_, error.message());
}

}  // namespace hdpsim
