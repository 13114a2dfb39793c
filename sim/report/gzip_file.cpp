#include "sim/report/gzip_file.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace hdpsim {
namespace {

constexpr unsigned bytes_at_once = 1U << 18U;

std::string reason_of(gzFile file) {
  int code = Z_OK;
  const char* const message = gzerror(file, &code);
  return code == Z_ERRNO ? std::strerror(errno) : message;
}

}  // namespace

GzipFile::GzipFile(std::filesystem::path path) : target_(std::move(path)) {
  errno = 0;
  const int own = dup(target_.descriptor());  // zlib closes its descriptor
  if (own < 0) target_.refuse();
  file_ = gzdopen(own, "wb6");
  if (file_ == nullptr) {
    close(own);
    target_.refuse("no memory");
  }
  gzbuffer(file_, bytes_at_once);
}

GzipFile::~GzipFile() {
  if (file_ != nullptr) gzclose(file_);
}

void GzipFile::write(std::string_view text) {
  for (; !text.empty(); text.remove_prefix(std::min<std::size_t>(text.size(), bytes_at_once))) {
    const std::string_view next = text.substr(0, bytes_at_once);
    if (gzwrite(file_, next.data(), static_cast<unsigned>(next.size())) <= 0) target_.refuse(reason_of(file_));
  }
}

void GzipFile::finish() {
  errno = 0;
  if (gzclose(std::exchange(file_, nullptr)) != Z_OK) target_.refuse(errno == 0 ? "the file system refused" : "");
  target_.commit();
}

}  // namespace hdpsim
