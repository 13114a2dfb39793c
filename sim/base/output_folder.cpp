#include "sim/base/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>

#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/printable.h"
#include "sim/base/text.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

constexpr char list_name[] = ".hdpsim";
constexpr std::string_view writer_key = "writer ";
constexpr std::size_t largest_list = 64'000'000;

[[noreturn]] void refuse_path(const fs::path& path, const std::string& reason) {
  throw MachineError(fmt::format("cannot write {}: {}", path.string(), reason));
}

std::string this_host() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

// A list that somebody else has written may only name results, and none outside its folder.
bool is_result_name(const std::string& name) {
  const fs::path path(name);
  const auto parts = std::distance(path.begin(), path.end());
  const bool is_inside = path.is_relative() && parts <= 2 &&
                         std::none_of(path.begin(), path.end(),
                                      [](const fs::path& part) { return part.empty() || part == "." || part == ".."; });
  static const std::set<std::string> endings = {".csv", ".json", ".jsonl", ".html",   ".yaml", ".gz",
                                                ".xml", ".sums", ".part",  ".mended", ""};
  return is_inside && printable(name) == name && name != list_name && endings.contains(path.extension().string());
}

bool is_link(const fs::path& path) {
  std::error_code ignored;
  return fs::is_symlink(fs::symlink_status(path, ignored));
}

void create(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) refuse_path(path, error.message());
  if (!fs::is_directory(path)) refuse_path(path, "it is not a folder");
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 65536> block{};
  ssize_t count = 0;
  while (text.size() < largest_list && (count = read(file, block.data(), block.size())) > 0) {
    text.append(block.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

void prepare_folder(const fs::path& path) {
  create(path);
  // Each process has a probe of its own, because several on several hosts may check one folder at the same time.
  const fs::path probe = path / fmt::format(".hdpsim-{}-{}", this_host(), getpid());
  write_file(probe, "");
  std::error_code ignored;
  fs::remove(probe, ignored);
}

OutputFolder::OutputFolder(fs::path path, OutputUse use, const InputFiles* inputs)
    : path_(std::move(path)), use_(std::move(use)), inputs_(inputs) {
  if (inputs_ != nullptr) {
    for (const std::string& name : use_.names) inputs_->require_none_at(path_ / name);
  }
  create(path_);
  lock();
  try {
    begin_list();
    if (!use_.replaces_unlisted) refuse_unlisted();
  } catch (...) {
    close(list_);
    throw;
  }
  sweep(path_);
}

void OutputFolder::begin_list() {
  for (const std::string& line : lines_of(read_all(list_))) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || line.starts_with(writer_key)) continue;
    const std::string name = line.substr(space + 1);
    if (is_result_name(name)) earlier_.emplace(line.substr(0, space), name);
  }
  add_line(fmt::format("{}process {} on {}: {}\n", writer_key, getpid(), this_host(), printable(use_.writer)));
}

void OutputFolder::refuse_unlisted() const {
  Diagnostics problems;
  for (const std::string& name : use_.names) {
    const fs::path path = path_ / name;
    const auto lists = [&](const Entry& entry) { return entry.second == name; };
    std::error_code ignored;
    const bool is_there = fs::is_regular_file(fs::symlink_status(path, ignored));  // a link is replaced, not followed
    if (!is_there || std::any_of(earlier_.begin(), earlier_.end(), lists)) continue;
    problems.error({path.string(), 0, 0}, "this file is there, and no earlier run has written it",
                   "move it away, or write to another folder");
  }
  problems.throw_if_any();
}

void OutputFolder::lock() {
  const fs::path path = path_ / list_name;
  list_ = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (list_ < 0) refuse_path(path, errno == ELOOP ? "it is a link" : std::strerror(errno));
  // A file system without locks is used without one.
  if (flock(list_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  std::string who = "another process";
  for (const std::string& line : lines_of(read_all(list_))) {
    if (line.starts_with(writer_key)) who = printable(line.substr(writer_key.size()));
  }
  close(list_);
  throw MachineError(fmt::format("cannot write {}: results are being written there by {}", path_.string(), who));
}

void OutputFolder::add_line(const std::string& line) {
  (void)lseek(list_, 0, SEEK_END);
  if (::write(list_, line.data(), line.size()) == std::ssize(line)) return;
  refuse_path(path_ / list_name, errno == 0 ? "the file system refused" : std::strerror(errno));
}

// Rewritten in place because the lock is on this very file, and cut to its length last so that no entry is lost on the
// way.
OutputFolder::~OutputFolder() {
  if (list_ < 0) return;
  written_.insert(earlier_.begin(), earlier_.end());
  std::string text;
  for (const auto& [kind, name] : written_) {
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(path_ / name, ignored))) text += fmt::format("{} {}\n", kind, name);
  }
  if (pwrite(list_, text.data(), text.size(), 0) == std::ssize(text)) {
    (void)!ftruncate(list_, static_cast<off_t>(text.size()));
  }
  close(list_);
}

void OutputFolder::sweep(const fs::path& folder) const {
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (is_left_over(it->path())) fs::remove(it->path(), ignored);
  }
}

fs::path OutputFolder::file(const std::string& name) {
  if (inputs_ != nullptr) inputs_->require_none_at(path_ / name);
  const std::lock_guard guard(mutex_);
  if (written_.emplace(use_.kind, name).second) add_line(fmt::format("{} {}\n", use_.kind, name));
  return path_ / name;
}

void OutputFolder::write(const std::string& name, std::string_view text) {
  write_file(file(name), text);
}

fs::path OutputFolder::folder(const std::string& name) {
  fs::path inner = path_ / name;
  if (is_link(inner)) refuse_path(inner, "it is a link, which may lead out of the folder");
  create(inner);
  sweep(inner);
  return inner;
}

void OutputFolder::remove_earlier() {
  const std::lock_guard guard(mutex_);
  std::set<fs::path> folders;
  for (auto it = earlier_.begin(); it != earlier_.end();) {
    const auto& [kind, name] = *it;
    const fs::path path = path_ / name;
    const bool stays = kind != use_.kind || written_.contains(*it) || is_link(path.parent_path()) ||
                       (inputs_ != nullptr && inputs_->holds(path));
    if (stays) {
      ++it;
      continue;
    }
    std::error_code ignored;
    if (fs::remove(path, ignored)) removed_.insert(name);
    if (path.parent_path() != path_) folders.insert(path.parent_path());
    it = earlier_.erase(it);
  }
  for (const fs::path& folder : folders)
    // Fails for a folder that still has files.
    static_cast<void>(rmdir(folder.c_str()));
}

std::string OutputFolder::removed_text() const {
  std::vector<std::string> listed;
  std::map<std::string, int> inner;
  for (const std::string& name : removed_) {
    if (written_.contains({use_.kind, name})) continue;
    const std::string folder = fs::path(name).parent_path().string();
    folder.empty() ? listed.push_back(name) : static_cast<void>(++inner[folder]);
  }
  for (const auto& [folder, count] : inner) listed.push_back(fmt::format("{}/ ({})", folder, count));
  if (listed.empty()) return {};
  return fmt::format("removed from {}, as an earlier run had left it: {}", path_.string(), joined(listed, ", "));
}

}  // namespace hdpsim
