#include "sim/study/study_defaults.h"

#include <string>
#include <string_view>
#include <utility>

#include "sim/study/resolution.h"
#include "sim/study/study_keys.h"

namespace hdpsim {
namespace {

void set_default(Value& map, std::string_view key, const std::string& text) {
  const Value* found = map.find(key);
  if (map.is_map() && (found == nullptr || found->is_null())) map.set(key, Value::scalar(text, map.position));
}

// A map of the study that may be left out.
Value& section(Value& study, std::string_view key) {
  Value* found = study.find(key);
  if (found == nullptr) found = &study.set(key, Value::map(study.position));
  if (found->is_null()) *found = Value::map(found->position);
  return *found;
}

void set_declared_defaults(Value& study) {
  for (const StudySection& declared : study_sections()) {
    Value& map = section(study, declared.name);
    for (const KeyText& key : declared.keys) {
      if (key.notes.written != nullptr && key.notes.written(study)) set_default(map, key.name, key.fallback);
    }
  }
}

void set_expert_defaults(Value& study) {
  if (!written_with_experts(study)) return;
  Value& moe = section(study, "moe");
  set_default(moe, "across", "inside");
  set_default(moe, "capacity_factor", "none");
  set_default(moe, "routing", "uniform");
}

}  // namespace

Value with_defaults(Value study) {
  if (!study.is_map()) return study;
  set_expert_defaults(study);
  set_default(study, "grain", "fluid");
  if (study.find("data") != nullptr) {
    Value& data = section(study, "data");
    set_default(data, "overlong", "split");
    set_default(data, "seed", "1");
  }
  set_declared_defaults(study);
  Value& memory = section(study, "memory");
  set_default(memory, "loss", "fused");
  set_default(memory, "fragmentation", "0.047");
  set_default(memory, "reserve", "auto");
  return study;
}

}  // namespace hdpsim
