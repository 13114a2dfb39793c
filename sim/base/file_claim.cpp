#include "sim/base/file_claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "sim/base/check.h"
#include "sim/base/printable.h"

namespace hdpsim {
namespace {

constexpr std::size_t longest_writer = 1000;

// Whether the name still leads to the open file: its last owner may have removed it in between.
bool is_at(int descriptor, const std::filesystem::path& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(descriptor, &opened) == 0 && lstat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

std::string writer_in(int descriptor) {
  std::array<char, longest_writer> text{};
  const ssize_t count = pread(descriptor, text.data(), text.size(), 0);
  return count > 0 ? printable(std::string(text.data(), static_cast<std::size_t>(count))) : "another process";
}

}  // namespace

FileClaim::FileClaim(const std::filesystem::path& path, const std::string& writer)
    : lock_(path.parent_path() / fmt::format(".{}.lock", path.filename().string())) {
  const auto refuse = [&](const std::string& reason) {
    if (descriptor_ >= 0) close(descriptor_);
    throw MachineError(fmt::format("cannot write {}: {}", path.string(), reason));
  };
  do {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = open(lock_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor_ < 0) refuse(std::strerror(errno));
    // A file system without locks is used without one.
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      refuse(fmt::format("it is being written by {}", writer_in(descriptor_)));
    }
  } while (!is_at(descriptor_, lock_));
  const std::string text = fmt::format("process {}: {}", getpid(), writer).substr(0, longest_writer);
  (void)!ftruncate(descriptor_, 0);
  (void)!pwrite(descriptor_, text.data(), text.size(), 0);
}

FileClaim::~FileClaim() {
  static_cast<void>(unlink(lock_.c_str()));  // before the lock ends, so that no other claim is removed
  close(descriptor_);
}

}  // namespace hdpsim
