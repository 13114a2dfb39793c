#pragma once

#include "sim/document/key_table.h"
#include "sim/model/recipe.h"
#include "sim/study/point.h"

namespace hdpsim {

/// The keys of `training`: how a framework trains, whatever the mesh.
[[nodiscard]] const KeyTable<PointSpec>& training_keys();

/// The notes of a key that fills in a member of the recipe.
template <class Member>
KeyNotes recipe_notes(Member member, KeyNotes notes = {}) {
  if (is_for_dense_layers(member)) notes.fixed = "with experts";
  return notes;
}

/// The keys of `memory`.
[[nodiscard]] const std::vector<KeyText>& memory_keys();

/// Reads `memory` of a study into `recipe`, some of which it states. All problems are reported.
void read_memory(const Value& value, Recipe& recipe, Diagnostics& diagnostics);

}  // namespace hdpsim
