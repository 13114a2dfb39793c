#include "sim/base/input_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "sim/base/diagnostic.h"

namespace hdpsim {
namespace {

// A global because readers are in many layers, and none of them behaves differently because of it.
thread_local InputFiles* newest = nullptr;

}  // namespace

InputFiles::InputFiles() : older_(newest) {
  newest = this;
}

InputFiles::~InputFiles() {
  newest = older_;
}

void InputFiles::record(const std::filesystem::path& path) {
  struct stat status {};
  if (newest == nullptr || stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  newest->names_.try_emplace({status.st_dev, status.st_ino}, path.string());
}

const std::string* InputFiles::name_of(const std::filesystem::path& path) const {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return nullptr;
  const auto found = names_.find({status.st_dev, status.st_ino});
  return found == names_.end() ? nullptr : &found->second;
}

void InputFiles::require_none_at(const std::filesystem::path& output) const {
  const std::string* const input = name_of(output);
  if (input == nullptr) return;
  const bool same_name = *input == output.string();
  throw InputError(Position{output.string(), 0, 0},
                   same_name ? "this file is read, and its result would replace it"
                             : fmt::format("a result of {} would replace it: they are the same file", *input),
                   "name another file or folder with --out");
}

}  // namespace hdpsim
