#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/document/json.h"
#include "sim/document/key_table.h"
#include "sim/results/figure.h"

namespace hdpsim {

/// A member of what a row points at: through(&RunLink::link, &LinkUse::name).
template <class Pointer, class... Members>
auto through(Pointer pointer, Members... members) {
  return [ pointer, member = at(members...) ](const auto& row) -> const auto& {
    return member(*(row.*pointer));
  };
}

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

/// The figures of rows of any type: a row is a pointer to one of the type that the callers agree on. FigureTable is
/// what has a type; what follows does not depend on it, and is compiled once.
class FigureList {
 public:
  using Where = std::function<bool(const void* row)>;
  using Part = std::function<const void*(const void* row)>;  ///< Null: the row has none.

  struct Entry {
    FigureText text;
    Json schema;
    std::function<Json(const void* row)> value;
    Where where{};                    ///< Empty: all rows have it.
    Where in_json{};                  ///< Empty: the JSON of all rows that have it has it.
    bool is_required = true;          ///< Whether its object always has it.
    bool has_column = true;           ///< Whether a table has its column whatever its rows are.
    bool is_object = false;           ///< The object of a part, in which the following figures stand.
    bool in_every_row = true;         ///< Whether no part that it stands in may be blank.
    std::vector<FigureText> items{};  ///< Those of the items of a list.

    [[nodiscard]] bool is_in(const void* row) const { return !where || where(row); }
    [[nodiscard]] bool is_in_json(const void* row) const {
      return !text.path.empty() && is_in(row) && (!in_json || in_json(row));
    }
  };

  void add(Entry entry) { entries_.push_back(std::move(entry)); }
  /// All figures of a part, which each row has if `is_always_there`.
  void add_part(const PartText& text, const FigureList& figures, const Part& part_of, bool is_always_there,
                Missing missing);
  void order_json(std::vector<std::string> names) { json_order_ = std::move(names); }

  [[nodiscard]] std::vector<std::size_t> columns_of(const std::vector<const void*>& rows) const;
  void write_names(const std::vector<std::size_t>& columns, TableSink& sink) const;
  void write_cells(const void* row, const std::vector<std::size_t>& columns, TableSink& sink) const;
  [[nodiscard]] Json json(const void* row) const;
  [[nodiscard]] Json schema() const;
  [[nodiscard]] std::vector<std::string> names_unless_blank() const;
  [[nodiscard]] std::vector<FigureText> texts() const;

 private:
  std::vector<Entry> entries_;
  std::vector<std::string> json_order_;
};

/// The figures of one kind of row, each declared once with what it is read from, in the order of their columns. It is
/// to what is written as KeyTable is to what is read.
template <class Row>
class FigureTable {
 public:
  using Where = std::function<bool(const Row&)>;

  FigureTable() = default;
  /// With the figures that `declare` adds.
  template <class Declare>
  requires std::is_invocable_v<Declare, FigureTable&>
  explicit FigureTable(const Declare& declare) { declare(*this); }

  /// Declares a figure, which `get` reads off a row: with at(), or any function. The type of what it returns decides
  /// how it is written (figure_value()). If `where` is given, rows for which it does not hold leave the figure out, and
  /// a table has the column only if it holds for one of its rows. Rows for which `in_json` does not hold have the cell
  /// alone.
  template <class Get>
  void add(FigureText text, Get get, Where where = {}, Where in_json = {}) {
    using Type = FigureType<std::remove_cvref_t<std::invoke_result_t<Get, const Row&>>>;
    if (text.unit.empty()) text.unit = std::string(Type::unit());
    const auto value = [get](const void* row) { return figure_value(get(row_at(row))); };
    figures_.add({.text = std::move(text),
                  .schema = Type::schema(),
                  .value = value,
                  .where = untyped(where),
                  .in_json = untyped(in_json),
                  .is_required = !where && !in_json,
                  .has_column = !where});
  }

