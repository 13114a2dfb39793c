#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/document/json.h"
#include "sim/results/table_sink.h"

namespace hdpsim {

/// A figure of a result, declared once: the CSV tables, Python, result.json, its schema and the page of columns come
/// from this and from the function that reads the figure off a row.
struct FigureText {
  std::string column{};    ///< Its name in tables; empty: it has no column.
  std::string path{};      ///< Its dotted place in the JSON of a row; empty: it is not there.
  std::string unit{};      ///< "s", "tokens"; of a Duration, Bytes and a Bandwidth the type says it.
  std::string sentence{};  ///< What it is, in Markdown.
};

/// A figure as the JSON of a row has it.
struct FigurePlace {
  std::string path;
  Json schema;               ///< Of its value.
  bool required = true;      ///< Whether the object that it stands in always has it.
  bool in_every_row = true;  ///< Whether every row has it, or the outermost object that it stands in.
};

/// The value of a figure in all outputs: a Duration in seconds, Bytes in GB, a Bandwidth in GB/s; null if it is empty.
template <class Value>
Json figure_value(const Value& value) {
  if constexpr (std::is_same_v<Value, Duration>) {
    return seconds_of(value);
  } else if constexpr (std::is_same_v<Value, Bytes>) {
    return value.gigabytes();
  } else {
    return Json(value);
  }
}
template <class Value>
Json figure_value(const std::optional<Value>& value) {
  return value ? figure_value(*value) : Json();
}

/// What is known of a figure from the type of its value.
template <class Value>
struct FigureType {
  static std::string_view unit() {
    if constexpr (std::is_same_v<Value, Duration>) return "s";
    if constexpr (std::is_same_v<Value, Bytes>) return "GB";
    return "";
  }
  static Json schema() {
    if constexpr (std::is_same_v<Value, Json>) {
      return {{"type", "object"}};
    } else if constexpr (std::is_same_v<Value, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      return {{"type", "array"}, {"items", {{"type", "string"}}}};
    } else if constexpr (std::is_convertible_v<Value, std::string_view>) {
      return {{"type", "string"}};
    } else {
      return {{"type", std::is_integral_v<Value> ? "integer" : "number"}, {"minimum", 0}};
    }
  }
};
template <class Value>
struct FigureType<std::optional<Value>> {
  static std::string_view unit() { return FigureType<Value>::unit(); }
  static Json schema() {
    Json schema = FigureType<Value>::schema();
    schema["type"] = {schema["type"], "null"};
    return schema;
  }
};

/// The schema of an object that has no figures yet.
[[nodiscard]] Json object_shape(bool may_be_null);
/// Puts a value at a dotted path of an object, and makes the objects on the way.
void put_at(Json& object, std::string_view path, Json value);
/// The object with some of its members first, in the order of their names.
[[nodiscard]] Json in_order(Json object, const std::vector<std::string>& first);
/// The schema of the object that has these figures at their places.
[[nodiscard]] Json object_schema(const std::vector<FigurePlace>& places);
/// Puts a value into one cell of a table.
void write_cell(const Json& value, TableSink& sink);

}  // namespace hdpsim
