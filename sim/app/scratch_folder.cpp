#include "sim/app/scratch_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "sim/base/check.h"

namespace hdpsim::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* lock_name = ".lock";

// Whether this user's process that made the folder has ended. One that is being made has no lock yet, and stays.
bool is_abandoned(const fs::path& folder) {
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid()) return false;
  const int lock = open((folder / lock_name).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (lock < 0) return false;
  const bool is_free = flock(lock, LOCK_EX | LOCK_NB) == 0;
  close(lock);
  return is_free;
}

void remove_abandoned(const fs::path& beginning) {
  std::error_code ignored;
  for (fs::directory_iterator it(beginning.parent_path(), ignored), end; !ignored && it != end; it.increment(ignored)) {
    const bool is_of_kind = it->path().filename().string().starts_with(beginning.filename().string());
    std::error_code failure;
    if (is_of_kind && is_abandoned(it->path())) fs::remove_all(it->path(), failure);
  }
}

}  // namespace

ScratchFolder::ScratchFolder(const std::string& kind) {
  const fs::path beginning = fs::temp_directory_path() / fmt::format("hdpsim-{}-", kind);
  remove_abandoned(beginning);
  std::string name = beginning.string() + "XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    throw MachineError(fmt::format("cannot make a temporary folder {}: {}", name, std::strerror(errno)));
  }
  path_ = name;
  // The lock gets its name when it is held, so that nobody finds it free before.
  const fs::path unnamed = path_ / ".lock.new";
  lock_ = open(unnamed.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (lock_ >= 0 && flock(lock_, LOCK_EX | LOCK_NB) == 0) {
    std::error_code ignored;  // without a name it stays until somebody cleans up
    fs::rename(unnamed, path_ / lock_name, ignored);
  }
}

ScratchFolder::~ScratchFolder() {
  remove();
  if (lock_ >= 0) close(lock_);
}

void ScratchFolder::remove() const {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace hdpsim::app
