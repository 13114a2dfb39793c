#include "sim/report/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw MachineError(fmt::format("cannot write {}: {}", path.string(), reason));
}

std::string last_error() {
  return errno == 0 ? "the file system refused" : std::strerror(errno);
}

// A device or a pipe: it is written to itself, as a file that is renamed to its name would take its place.
bool is_special(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

// False, with the reason in errno, if it could not be written whole.
bool write_whole(const fs::path& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  return file.good();
}

}  // namespace

void write_file(const fs::path& path, std::string_view text) {
  const bool in_place = is_special(path);
  const fs::path temporary = in_place ? path : fs::path(path.string() + ".part");
  std::error_code ignored;
  if (!write_whole(temporary, text)) {
    const std::string reason = last_error();
    if (!in_place) fs::remove(temporary, ignored);
    refuse(path, reason);
  }
  if (in_place) return;
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) {
    fs::remove(temporary, ignored);
    refuse(path, error.message());
  }
}

void prepare_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) refuse(path, error.message());
  if (!fs::is_directory(path)) refuse(path, "it is not a folder");
  // A name of its own for each process: several, on several hosts, may look at one folder at the same time.
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const fs::path probe = path / fmt::format(".hdpsim-{}-{}", host.data(), getpid());
  write_file(probe, "");
  fs::remove(probe, error);
}

}  // namespace hdpsim
