#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/document/key_table.h"
#include "sim/report/figure.h"

namespace hdpsim {

/// What all figures of a part of a row have in common.
struct PartText {
  std::string columns = "{}";    ///< Their columns, where {} stands for the name of each: "step_time_{}_s".
  std::string sentences = "{}";  ///< Their sentences, where {} stands for that of each: "{} of the step times".
  std::string path{};            ///< The object that they stand in; empty: that of the row.
  std::string unit{};            ///< The unit of those that state none.
  std::string object{};          ///< What that object is; may be empty.
};

/// What the JSON of a row has in place of a part that the row does not have. A part that is left out has no columns
/// either, unless another row of the table has it; one that is blank, of the row's own object, has empty cells.
enum class Missing { null, left_out, blank };

/// The figures of one kind of row, each declared once with what it is read from, in the order of their columns. It is
/// to what is written as KeyTable is to what is read.
template <class Row>
class FigureTable {
 public:
  using Where = std::function<bool(const Row&)>;

  /// Declares a figure, which `get` reads off a row: with at(), or any function. The type of what it returns decides
  /// how it is written (figure_value()). If `where` is given, rows for which it does not hold leave the figure out, and
  /// a table has the column only if it holds for one of its rows. Rows for which `in_json` does not hold have the cell
  /// alone.
  template <class Get>
  void add(FigureText text, Get get, Where where = {}, Where in_json = {}) {
    using Type = FigureType<std::remove_cvref_t<std::invoke_result_t<Get, const Row&>>>;
    if (text.unit.empty()) text.unit = std::string(Type::unit());
    const auto value = [get](const Row& row) { return figure_value(get(row)); };
    Entry& entry =
        entries_.emplace_back(Entry{std::move(text), Type::schema(), !where && !in_json, !where, where, value});
    entry.in_json = std::move(in_json);
  }

  /// Names of the objects of rows in the order in which they stand, where that is not the order of the declarations;
  /// those that are not given follow.
  void order_json(std::vector<std::string> names) { json_order_ = std::move(names); }

  /// Declares a figure that is a list of objects; it has no column.
  template <class Item, class Get>
  void list(FigureText text, FigureTable<Item> items, Get get) {
    FigureJson schema = {{"type", "array"}, {"items", items.schema()}};
    std::vector<FigureText> texts = items.texts();
    for (FigureText& each : texts) each.path = fmt::format("{}[].{}", text.path, each.path);
    const auto value = [items = std::move(items), get](const Row& row) {
      FigureJson list = FigureJson::array();
      for (const Item& item : get(row)) list.push_back(items.json(item));
      return list;
    };
    entries_.push_back({std::move(text), std::move(schema), true, true, {}, value, false, std::move(texts)});
  }

  /// Declares all figures of a part of the row. `get` returns the part, or an optional one.
  template <class Part, class Get>
  void part(const PartText& text, const FigureTable<Part>& figures, Get get, Missing missing = Missing::left_out) {
    constexpr bool is_always_there = std::is_same_v<std::remove_cvref_t<std::invoke_result_t<Get, const Row&>>, Part>;
    const auto part_of = [get](const Row& row) -> const Part* {
      if constexpr (is_always_there) {
        return &get(row);
      } else {
        return get(row) ? &*get(row) : nullptr;
      }
    };
    const bool may_be_left_out = !is_always_there && missing == Missing::left_out;
    const bool in_every_row = is_always_there || missing != Missing::blank;
    const Where is_there = [part_of](const Row& row) { return part_of(row) != nullptr; };
    if (!text.path.empty()) add_object(text, may_be_left_out ? is_there : Where{}, is_there, is_always_there);
    for (const auto& each : figures.entries_) {
      const Where where = [part_of, inner = each.where](const Row& row) {
        const Part* part = part_of(row);
        return part != nullptr && (!inner || inner(*part));
      };
      const auto value = [part_of, inner = each.value](const Row& row) { return inner(*part_of(row)); };
      std::vector<FigureText> items = each.items;
      for (FigureText& item : items) item = joined(text, item);
      entries_.push_back({joined(text, each.text), each.schema, each.is_required, each.has_column && !may_be_left_out,
                          where, value, each.is_object, std::move(items), in_every_row && each.in_every_row});
      if (!each.in_json) continue;
      entries_.back().in_json = [part_of, inner = each.in_json](const Row& row) {
        const Part* part = part_of(row);
        return part != nullptr && inner(*part);
      };
    }
  }

