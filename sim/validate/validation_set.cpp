#include "sim/validate/validation_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/base/text.h"
#include "sim/document/key_table.h"
#include "sim/document/values.h"
#include "sim/validate/impl/case_reader.h"

namespace hdpsim {
namespace {

/// A set as its file states it.
struct SetText {
  ValidationSet set;
  const Value* study = nullptr;
  const Value* columns = nullptr;
  const Value* rows = nullptr;
  const Value* fitted = nullptr;
  const Value* speedup_over = nullptr;
};

const KeyTable<SetText>& set_keys() {
  static const auto made = [] {
    KeyTable<SetText> keys("a validation set");
    const KeyShape text = shape_of(KeyShape::Kind::text);
    KeyShape study = map_shape({});
    study.open = true;
    keys.text("name", at(&SetText::set, &ValidationSet::name), "for tables", {.required = true});
    keys.text("about", at(&SetText::set, &ValidationSet::about), "what was run, in a line", {.required = true});
    keys.text("source", at(&SetText::set, &ValidationSet::source), "where it was published", {.required = true});
    keys.word(
        "attention_flops", "a way to count attention",
        {{"half", CountedAttention::half}, {"full", CountedAttention::full}, {"none", CountedAttention::none}},
        at(&SetText::set, &ValidationSet::attention_flops),
        "what `tflops_per_gpu` and `mfu` count of attention: the half that a causal mask leaves, the whole square, "
        "or nothing; what is computed again never counts, and the peak is that of the data sheet in bf16");
    keys.kept({"study", study, "", "what all cases have in common, by the keys of a study", {.required = true}},
              &SetText::study);
    keys.kept(
        {"columns",
         list_shape(text),
         "",
         fmt::format("what the cells of a row are: `case`, a published figure (`{}`, followed by the plan if there are "
                     "several; times and memory may have a unit: `900 ms`, `66.55 GiB`), a part of a job of sequences "
                     "of one length (`{}`, `{}`; `mbs`, `gbs`, `vpp` and `seq` are understood, too), or a value of the "
                     "study by its dotted path",
                     joined(quantity_names(), "`, `"), joined(job_column_names(), "`, `"),
                     joined(plan_column_names(), "`, `")),
         {.required = true}},
        &SetText::columns);
    keys.kept({"rows",
               list_shape(list_shape(shape_of(KeyShape::Kind::anything))),
               "",
               "one case each, a cell a column; `~`: the default, or a figure that was not published",
               {.required = true}},
              &SetText::rows);
    keys.kept(
        {"fitted",
         dictionary_shape(list_shape(text)),
         "",
         "by column of figures, the cases to which a constant of the study was fitted: they are predicted, and do "
         "not count in the set's errors",
         {.otherwise = "none"}},
        &SetText::fitted);
    keys.kept({"speedup_over",
               dictionary_shape(shape_of(KeyShape::Kind::anything)),
               "",
               "what is unlike in the study over which speed-ups and savings are, by dotted path: "
               "`{mesh.nodes.choose: gpu_packing}`",
               {.otherwise = "nothing: they are over the plan of `compare_to`"}},
              &SetText::speedup_over);
    return keys;
  }();
  return made;
}

class SetReader {
 public:
  SetReader(Diagnostics& diagnostics, FigureUse use) : diagnostics_(diagnostics), use_(use) {}

  ValidationSet read(const Value& document) {
    SetText text;
    (void)set_keys().read(document, text, diagnostics_);
    auto& [set, study, columns, rows, fitted, speedup_over] = text;
    if (speedup_over != nullptr) set.speedup_over = *speedup_over;
    if (speedup_over != nullptr && (!speedup_over->is_map() || speedup_over->entries.empty())) {
      diagnostics_.error(speedup_over->position, "'speedup_over' must be a map of values by dotted path",
                         "speedup_over: {mesh.nodes.choose: gpu_packing}");
    }
    if (study != nullptr && !study->is_map()) {
      diagnostics_.error(study->position, "the study must be a map of what all cases have in common");
    }
    if (study == nullptr || columns == nullptr || rows == nullptr || !study->is_map()) {
      return std::move(set);
    }
    read_columns(*columns, *study);
    Value base = *study;
    base.set("name", Value::scalar(set.name, study->position));
    read_rows(*columns, *rows, base, set);
    if (fitted != nullptr && use_ == FigureUse::published) mark_fitted(*fitted, set);
    return std::move(set);
  }

 private:
  void read_columns(const Value& columns, const Value& study) {
    if (!columns.is_sequence() || columns.items.empty()) {
      diagnostics_.error(columns.position, "the columns must be a list of names");
      return;
    }
    const Value* plans = study.find("plans");
    const bool one_plan = plans != nullptr && plans->items.size() == 1;
    std::set<std::string> names;
    for (const Value& title : columns.items) {
      Diagnostics unknown;
      const Column& column = table_.columns.emplace_back(column_of(title, unknown));
      table_.is_known = table_.is_known && unknown.empty();
      diagnostics_.append(unknown);
      if (!names.insert(column.path.empty() ? column.name : column.path).second) {
        diagnostics_.error(title.position, fmt::format("the column '{}' is stated a second time here", column.name));
      }
      if (column.figure && column.plan.empty() && !one_plan) {
        diagnostics_.error(title.position, fmt::format("of which plan is '{}'?", title.text),
                           fmt::format("write it behind the figure: {} static", title.text));
      }
    }
    if (use_ == FigureUse::to_measure) find_figures_to_measure(columns, one_plan);
  }

