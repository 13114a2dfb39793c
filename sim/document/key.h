#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/reader.h"

namespace hdpsim {

struct KeyText;

/// The values that a key may have, as far as people and the JSON schema are told: its reader may refuse more.
struct KeyShape {
  enum class Kind : std::uint8_t {
    anything,
    nothing,    ///< the key without a value
    flag,       ///< true or false
    number,     ///< 0.75
    count,      ///< a whole number, also as 256Ki or 100M
    time,       ///< a quantity with its unit, as the next three
    bytes,      ///< an amount: `64 MiB`
    bandwidth,  ///< a rate: `50 GB/s`
    flop_rate,  ///< an arithmetic speed: `312 TFLOP/s`
    text,
    word,        ///< one of `words`
    list,        ///< of values like the only one of `parts`
    map,         ///< of `keys`
    dictionary,  ///< a map whose keys are the user's, of values like the only one of `parts`
    either,      ///< one of `parts`
  };

  Kind kind = Kind::anything;
  std::string limits;          ///< "from 1 to 65536", for a number or a quantity; empty: as the unit says.
  std::optional<Range> range;  ///< The same limits as numbers, for a count or a number.
  std::string unit;            ///< What a count counts: "tokens".
  std::vector<std::string> words;
  std::vector<KeyShape> parts;
  std::vector<KeyText> keys;
  bool open = false;       ///< A map may have other keys too, which are not for the schema to know.
  bool single = false;     ///< A map has exactly one of its keys.
  std::string definition;  ///< The schema has it once, under this name; one with a dot is another schema's file.

  /// The shape for people, in Markdown: "true or false", "`fp32` or `bf16`", "`auto`, or tokens from 1 to 1Gi".
  [[nodiscard]] std::string text() const;
};

[[nodiscard]] KeyShape shape_of(KeyShape::Kind kind);
[[nodiscard]] KeyShape count_shape(const Range& range, std::string unit = {});
[[nodiscard]] KeyShape number_shape(const Range& range);
[[nodiscard]] KeyShape word_shape(std::vector<std::string> words);
[[nodiscard]] KeyShape list_shape(KeyShape item);
[[nodiscard]] KeyShape either_shape(std::vector<KeyShape> parts);
[[nodiscard]] KeyShape map_shape(std::vector<KeyText> keys);
[[nodiscard]] KeyShape dictionary_shape(KeyShape value);
/// The same, which the schema defines once under a name.
[[nodiscard]] KeyShape defined(std::string name, KeyShape shape);

/// For KeyNotes::written: the default is always written.
inline bool always_written(const Value& /*study*/) {
  return true;
}

/// What the declaration of a key says besides its name, its values and its sentence.
struct KeyNotes {
  std::string_view unit = {};    ///< What a count counts.
  bool required = false;         ///< Whether a map without the key is refused.
  std::string_view otherwise{};  ///< What holds where the key is left out, in words, if no value says the same.
  /// Whether resolving a study writes the default into it where the key is left out; null: never.
  bool (*written)(const Value& study) = nullptr;
  /// Under which condition only the default is known: "with experts". Empty: all values always are.
  std::string_view fixed{};
  std::string_view see{};        ///< The section of the README beside the files that says more, as its anchor.
  std::string_view mechanism{};  ///< The name by which `--without` turns off what the key asks for, by setting
  std::string_view off{};        ///< this value.
  std::string_view formerly{};   ///< The path at which older files state it, which is still read: "mesh.dropout".
};

/// A key of a map, declared once: the reader, the defaults, unknown-key suggestions, the JSON schema and the reference
/// page come from this.
struct KeyText {
  std::string name;
  KeyShape shape;
  std::string fallback;  ///< The default, as a file would write it; may be empty.
  std::string sentence;  ///< What the key means, in Markdown; empty for another way to write a key that has a sentence.
  KeyNotes notes;
};

}  // namespace hdpsim
