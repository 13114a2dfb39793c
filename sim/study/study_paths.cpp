#include "sim/study/study_paths.h"

#include <string_view>

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

// True if the value is a path. `key` may be a dotted path of a sweep, whose last part is the key that it sets.
bool holds_path(std::string_view key, const Value& value) {
  if (!value.is_scalar() || value.text.empty()) return false;
  const std::string_view last = key.substr(key.rfind('.') + 1);
  if (last == "file" || last == "hf_config") return true;
  return last == "cluster" || last == "lengths" || (last == "profile" && looks_like_path(value.text));
}

fs::path absolute_path_of(const Value& value) {
  return fs::absolute(path_of(value)).lexically_normal();
}

// Calls `change` with every path of a study.
template <class Change>
void for_each_path(Value& study, const Change& change) {
  const auto visit = [&](std::string_view key, Value& value) {
    if (holds_path(key, value)) change(value);
  };
  for (Value& item : study.items) for_each_path(item, change);
  for (auto& [key, position, value] : study.entries) {
    visit(key, value);
    for (Value& item : value.items) visit(key, item);
    for_each_path(value, change);
  }
}

}  // namespace

fs::path path_of(const Value& value) {
  return fs::path(value.position.file).parent_path() / value.text;
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".yaml");
}

void make_paths_absolute(Value& study) {
  for_each_path(study, [](Value& path) { path.text = absolute_path_of(path).string(); });
}

void make_paths_start_at(const fs::path& folder, Value& study) {
  const fs::path from = fs::absolute(folder).lexically_normal();
  for_each_path(study, [&](Value& path) {
    if (fs::path(path.text).is_relative()) path.text = absolute_path_of(path).lexically_proximate(from).string();
  });
}

}  // namespace hdpsim