  /// The figures that have a column in a table of these rows.
  [[nodiscard]] std::vector<std::size_t> columns_of(const std::vector<Row>& rows) const {
    std::vector<std::size_t> columns;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      if (entry.text.column.empty()) continue;
      if (entry.has_column || std::any_of(rows.begin(), rows.end(), entry.where)) columns.push_back(i);
    }
    return columns;
  }
  /// The names of these columns, or of all that a table always has.
  void write_names(const std::vector<std::size_t>& columns, TableSink& sink) const {
    for (const std::size_t column : columns) sink.text(entries_[column].text.column);
  }
  void write_cells(const Row& row, const std::vector<std::size_t>& columns, TableSink& sink) const {
    for (const std::size_t column : columns) write_cell(entries_[column].of(row), sink);
  }

  void write_names(TableSink& sink) const { write_names(columns_of({}), sink); }
  void write_cells(const Row& row, TableSink& sink) const { write_cells(row, columns_of({}), sink); }

  /// The figures of a row that have a path, as an object.
  [[nodiscard]] FigureJson json(const Row& row) const {
    FigureJson json = FigureJson::object();
    for (const Entry& entry : entries_) {
      if (entry.is_in_json(row)) put_at(json, entry.text.path, entry.value(row));
    }
    return json_order_.empty() ? json : in_order(std::move(json), json_order_);
  }
  /// The JSON schema of that object.
  [[nodiscard]] FigureJson schema() const {
    std::vector<FigurePlace> places;
    for (const Entry& entry : entries_) {
      if (entry.text.path.empty()) continue;
      FigureJson schema = FigureJson::object();
      if (!entry.text.sentence.empty()) schema["description"] = entry.text.sentence;
      schema.update(entry.schema);
      places.push_back({entry.text.path, std::move(schema), entry.is_required, entry.in_every_row});
    }
    return object_schema(places);
  }
  /// The outermost names of that object which all rows have that are not blank (Missing).
  [[nodiscard]] std::vector<std::string> names_unless_blank() const {
    std::vector<std::string> names;
    std::vector<std::string> left_out;
    for (const Entry& entry : entries_) {
      const std::string& path = entry.text.path;
      const std::string name = path.substr(0, path.find('.'));
      if (entry.in_every_row || name.empty()) continue;
      if (path == name && !entry.is_required) left_out.push_back(name);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    std::erase_if(names, [&](const std::string& name) {
      return std::find(left_out.begin(), left_out.end(), name) != left_out.end();
    });
    return names;
  }
  /// What is declared of the figures, in their order; a list stands before the figures of its items.
  [[nodiscard]] std::vector<FigureText> texts() const {
    std::vector<FigureText> texts;
    for (const Entry& entry : entries_) {
      if (!entry.is_object) texts.push_back(entry.text);
      texts.insert(texts.end(), entry.items.begin(), entry.items.end());
    }
    return texts;
  }

 private:
  template <class>
  friend class FigureTable;

  struct Entry {
    FigureText text;
    FigureJson schema;
    bool is_required = true;  ///< Whether its object always has it.
    bool has_column = true;   ///< Whether a table has its column whatever its rows are.
    Where where;              ///< Empty: all rows have it.
    std::function<FigureJson(const Row&)> value;
    bool is_object = false;           ///< The object of a part, in which the following figures stand.
    std::vector<FigureText> items{};  ///< Of a list: the figures of its items.
    bool in_every_row = true;         ///< Whether no part that it stands in may be blank.
    Where in_json{};                  ///< Empty: the JSON of all rows that have it has it.

    [[nodiscard]] bool is_in(const Row& row) const { return !where || where(row); }
    [[nodiscard]] bool is_in_json(const Row& row) const {
      return !text.path.empty() && is_in(row) && (!in_json || in_json(row));
    }
    [[nodiscard]] FigureJson of(const Row& row) const { return is_in(row) ? value(row) : FigureJson(); }
  };

  void add_object(const PartText& text, Where where, Where is_there, bool is_always_there) {
    const bool may_be_null = !is_always_there && !where;
    const auto value = [is_there = std::move(is_there)](const Row& row) {
      return is_there(row) ? FigureJson::object() : FigureJson();
    };
    const bool is_required = !where;
    entries_.push_back({{.path = text.path, .sentence = text.object},
                        object_shape(may_be_null),
                        is_required,
                        false,
                        std::move(where),
                        value,
                        true});
  }

  static FigureText joined(const PartText& part, const FigureText& own) {
    FigureText text = own;
    if (!own.column.empty()) text.column = fmt::format(fmt::runtime(part.columns), own.column);
    if (!own.path.empty() && !part.path.empty()) text.path = fmt::format("{}.{}", part.path, own.path);
    if (own.unit.empty()) text.unit = part.unit;
    text.sentence = fmt::format(fmt::runtime(part.sentences), own.sentence);
    return text;
  }

  std::vector<Entry> entries_;
  std::vector<std::string> json_order_;
};

}  // namespace hdpsim
