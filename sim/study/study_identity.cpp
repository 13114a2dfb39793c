#include "sim/study/study_identity.h"

#include <algorithm>

#include "sim/base/text.h"
#include "sim/document/values.h"
#include "sim/study/study_keys.h"

namespace hdpsim {
namespace {

// The order of keys has no meaning: two studies that differ only in it have the same runs.
void sort_keys(Value& value) {
  std::sort(value.entries.begin(), value.entries.end(),
            [](const Value::Entry& a, const Value::Entry& b) { return a.key < b.key; });
  for (auto& entry : value.entries) sort_keys(entry.value);
  for (Value& item : value.items) sort_keys(item);
}

// True for an empty list of background jobs, which is the same as none.
bool says_nothing(const Value::Entry& entry) {
  const Value& value = entry.value;
  return entry.key == "background" && (value.is_null() || (value.is_sequence() && value.items.empty()));
}

}  // namespace

std::string identity_text(Value study) {
  std::erase_if(study.entries,
                [](const Value::Entry& entry) { return belongs_to_whole_study(entry.key) || says_nothing(entry); });
  sort_keys(study);
  std::string text;
  for (const Value::Entry& entry : study.entries) append(text, "{}: {}\n", entry.key, json_line_of(entry.value));
  return text;
}

std::string world_text(const Value& study) {
  Value world = Value::map();
  for (const StudySection& section : study_sections()) {
    const Value* value = study.find(section.text.name);
    if (value != nullptr && section.decides == Decides::world) world.set(section.text.name, *value);
  }
  return identity_text(std::move(world));
}

}  // namespace hdpsim
