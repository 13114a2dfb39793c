#include "sim/base/atomic_file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/printable.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".part";
constexpr std::size_t longest_stem = 200;  // a name may have 255 bytes
constexpr int most_attempts = 10'000;

// The temporary files of the whole process are kept in a global, the only place where a signal handler can find them.
// There are never more unfinished files than slots; a signal would leave those beyond.
std::array<std::atomic<const char*>, 256> unfinished;
static_assert(std::atomic<const char*>::is_always_lock_free, "a signal handler may touch nothing else");

void remember(const char* name) noexcept {
  for (auto& slot : unfinished) {
    const char* none = nullptr;
    if (slot.compare_exchange_strong(none, name)) return;
  }
}

// False if a signal handler has taken the name, which then stays in its slot.
bool forget(const char* name) noexcept {
  for (auto& slot : unfinished) {
    const char* same = name;
    if (slot.compare_exchange_strong(same, nullptr)) return true;
  }
  return false;
}

// The only links that are followed are those that the system makes for the streams of a process: /dev/stdout,
// /dev/fd/3.
bool is_written_in_place(const fs::path& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return false;
  if (!S_ISLNK(status.st_mode)) return !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
  std::error_code ignored;
  const std::string folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", ignored).string();
  return folder == "/dev" || folder.starts_with("/proc/");
}

// .NAME.PROCESS-NUMBER.part
std::string temporary_name(const fs::path& path, int number) {
  const std::string stem = path.filename().string().substr(0, longest_stem);
  return (path.parent_path() / fmt::format(".{}.{}-{}{}", stem, getpid(), number, ending)).string();
}

/// Opens a new file under a temporary name, which it stores in `name`. Returns its descriptor, or -1 with the reason in
/// errno. The name is recorded before the file exists, so that a signal in between finds everything to be removed.
int open_new(const fs::path& path, const char*& name) {
  for (int number = 0; number < most_attempts; ++number) {
    name = strdup(temporary_name(path, number).c_str());
    if (name == nullptr) return -1;
    remember(name);
    const int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file >= 0) return file;
    const int reason = errno;
    if (forget(name)) std::free(const_cast<char*>(name));
    name = nullptr;
    errno = reason;  // NOLINT(clang-analyzer-unix.Malloc): a signal handler that took the name still reads it
    if (reason != EEXIST) return -1;
  }
  return -1;
}

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

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  const bool in_place = is_written_in_place(path_);
  const int file = in_place ? open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC) : open_new(path_, temporary_);
  require(file >= 0);
  file_ = fdopen(file, "wb");
  if (file_ != nullptr) return;
  const int reason = errno;
  close(file);
  give_up();
  errno = reason;
  refuse();
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) static_cast<void>(std::fclose(file_));
  give_up();
}

void AtomicFile::give_up() noexcept {
  if (temporary_ == nullptr) return;
  static_cast<void>(unlink(temporary_));
  if (forget(temporary_)) std::free(const_cast<char*>(temporary_));
  temporary_ = nullptr;
}  // NOLINT(clang-analyzer-unix.Malloc): as in open_new()

void AtomicFile::write(std::string_view bytes) {
  require(std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size());
}

void AtomicFile::seek(std::int64_t offset) {
  require(fseeko(file_, offset, SEEK_SET) == 0);
}

void AtomicFile::commit(Durability durability) {
  const bool forced = durability == Durability::power && temporary_ != nullptr;
  require(std::fflush(file_) == 0);
  if (forced) require(fsync(fileno(file_)) == 0);
  require(std::fclose(std::exchange(file_, nullptr)) == 0);  // a network disk may refuse as late as here
  if (temporary_ == nullptr) return;
  require(std::rename(temporary_, path_.c_str()) == 0);
  if (forget(temporary_)) std::free(const_cast<char*>(temporary_));
  temporary_ = nullptr;
  if (!forced) return;
  const fs::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const int entry = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (entry < 0) return;  // a loss of power may lose the name, but not the file under its old name
  static_cast<void>(fsync(entry));
  close(entry);
}

void AtomicFile::refuse(std::string_view reason) const {
  throw MachineError(
      fmt::format("cannot write {}: {}", path_.string(), reason.empty() ? std::strerror(errno) : reason));
}

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void remove_unfinished_files() noexcept {
  for (auto& slot : unfinished) {
    if (const char* const name = slot.exchange(nullptr)) static_cast<void>(unlink(name));
  }
}

void remove_left_overs(const fs::path& path) noexcept {
  const std::string beginning = fmt::format(".{}.", path.filename().string().substr(0, longest_stem));
  std::error_code ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    // A longer name may begin the same way: what is left of this one is the number of the process.
    const bool is_of_file = name.starts_with(beginning) &&
                            name.find_first_not_of("0123456789", beginning.size()) == name.find('-', beginning.size());
    if (is_of_file && is_left_over(name)) fs::remove(it->path(), ignored);
  }
}

bool is_left_over(const fs::path& name) {
  std::string text = name.filename().string();
  if (!text.starts_with('.') || !text.ends_with(ending)) return false;
  text.resize(text.size() - ending.size());
  const std::size_t dash = text.rfind('-');
  const std::size_t dot = text.rfind('.', dash);
  if (dash == std::string::npos || dot == std::string::npos || dash + 1 == text.size()) return false;
  if (text.find_first_not_of("0123456789", dash + 1) != std::string::npos) return false;
  pid_t process = 0;
  const auto [end, error] = std::from_chars(text.data() + dot + 1, text.data() + dash, process);
  if (error != std::errc{} || end != text.data() + dash || process <= 0) return false;
  return process == getpid() || (kill(process, 0) != 0 && errno == ESRCH);
}

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
