#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

/// What hangs on a key of the study's outermost map.
enum class Decides : std::uint8_t {
  study,  ///< The study as a whole, and not what one of its points simulates.
  point,  ///< The steps of a point.
  world,  ///< Those, and the simulated cluster with its jobs: points that differ in it do not share a World.
};

/// A key of the study's outermost map; a section's keys are those of its shape.
struct StudySection {
  KeyText text;
  Decides decides = Decides::point;
};

/// All keys of a study, declared once.
[[nodiscard]] const std::vector<StudySection>& study_sections();
/// Whether a study as a whole has a key of that name, which its points do not see.
[[nodiscard]] bool belongs_to_whole_study(std::string_view key);

/// A declared key with its path: `mesh.tp`.
struct StudyKey {
  std::string path;
  const KeyText* key;
};
/// All declared keys that have a sentence, those of sections behind their section, policies and their
/// options behind `plans`.
[[nodiscard]] std::vector<StudyKey> all_study_keys();

}  // namespace hdpsim
