#include "sim/study/study_keys.h"

#include "sim/study/mesh_keys.h"

namespace hdpsim {

const std::vector<StudySection>& study_sections() {
  static const std::vector<StudySection> sections = {{"mesh", mesh_keys().texts()}};
  return sections;
}

}  // namespace hdpsim
