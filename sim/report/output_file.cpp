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

}  // namespace

void write_file(const fs::path& path, std::string_view text) {
  const fs::path temporary = path.string() + ".part";
  errno = 0;
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  if (!file) refuse(path, last_error());
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  std::error_code ignored;
  if (!file) {
    const std::string reason = last_error();
    fs::remove(temporary, ignored);
    refuse(path, reason);
  }
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
