#include "sim/import/impl/shell_text.h"

#include <algorithm>
#include <utility>

namespace hdpsim {

bool ShellText::is_not_computed() const {
  return std::any_of(unknowns.begin(), unknowns.end(),
                     [](const ShellUnknown& each) { return each.kind == ShellUnknown::Kind::not_computed; });
}

void ShellText::add(const ShellText& other) {
  for (ShellUnknown unknown : other.unknowns) {
    unknown.at += text.size();
    unknowns.push_back(std::move(unknown));
  }
  text += other.text;
  from.insert(from.end(), other.from.begin(), other.from.end());
}

ShellText ShellText::part(std::size_t first, std::size_t last) const {
  ShellText found;
  found.text = text.substr(first, last - first);
  found.from.assign(from.begin() + static_cast<std::ptrdiff_t>(first),
                    from.begin() + static_cast<std::ptrdiff_t>(last));
  found.begin = found.from.empty() || found.from.front() == nowhere ? begin : found.from.front();
  for (ShellUnknown unknown : unknowns) {
    if (unknown.at < first || unknown.at > last) continue;
    unknown.at -= first;
    found.unknowns.push_back(std::move(unknown));
  }
  return found;
}

ShellText ShellText::of(std::string_view text) {
  ShellText made;
  made.text = text;
  made.from.assign(text.size(), nowhere);
  return made;
}

ShellText ShellText::unknown(ShellUnknown what) {
  ShellText made;
  made.unknowns.push_back(std::move(what));
  return made;
}

ShellText joined_words(const std::vector<ShellText>& words) {
  ShellText all;
  for (const ShellText& word : words) {
    if (&word == &words.front()) {
      all.begin = word.begin;
    } else {
      all.add(' ', ShellText::nowhere);
    }
    all.add(word);
  }
  return all;
}

}  // namespace hdpsim
