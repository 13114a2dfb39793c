#include "sim/profile/impl/field_keys.h"

#include <algorithm>

namespace hdpsim {

void FieldKeys::add(std::string_view key, KeyShape shape, bool required) {
  KeyText text{.name = std::string(key), .shape = std::move(shape), .fallback = {}, .sentence = {}, .notes = {}};
  text.sentence = std::exchange(sentence_, {});
  text.notes.required = required;
  keys_.push_back(std::move(text));
}

void FieldKeys::spread() {
  add("p10", shape_of(KeyShape::Kind::time), false);
  add("p90", shape_of(KeyShape::Kind::time), false);
  add("runs", count_shape(positive_range), false);
}

KeyShape FieldKeys::tile_shape(const TileSides& sides) {
  FieldKeys tile;
  tile.count(sides.first, 0, tile_side);
  tile.count(sides.second, 0, tile_side);
  return map_shape(tile.take());
}

KeyShape FieldKeys::range_of(const KeyShape& bound) {
  FieldKeys range;
  range.add("least", bound);
  range.add("most", bound);
  return map_shape(range.take());
}

// "an attention curve" and "'gemm'" as names.
std::string FieldKeys::definition_of(std::string_view what) {
  for (const std::string_view article : {"the ", "an ", "a "}) {
    if (!what.starts_with(article)) continue;
    what.remove_prefix(article.size());
    break;
  }
  std::string name(what);
  std::erase(name, '\'');
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

}  // namespace hdpsim
