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
  return last == "cluster" || (last == "profile" && looks_like_path(value.text));
}

void make_absolute(std::string_view key, Value& value) {
  if (holds_path(key, value)) value.text = fs::absolute(path_of(value)).lexically_normal().string();
}

}  // namespace

fs::path path_of(const Value& value) {
  return fs::path(value.position.file).parent_path() / value.text;
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".yaml");
}

void make_paths_absolute(Value& study) {
  for (Value& item : study.items) make_paths_absolute(item);
  for (auto& [key, position, value] : study.entries) {
    make_absolute(key, value);
    for (Value& item : value.items) make_absolute(key, item);
    make_paths_absolute(value);
  }
}

}  // namespace hdpsim
