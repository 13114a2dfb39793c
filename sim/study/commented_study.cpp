#include "sim/study/commented_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "sim/study/study_keys.h"

namespace hdpsim {
namespace {

constexpr std::size_t widest_line = 100;
constexpr std::size_t step_of_indent = 2;

// A comment of lines that are not too long, if its words are not.
std::string comment(const std::string& text, std::size_t indent) {
  const std::string margin = std::string(indent, ' ') + "#";
  std::string lines;
  std::string line = margin;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > widest_line && line != margin) {
      lines += line + '\n';
      line = margin;
    }
    line += ' ' + word;
  }
  return line == margin ? lines : lines + line + '\n';
}

void put_on_one_line(Value& value) {
  value.one_line = true;
  for (Value& item : value.items) put_on_one_line(item);
  for (auto& entry : value.entries) put_on_one_line(entry.value);
}

std::string entry_text(const Value::Entry& entry, std::size_t indent) {
  Value value = entry.value;
  put_on_one_line(value);
  Value map = Value::map();
  map.set(entry.key, std::move(value));
  return std::string(indent, ' ') + to_yaml(map);
}

class Writer {
 public:
  explicit Writer(const std::map<std::string, std::string>& remarks) : remarks_(remarks) {}

  [[nodiscard]] std::string lines(const Value& map, const std::string& before = "") const {
    const bool is_outermost = before.empty();
    const std::size_t indent = is_outermost ? 0 : step_of_indent;
    std::string text;
    for (const Value::Entry& entry : map.entries) {
      const std::string path = before + entry.key;
      if (is_outermost && !text.empty()) text += '\n';
      text += comment(sentence(path), indent) + comment(remark(path), indent);
      text += is_outermost && is_section(path, entry.value)
                  ? fmt::format("{}:\n{}", entry.key, lines(entry.value, path + "."))
                  : entry_text(entry, indent);
    }
    return text;
  }

 private:
  [[nodiscard]] std::string sentence(const std::string& path) const {
    const auto found =
        std::find_if(keys_.begin(), keys_.end(), [&](const StudyKey& each) { return each.path == path; });
    return found == keys_.end() ? "" : found->key->sentence;
  }

  [[nodiscard]] std::string remark(const std::string& path) const {
    const auto found = remarks_.find(path);
    return found == remarks_.end() ? "" : found->second;
  }

  // Several keys, each of which has something to say.
  [[nodiscard]] bool is_section(const std::string& path, const Value& value) const {
    const auto& entries = value.entries;
    return entries.size() > 1 && std::all_of(entries.begin(), entries.end(), [&](const Value::Entry& entry) {
             return !sentence(fmt::format("{}.{}", path, entry.key)).empty();
           });
  }

  std::vector<StudyKey> keys_ = all_study_keys();
  const std::map<std::string, std::string>& remarks_;
};

}  // namespace

std::string commented_study(const Value& study, const std::map<std::string, std::string>& remarks) {
  return Writer(remarks).lines(study);
}

}  // namespace hdpsim
