#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sim/document/document.h"

namespace hdpsim {

/// Consumes items of top-level lists, one by one: `so_far` holds the entries before the list. An item for which it
/// returns true is not stored in the document.
using TakeItem = std::function<bool(const Value& so_far, std::string_view key, const Value& item)>;

/// Works as parse_document() does, for JSON, but does not store the items that `take` consumes, so that lists of any
/// length can be read. At most 400,000 values may remain, and none may be longer than longest_line (limits.h).
/// Empty, with nothing reported, if the text is not JSON: it may be YAML. Some items may have been consumed by then.
/// Text too large for YAML (2 MB) is reported instead, with line and column.
[[nodiscard]] std::optional<Value> parse_json(const std::string& file, const std::string& text, const TakeItem& take,
                                              Diagnostics& diagnostics);

/// The outermost level of a file: for JSON, lists there come back empty, and everything behind `schema` is left out
/// from the first list on or after 400,000 items. Otherwise works as load_document() does.
[[nodiscard]] Value load_outline(const std::string& path, Diagnostics& diagnostics);

}  // namespace hdpsim