  // One a plan: its step time or rate, whichever column comes first.
  void find_figures_to_measure(const Value& columns, bool one_plan) {
    for (const Column& column : table_.columns) {
      if (column.figure != Quantity::step_time && column.figure != Quantity::tokens_per_s_per_gpu) continue;
      const bool is_new = std::none_of(table_.to_measure.begin(), table_.to_measure.end(),
                                       [&](const PublishedFigure& known) { return known.plan == column.plan; });
      if (is_new) table_.to_measure.push_back({*column.figure, column.plan, 1});
    }
    if (!table_.to_measure.empty()) return;
    if (!one_plan) {
      diagnostics_.error(columns.position, "no column says of which plan a step would be measured",
                         "add one with empty cells: step_time_s static");
    }
    table_.to_measure.push_back({Quantity::step_time, {}, 1});
  }

  void read_rows(const Value& columns, const Value& rows, const Value& study, ValidationSet& set) {
    if (!rows.is_sequence() || rows.items.empty()) {
      diagnostics_.error(rows.position, "the rows must be a list that is not empty");
      return;
    }
    if (table_.columns.empty() || !have_all_cells(columns, rows.items, "row", diagnostics_)) return;
    table_.constant = constant_columns(rows);
    std::set<std::string> names;
    for (const Value& row : rows.items) {
      set.cases.push_back(read_case(table_, row, study, diagnostics_));
      if (!names.insert(set.cases.back().name).second && table_.is_known) {
        diagnostics_.error(row.position,
                           fmt::format("the case '{}' is stated a second time here", set.cases.back().name));
      }
    }
  }

  void mark_fitted(const Value& fitted, ValidationSet& set) {
    if (!fitted.is_map()) {
      diagnostics_.error(fitted.position, "'fitted' must be a map of columns, each with a list of cases",
                         "fitted: {speedup hdp-balance: [byted 256Ki]}");
    }
    for (const auto& [named, position, cases] : fitted.entries) {
      const std::string& name = named;  // which lambdas may capture
      const auto column = std::find_if(table_.columns.begin(), table_.columns.end(),
                                       [&](const Column& one) { return one.name == name; });
      if (column == table_.columns.end() || !column->figure) {
        std::vector<std::string> known;
        for (const Column& one : table_.columns) {
          if (one.figure) known.push_back(one.name);
        }
        diagnostics_.error(position, fmt::format("there is no column of figures '{}'", name), suggestion(name, known));
        continue;
      }
      if (!cases.is_sequence()) diagnostics_.error(cases.position, "the cases must be a list of their names");
      for (const Value& one : cases.items) mark_fitted(*column, one, set);
    }
  }

  void mark_fitted(const Column& column, const Value& name, ValidationSet& set) {
    for (ValidationCase& one : set.cases) {
      if (one.name != name.text) continue;
      for (PublishedFigure& figure : one.published) {
        if (figure.quantity != column.figure || figure.plan != column.plan) continue;
        figure.fitted = true;
        return;
      }
    }
    diagnostics_.error(name.position,
                       fmt::format("no figure '{}' of a case '{}' was published", column.name, name.text),
                       suggestion(name.text, case_names(set)));
  }

  static std::vector<std::string> case_names(const ValidationSet& set) {
    std::vector<std::string> names;
    for (const ValidationCase& one : set.cases) names.push_back(one.name);
    return names;
  }

  // Columns whose cells are the same in all rows, unless there is only one row.
  [[nodiscard]] std::set<std::string> constant_columns(const Value& rows) const {
    std::set<std::string> constant;
    for (std::size_t i = 0; i < table_.columns.size() && rows.items.size() > 1; ++i) {
      const std::string first = line_of(rows.items.front().items[i]);
      const bool same = std::all_of(rows.items.begin(), rows.items.end(),
                                    [&](const Value& row) { return line_of(row.items[i]) == first; });
      if (same) constant.insert(table_.columns[i].name);
    }
    return constant;
  }

  Diagnostics& diagnostics_;
  FigureUse use_;
  SetTable table_;
};

}  // namespace

const std::vector<KeyText>& validation_keys() {
  return set_keys().texts();
}

std::optional<ValidationSet> load_validation_set(const std::string& path, Diagnostics& diagnostics, FigureUse use) {
  Diagnostics found;
  const Value document = load_document(path, found);
  diagnostics.append(found);
  if (!found.empty()) return std::nullopt;
  return read_validation_set(document, diagnostics, use);
}

std::optional<ValidationSet> read_validation_set(const Value& document, Diagnostics& diagnostics, FigureUse use) {
  Diagnostics found;
  ValidationSet set = SetReader(found, use).read(document);
  diagnostics.append(found);
  if (!found.empty()) return std::nullopt;
  return set;
}

}  // namespace hdpsim
