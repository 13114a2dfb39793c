#pragma once

#include <string>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

/// A map of a study whose keys are declared once.
struct StudySection {
  std::string name;  ///< "mesh".
  std::vector<KeyText> keys;
};

/// All sections that are declared, in the order in which a resolved study gets their defaults.
[[nodiscard]] const std::vector<StudySection>& study_sections();

}  // namespace hdpsim
