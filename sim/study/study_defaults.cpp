#include "sim/study/study_defaults.h"

#include <string_view>
#include <utility>

namespace hdpsim {
namespace {

void set_default(Value& map, std::string_view key, const char* text) {
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

// Of a study that speaks of experts.
void set_expert_defaults(Value& study) {
  const Value* mesh = study.find("mesh");
  if (study.find("moe") == nullptr && (mesh == nullptr || mesh->find("ep") == nullptr)) return;
  set_default(section(study, "mesh"), "ep", "1");
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
  Value& mesh = section(study, "mesh");
  set_default(mesh, "tp", "1");
  set_default(mesh, "pp", "1");
  set_default(mesh, "capacity", "8Ki");
  set_default(mesh, "placement", "contiguous");
  set_default(mesh, "groups", "one_communicator");
  set_default(mesh, "connections", "warm");
  const Value* pp = mesh.find("pp");
  if (pp != nullptr && pp->text != "1") {
    set_default(mesh, "schedule", "1f1b");
    set_default(mesh, "virtual_stages", "1");
  }
  set_default(mesh, "recompute", "none");
  set_default(mesh, "zero", "1");
  Value& memory = section(study, "memory");
  set_default(memory, "loss", "fused");
  set_default(memory, "fragmentation", "0.047");
  set_default(memory, "reserve", "auto");
  return study;
}

}  // namespace hdpsim
