#include "sim/study/resolution.h"

namespace hdpsim {

bool always_written(const Value& /*study*/) {
  return true;
}

bool written_with_stages(const Value& study) {
  const Value* mesh = study.find("mesh");
  const Value* pp = mesh == nullptr ? nullptr : mesh->find("pp");
  return pp != nullptr && pp->text != "1";
}

bool written_with_experts(const Value& study) {
  const Value* mesh = study.find("mesh");
  return study.find("moe") != nullptr || (mesh != nullptr && mesh->find("ep") != nullptr);
}

}  // namespace hdpsim