  /// Names of the objects of rows in the order in which they stand, where that is not the order of the declarations;
  /// those that are not given follow.
  void order_json(std::vector<std::string> names) { figures_.order_json(std::move(names)); }

  /// Declares a figure that is a list of objects; it has no column.
  template <class Item, class Get>
  void list(FigureText text, FigureTable<Item> items, Get get) {
    Json schema = {{"type", "array"}, {"items", items.schema()}};
    std::vector<FigureText> texts = items.texts();
    for (FigureText& each : texts) each.path = fmt::format("{}[].{}", text.path, each.path);
    const auto value = [items = std::move(items), get](const void* row) { return items.json_list(get(row_at(row))); };
    figures_.add({.text = std::move(text), .schema = std::move(schema), .value = value, .items = std::move(texts)});
  }

  /// Declares all figures of a part of the row. `get` returns the part, or an optional one.
  template <class Part, class Get>
  void part(const PartText& text, const FigureTable<Part>& figures, Get get, Missing missing = Missing::left_out) {
    constexpr bool is_always_there = std::is_same_v<std::remove_cvref_t<std::invoke_result_t<Get, const Row&>>, Part>;
    const auto part_of = [get](const void* row) -> const void* {
      if constexpr (is_always_there) {
        return &get(row_at(row));
      } else {
        const auto& part = get(row_at(row));
        return part ? &*part : nullptr;
      }
    };
    figures_.add_part(text, figures.figures_, part_of, is_always_there, missing);
  }

  /// The figures that have a column in a table of these rows.
  [[nodiscard]] std::vector<std::size_t> columns_of(const std::vector<Row>& rows) const {
    std::vector<const void*> all;
    all.reserve(rows.size());
    for (const Row& row : rows) all.push_back(&row);
    return figures_.columns_of(all);
  }
  /// The names of these columns, or of all that a table always has.
  void write_names(const std::vector<std::size_t>& columns, TableSink& sink) const {
    figures_.write_names(columns, sink);
  }
  void write_cells(const Row& row, const std::vector<std::size_t>& columns, TableSink& sink) const {
    figures_.write_cells(&row, columns, sink);
  }

  void write_names(TableSink& sink) const { write_names(figures_.columns_of({}), sink); }
  void write_cells(const Row& row, TableSink& sink) const { write_cells(row, figures_.columns_of({}), sink); }

  /// A whole table, of the columns that a table always has.
  void write(const std::vector<Row>& rows, TableSink& sink) const {
    write_names(sink);
    sink.end_row();
    for (const Row& row : rows) {
      write_cells(row, sink);
      sink.end_row();
    }
  }
  [[nodiscard]] std::string csv(const std::vector<Row>& rows) const {
    return csv_text([&](TableSink& sink) { write(rows, sink); });
  }

  /// The figures of a row that have a path, as an object; of rows, as a list of these.
  [[nodiscard]] Json json(const Row& row) const { return figures_.json(&row); }
  [[nodiscard]] Json json_list(const std::vector<Row>& rows) const {
    Json list = Json::array();
    for (const Row& row : rows) list.push_back(json(row));
    return list;
  }
  /// The JSON schema of that object.
  [[nodiscard]] Json schema() const { return figures_.schema(); }
  /// The outermost names of that object which all rows have that are not blank (Missing).
  [[nodiscard]] std::vector<std::string> names_unless_blank() const { return figures_.names_unless_blank(); }
  /// What is declared of the figures, in their order; a list stands before the figures of its items.
  [[nodiscard]] std::vector<FigureText> texts() const { return figures_.texts(); }

 private:
  template <class>
  friend class FigureTable;

  static const Row& row_at(const void* row) { return *static_cast<const Row*>(row); }
  static FigureList::Where untyped(const Where& where) {
    if (!where) return {};
    return [where](const void* row) { return where(row_at(row)); };
  }

  FigureList figures_;
};

}  // namespace hdpsim
