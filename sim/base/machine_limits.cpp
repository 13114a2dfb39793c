#include "sim/base/machine_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "sim/base/check.h"
#include "sim/base/quantity_text.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

// A limit beyond this is none.
constexpr std::int64_t no_limit = std::int64_t{1} << 60;

// The number behind a name in a file of lines such as "MemAvailable: 1024 kB", or the first number of a file.
std::optional<std::int64_t> number_in(const char* path, const std::string& name) {
  std::ifstream file(path);
  std::string word = name;
  while (!name.empty() && file >> word && word != name) file.ignore(4096, '\n');
  std::int64_t number = 0;
  if (word != name || !(file >> number)) return std::nullopt;
  return number;
}

// What the limit of address space leaves.
std::optional<std::int64_t> free_addresses() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const std::int64_t pages = number_in("/proc/self/statm", "").value_or(0);
  const auto all = static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, no_limit));
  return std::max<std::int64_t>(0, all - pages * sysconf(_SC_PAGESIZE));
}

std::string amount_text(double bytes) {
  constexpr double most = 1e18;
  return bytes_text(Bytes(static_cast<std::int64_t>(std::min(bytes, most))));
}

}  // namespace

std::optional<Bytes> free_memory() {
  std::int64_t least = no_limit;
  const auto limit = [&](const std::optional<std::int64_t>& bytes) {
    if (bytes) least = std::min(least, *bytes);
  };
  if (const auto available = number_in("/proc/meminfo", "MemAvailable:")) limit(*available * 1024);
  limit(number_in("/sys/fs/cgroup/memory.max", ""));                    // version 2; "max" is no number
  limit(number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", ""));  // version 1
  limit(free_addresses());
  if (least == no_limit) return std::nullopt;
  return Bytes(least);
}

void require_memory(std::string_view work, double bytes) {
  const std::optional<Bytes> free = free_memory();
  if (!free || bytes <= static_cast<double>(free->count())) return;
  throw MachineError(
      fmt::format("{} takes about {} of memory, and {} are free", work, amount_text(bytes), bytes_text(*free)));
}

void require_disk(const fs::path& file, double bytes) {
  std::error_code failure;
  if (fs::exists(file, failure) && !fs::is_regular_file(file, failure)) return;
  const fs::space_info space = fs::space(file.has_parent_path() ? file.parent_path() : ".", failure);
  if (failure || bytes <= static_cast<double>(space.available)) return;
  throw MachineError(fmt::format("{} would take about {}, and {} are free on its disk", file.string(),
                                 amount_text(bytes), amount_text(static_cast<double>(space.available))));
}

}  // namespace hdpsim
