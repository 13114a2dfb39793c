#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sim/document/document.h"

namespace hdpsim {

/// One item of a list that is a value of a document's outermost map; `so_far` holds the entries that stand before the
/// list. Returns whether it takes the item: the document is then built without it.
using TakeItem = std::function<bool(const Value& so_far, std::string_view key, const Value& item)>;

/// As parse_document() for JSON, without holding in memory the items that `take` takes: lists of any length can be
/// read. 400,000 values may be left, and none may be longer than longest_line (limits.h). Returns nothing, with nothing reported, if the text is no JSON: it may be YAML.
/// Some items may have been taken by then. Text too large for YAML (2 MB) is reported instead, with line and column.
[[nodiscard]] std::optional<Value> parse_json(const std::string& file, const std::string& text, const TakeItem& take,
                                              Diagnostics& diagnostics);

/// What a file says on its outermost level: there, lists of JSON documents come back empty, and what follows the first
/// list behind `schema`, or 400,000 items, is left out. Otherwise as load_document().
[[nodiscard]] Value load_outline(const std::string& path, Diagnostics& diagnostics);

}  // namespace hdpsim
