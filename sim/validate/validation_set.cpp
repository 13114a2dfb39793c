#include "sim/validate/validation_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/text.h"
#include "sim/document/key_table.h"
#include "sim/document/values.h"
#include "sim/study/override.h"

namespace hdpsim {
namespace {

constexpr Range lengths{1, limits::most_tokens_of_sequence};
constexpr Range sequences{1, 1e6};
constexpr Range degrees{1, 32768};  // the product of four fits into 64 bits

/// The columns that describe how a plan spreads a job; all others describe the job.
constexpr std::array<std::string_view, 9> plan_columns = {
    "tp", "pp", "dp", "cp", "micro_batch", "virtual_stages", "recompute", "sequence_parallel", "gpus_per_node"};
constexpr std::array<std::string_view, 3> job_columns = {"model", "sequence", "global_batch"};
/// What frameworks call some of them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> short_names = {
    {{"mbs", "micro_batch"}, {"gbs", "global_batch"}, {"vpp", "virtual_stages"}, {"seq", "sequence"}}};

bool is_one_of(std::string_view word, const auto& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

struct Column {
  std::string name;
  Position position;
  std::optional<Quantity> figure;
  std::string plan;
};

std::vector<std::string> known_columns() {
  std::vector<std::string> known = quantity_names();
  known.emplace_back("case");
  for (const auto name : plan_columns) known.emplace_back(name);
  for (const auto name : job_columns) known.emplace_back(name);
  return known;
}

Column column_of(const Value& title, Diagnostics& diagnostics) {
  Column column{title.text, title.position, {}, {}};
  column.figure = quantity_of(title.text);
  if (column.figure) {
    const auto space = title.text.find(' ');
    if (space != std::string::npos) column.plan = title.text.substr(space + 1);
    return column;
  }
  for (const auto& [word, name] : short_names) {
    if (word == title.text) column.name = name;
  }
  const std::vector<std::string> known = known_columns();
  if (!is_one_of(column.name, known) && title.text.find('.') == std::string::npos) {
    diagnostics.error(title.position, fmt::format("there is no column '{}'", title.text),
                      suggestion(title.text, known));
  }
  return column;
}

/// Reads the cells of one row into a case.
class CaseReader {
 public:
  /// `to_measure` are the figures of a case that could be measured; empty: its cells have them.
  CaseReader(const std::vector<Column>& columns, const std::set<std::string>& constant, const Value& row, Value study,
             const std::vector<PublishedFigure>& to_measure, Diagnostics& diagnostics)
      : columns_(columns), constant_(constant), row_(row), to_measure_(to_measure), diagnostics_(diagnostics) {
    case_.study = std::move(study);
  }

  ValidationCase read() {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Value& cell = row_.items[i];
      if (!cell.is_null()) take(columns_[i], cell);
    }
    if (cell("sequence") != nullptr || cell("global_batch") != nullptr) fixed_lengths();
    if (case_.name.empty()) case_.name = joined(words_, " ");
    if (!to_measure_.empty()) case_.published = to_measure_;
    if (case_.published.empty()) diagnostics_.error(row_.position, "nothing was published of this case");
    return std::move(case_);
  }

 private:
  void take(const Column& column, const Value& cell) {
    if (column.figure) return figure(column, cell);
    if (column.name == "case") {
      case_.name = cell.text;
      return;
    }
    if (!constant_.contains(column.name)) words_.push_back(word(column.name, cell));
    if (column.name.find('.') != std::string::npos) {
      put_at(case_.study, column.name, cell, diagnostics_);
    } else if (column.name == "model") {
      put_at(case_.study, "model.preset", cell, diagnostics_);
    } else if (column.name == "recompute") {
      if (cell.text != "none") put_at(case_.study, "mesh.recompute", cell, diagnostics_);
    } else if (column.name == "sequence_parallel") {
      put_at(case_.study, "mesh.sequence_parallel", cell, diagnostics_);
    }
    if (!is_one_of(column.name, plan_columns)) job_.push_back(word(column.name, cell));
    if (column.name != "global_batch") line_.push_back(word(column.name, cell));
  }

  void figure(const Column& column, const Value& cell) {
    const auto value = read_figure(*column.figure, column.name, cell, diagnostics_);
    case_.published.push_back({*column.figure, column.plan, value.value_or(1)});
  }

  // A job of sequences of one length: turns its batch into packs of one micro-batch each, and its degrees into a mesh.
  void fixed_lengths() {
    const std::int64_t sequence = count("sequence", lengths, 0);
    const std::int64_t global_batch = count("global_batch", sequences, 0);
    const std::int64_t micro_batch = count("micro_batch", sequences, 1);
    const std::int64_t tp = count("tp", degrees, 1);
    const std::int64_t pp = count("pp", degrees, 1);
    const std::int64_t dp = count("dp", degrees, 1);
    const std::int64_t cp = count("cp", degrees, 1);
    const std::int64_t virtual_stages = count("virtual_stages", degrees, 1);
    if (cell("sequence") == nullptr || cell("global_batch") == nullptr) {
      diagnostics_.error(row_.position, "a job of sequences of one length needs 'sequence' and 'global_batch'");
    }
    if (sequence == 0 || global_batch == 0) return;  // which was reported
    if (global_batch % (micro_batch * dp) != 0) {
      diagnostics_.error(position("global_batch"),
                         fmt::format("{} sequences are no multiple of {} = {} a micro-batch x {} replicas",
                                     global_batch, micro_batch * dp, micro_batch, dp),
                         "every replica trains the same number of whole micro-batches");
    }
    const std::int64_t context = sequence * micro_batch;
    put("data.lengths.fixed", sequence, "sequence");
    put("data.context", context, "sequence");
    put("data.tokens_per_step", sequence * global_batch, "global_batch");
    put("data.steps", 1, "sequence");
    put("mesh.tp", tp, "tp");
    put("mesh.pp", pp, "pp");
    put("mesh.hdp", dp * cp, "dp");
    put("mesh.capacity", (context + cp - 1) / cp, "sequence");
    put("cluster.gpus", tp * pp * dp * cp, "dp");
    if (virtual_stages > 1) {
      put("mesh.virtual_stages", virtual_stages, "virtual_stages");
      put_at(case_.study, "mesh.schedule", Value::scalar("interleaved", position("virtual_stages")), diagnostics_);
    }
    if (cell("gpus_per_node") != nullptr) {
      put("cluster.node.gpus", count("gpus_per_node", degrees, 1), "gpus_per_node");
      put("cluster.node.nics.count", count("gpus_per_node", degrees, 1), "gpus_per_node");
    }
    case_.job = fmt::format("{} gpus {}", joined(job_, " "), tp * pp * dp * cp);
    case_.line = joined(line_, " ");
    case_.micro_batches = static_cast<double>(global_batch) / static_cast<double>(dp * micro_batch);
  }

  [[nodiscard]] const Value* cell(std::string_view name) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].name == name && !row_.items[i].is_null()) return &row_.items[i];
    }
    return nullptr;
  }

  [[nodiscard]] Position position(std::string_view name) const {
    const Value* found = cell(name);
    return found == nullptr ? row_.position : found->position;
  }

  std::int64_t count(std::string_view name, Range range, std::int64_t fallback) {
    const Value* found = cell(name);
    if (found == nullptr) return fallback;
    return read_in<std::int64_t>(*found, fmt::format("'{}'", name), range, diagnostics_).value_or(fallback);
  }

  // Puts a value at the position of its cell `from`, so that problems with it point there.
  void put(const std::string& path, std::int64_t value, std::string_view from) {
    put_at(case_.study, path, Value::scalar(std::to_string(value), position(from)), diagnostics_);
  }

  static std::string word(const std::string& column, const Value& cell) {
    if (column == "model") return cell.text;
    return fmt::format("{} {}", column.substr(column.rfind('.') + 1), line_of(cell));
  }

  const std::vector<Column>& columns_;
  const std::set<std::string>& constant_;
  const Value& row_;
  const std::vector<PublishedFigure>& to_measure_;
  Diagnostics& diagnostics_;
  std::vector<std::string> words_;
  std::vector<std::string> job_;
  std::vector<std::string> line_;
  ValidationCase case_;
};

