#include "sim/study/study_defaults.h"

#include <string>

#include "sim/study/study_keys.h"

namespace hdpsim {
namespace {

bool is_left_out(const Value* found) {
  return found == nullptr || found->is_null();
}

void set_default(Value& map, const KeyText& key) {
  if (map.is_map() && is_left_out(map.find(key.name))) map.set(key.name, Value::scalar(key.fallback, map.position));
}

// Creates an optional section if one of its keys gets a default.
void set_defaults_of_section(const KeyText& section, Value& study) {
  for (const KeyText& key : section.shape.keys) {
    if (key.notes.written == nullptr || !key.notes.written(study)) continue;
    Value* map = study.find(section.name);
    if (map == nullptr && section.notes.required) return;
    if (map == nullptr) map = &study.set(section.name, Value::map(study.position));
    if (map->is_null()) *map = Value::map(map->position);
    set_default(*map, key);
  }
}

}  // namespace

Value with_defaults(Value study) {
  if (!study.is_map()) return study;
  for (const StudySection& section : study_sections()) {
    const KeyText& key = section.text;
    if (key.notes.written != nullptr && key.notes.written(study)) set_default(study, key);
    set_defaults_of_section(key, study);
  }
  return study;
}

}  // namespace hdpsim
