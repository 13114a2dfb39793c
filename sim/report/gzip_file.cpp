#include "sim/report/gzip_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr unsigned piece = 1U << 18U;

std::string reason_of(gzFile file) {
  int code = Z_OK;
  const char* const message = gzerror(file, &code);
  return code == Z_ERRNO ? std::strerror(errno) : message;
}

}  // namespace

GzipFile::GzipFile(std::filesystem::path path) : path_(std::move(path)), temporary_(path_.string() + ".part") {
  errno = 0;
  file_ = gzopen(temporary_.c_str(), "wb6");
  if (file_ == nullptr) refuse(errno == 0 ? "no memory" : std::strerror(errno));
  gzbuffer(file_, piece);
}

GzipFile::~GzipFile() {
  if (file_ == nullptr) return;
  gzclose(file_);
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void GzipFile::write(std::string_view text) {
  for (; !text.empty(); text.remove_prefix(std::min<std::size_t>(text.size(), piece))) {
    const std::string_view next = text.substr(0, piece);
    if (gzwrite(file_, next.data(), static_cast<unsigned>(next.size())) <= 0) refuse(reason_of(file_));
  }
}

void GzipFile::finish() {
  errno = 0;
  const int result = gzclose(std::exchange(file_, nullptr));
  std::error_code error;
  if (result != Z_OK) {
    const std::string reason = errno == 0 ? "the file system refused" : std::strerror(errno);
    std::filesystem::remove(temporary_, error);
    refuse(reason);
  }
  std::filesystem::rename(temporary_, path_, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
    refuse(error.message());
  }
}

void GzipFile::refuse(const std::string& reason) {
  throw MachineError(fmt::format("cannot write {}: {}", path_.string(), reason));
}

}  // namespace hdpsim
