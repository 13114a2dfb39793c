#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"
#include "sim/document/key.h"

namespace hdpsim {

/// What a key of the study's outermost map decides.
enum class Decides : std::uint8_t {
  study,  ///< The study as a whole, and not the simulation of its points.
  point,  ///< The steps of a point.
  world,  ///< The same, and the simulated cluster with its jobs: points that differ in it do not share a World.
};

/// A key of the study's outermost map; the keys of a section are those of its shape.
struct StudySection {
  KeyText text;
  Decides decides = Decides::point;
};

/// All keys of a study, declared once.
[[nodiscard]] const std::vector<StudySection>& study_sections();
/// True if the key belongs to the study as a whole, so that its points do not see it.
[[nodiscard]] bool belongs_to_whole_study(std::string_view key);

/// A declared key with its path: `mesh.tp`.
struct StudyKey {
  std::string path;
  const KeyText* key;
};
/// All declared keys that have a sentence, those of sections after their section, policies and their options after
/// `plans`.
[[nodiscard]] std::vector<StudyKey> all_study_keys();
/// The same of the keys of another file, which must outlive the result. A `*` in a path stands for a name that the file
/// chooses.
[[nodiscard]] std::vector<StudyKey> collected(const std::vector<KeyText>& keys);

/// A study with the defaults of missing keys put in, where the declarations of the keys require it (KeyNotes::written):
/// a resolved study states them, so that it gives the same results if a default changes.
[[nodiscard]] Value with_defaults(Value study);

/// Everything in a point's study on which its steps depend: all sections but those declared to belong to the study as a
/// whole, each a line of YAML with its value as JSON. Independent of the order of keys and of how numbers are written.
/// The cluster must be in full, and paths absolute.
[[nodiscard]] std::string identity_text(Value study);

/// The same for the sections declared to decide the simulated world: points with the same text can share it.
[[nodiscard]] std::string world_text(const Value& study);

}  // namespace hdpsim