/// A set as its file states it.
struct SetText {
  ValidationSet set;
  const Value* study = nullptr;
  const Value* columns = nullptr;
  const Value* rows = nullptr;
  const Value* fitted = nullptr;
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
                     joined(quantity_names(), "`, `"), joined(job_columns, "`, `"), joined(plan_columns, "`, `")),
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
    auto& [set, study, columns, rows, fitted] = text;
    if (study != nullptr && !study->is_map()) {
      diagnostics_.error(study->position, "the study must be a map of what all cases have in common");
    }
    if (study == nullptr || columns == nullptr || rows == nullptr || !study->is_map()) {
      return std::move(set);
    }
    read_columns(*columns, *study);
    Value base = *study;
    base.set("name", Value::scalar(set.name, study->position));
    read_rows(*rows, base, set);
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
      columns_.push_back(column_of(title, diagnostics_));
      if (!names.insert(columns_.back().name).second) {
        diagnostics_.error(title.position,
                           fmt::format("the column '{}' stands here a second time", columns_.back().name));
      }
      if (columns_.back().figure && columns_.back().plan.empty() && !one_plan) {
        diagnostics_.error(title.position, fmt::format("of which plan is '{}'?", title.text),
                           fmt::format("write it behind the figure: {} static", title.text));
      }
    }
    if (use_ == FigureUse::to_measure) find_figures_to_measure(columns, one_plan);
  }

  // One a plan: its step time or rate, whichever column comes first.
  void find_figures_to_measure(const Value& columns, bool one_plan) {
    for (const Column& column : columns_) {
      if (column.figure != Quantity::step_time && column.figure != Quantity::tokens_per_s_per_gpu) continue;
      const bool is_new = std::none_of(to_measure_.begin(), to_measure_.end(),
                                       [&](const PublishedFigure& known) { return known.plan == column.plan; });
      if (is_new) to_measure_.push_back({*column.figure, column.plan, 1});
    }
    if (!to_measure_.empty()) return;
    if (!one_plan) {
      diagnostics_.error(columns.position, "no column says of which plan a step would be measured",
                         "add one with empty cells: step_time_s static");
    }
    to_measure_.push_back({Quantity::step_time, {}, 1});
  }

  void read_rows(const Value& rows, const Value& study, ValidationSet& set) {
    if (!rows.is_sequence() || rows.items.empty()) {
      diagnostics_.error(rows.position, "the rows must be a list that is not empty");
      return;
    }
    bool complete = true;
    for (const Value& row : rows.items) {
      if (row.is_sequence() && row.items.size() == columns_.size()) continue;
      diagnostics_.error(row.position, fmt::format("a row has {} cells, one a column; this one has {}", columns_.size(),
                                                   row.items.size()));
      complete = false;
    }
    if (!complete) return;
    const std::set<std::string> constant = constant_columns(rows);
    std::set<std::string> names;
    for (const Value& row : rows.items) {
      set.cases.push_back(CaseReader(columns_, constant, row, study, to_measure_, diagnostics_).read());
      if (!names.insert(set.cases.back().name).second) {
        diagnostics_.error(row.position, fmt::format("the case '{}' stands here a second time", set.cases.back().name));
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
      const auto column =
          std::find_if(columns_.begin(), columns_.end(), [&](const Column& one) { return one.name == name; });
      if (column == columns_.end() || !column->figure) {
        std::vector<std::string> known;
        for (const Column& one : columns_) {
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
    for (std::size_t i = 0; i < columns_.size() && rows.items.size() > 1; ++i) {
      const std::string first = line_of(rows.items.front().items[i]);
      const bool same = std::all_of(rows.items.begin(), rows.items.end(),
                                    [&](const Value& row) { return line_of(row.items[i]) == first; });
      if (same) constant.insert(columns_[i].name);
    }
    return constant;
  }

  Diagnostics& diagnostics_;
  FigureUse use_;
  std::vector<Column> columns_;
  std::vector<PublishedFigure> to_measure_;  ///< Empty: cells have the figures.
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
