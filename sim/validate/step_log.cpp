#include "sim/validate/step_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/analysis/uncertainty.h"
#include "sim/document/reader.h"
#include "sim/validate/framework_log.h"
#include "sim/validate/impl/set_table.h"

namespace hdpsim {
namespace {

/// One line of a CSV file: cells with their places. Quotes may surround a cell; a comma within them is part of it.
std::vector<Value> cells_of(const std::string& file, int number, std::string_view line) {
  std::vector<Value> cells;
  std::size_t at = 0;
  while (at <= line.size()) {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
    const Position where{file, number, static_cast<int>(at) + 1};
    const bool quoted = at < line.size() && line[at] == '"';
    const std::size_t begin = quoted ? at + 1 : at;
    const std::size_t end = std::min(line.find(quoted ? '"' : ',', begin), line.size());
    std::string text(line.substr(begin, end - begin));
    while (!quoted && !text.empty() && text.back() == ' ') text.pop_back();
    const bool is_empty = !quoted && (text.empty() || text == "~");
    cells.push_back(Value::scalar(text, where));
    if (is_empty) cells.back().kind = Value::Kind::null;
    at = std::min(line.find(',', end), line.size()) + 1;
  }
  return cells;
}

/// The steps of a CSV file as the `columns` and `rows` of a set.
class LogReader {
 public:
  LogReader(std::string file, Diagnostics& diagnostics) : file_(std::move(file)), diagnostics_(diagnostics) {}

  void read(const std::string& text, Value& set) {
    if (auto logged = file_.ends_with(".csv") ? std::nullopt : steps_of_log(file_, text)) {
      columns_ = std::move(logged->columns);
      lines_ = std::move(logged->lines);
      tell(*logged);
    } else if (file_.ends_with(".csv")) {
      read_lines(text);
    } else {
      diagnostics_.error({file_, 0, 0}, "this is no log of a framework that is known, and no table of steps",
                         "known are logs of Megatron-LM, torchtitan, nanotron, NeMo and HuggingFace's trainers; call a "
                         "table of steps .csv, and a validation set .yaml");
      return;
    }
    if (columns_.items.empty()) {
      diagnostics_.error({file_, 1, 1}, "there is no line of columns",
                         "write the names of columns first: tp, dp, micro_batch, global_batch, sequence, step_time_s");
      return;
    }
    if (!have_all_cells(columns_, lines_, "line", diagnostics_)) {
      std::erase_if(lines_, [&](const Value& line) { return line.items.size() != columns_.items.size(); });
    }
    for (Value& line : lines_) join(std::move(line));
    Value rows = Value::sequence({file_, 2, 1});
    for (const std::vector<Value>& steps : jobs_) rows.items.push_back(row_of(steps));
    set.set("columns", columns_);
    set.set("rows", std::move(rows));
  }

  /// What of a log counts, for people; empty of a table.
  [[nodiscard]] const std::string& told() const { return told_; }

 private:
  void tell(const LoggedSteps& logged) {
    const std::string& name = columns_.items.front().text;
    std::vector<double> figures;
    for (const Value& line : lines_) figures.push_back(std::stod(line.items.front().text));
    if (!logged.mean_of.empty()) {
      told_ = fmt::format("{}: {} of {:.5g}, the mean of {}", file_, name, figures.front(), logged.mean_of);
      return;
    }
    told_ = fmt::format("{}: {} steps, {} of {:.5g} in the median, the middle half from {:.5g} to {:.5g}{}", file_,
                        figures.size(), name, median(figures), percentile(figures, 0.25), percentile(figures, 0.75),
                        logged.warm_up == 0 ? "" : fmt::format("; left out: {} of warm-up", logged.warm_up));
  }

  void read_lines(const std::string& text) {
    int number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line(text.data() + begin, end - begin);
      begin = end + 1;
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || line.front() == '#') continue;
      take(cells_of(file_, number, line));
    }
  }

  void take(std::vector<Value> cells) {
    if (columns_.items.empty()) {
      columns_ = Value::sequence(cells.front().position);
      columns_.items = std::move(cells);
      return;
    }
    Value& line = lines_.emplace_back(Value::sequence(cells.front().position));
    line.items = std::move(cells);
  }

  // Adds a step to those of its job.
  void join(Value line) {
    std::string job;
    for (std::size_t i = 0; i < line.items.size(); ++i) {
      const Value& cell = line.items[i];
      if (!quantity_of(columns_.items[i].text)) job += fmt::format("{}{},", cell.is_null() ? "~" : "", cell.text);
    }
    const auto [known, is_new] = numbers_.try_emplace(job, jobs_.size());
    if (is_new) jobs_.emplace_back();
    jobs_[known->second].push_back(std::move(line));
  }

  // One row of the steps of one job.
  Value row_of(const std::vector<Value>& steps) {
    Value row = steps.front();
    if (steps.size() == 1) return row;
    for (std::size_t i = 0; i < row.items.size(); ++i) {
      if (const auto quantity = quantity_of(columns_.items[i].text)) row.items[i] = median_of(*quantity, steps, i);
    }
    return row;
  }

  Value median_of(Quantity quantity, const std::vector<Value>& steps, std::size_t column) {
    std::vector<double> figures;
    for (const Value& step : steps) {
      if (step.items[column].is_null()) continue;
      const auto figure = read_figure(quantity, columns_.items[column].text, step.items[column], diagnostics_);
      if (figure) figures.push_back(*figure);
    }
    Value cell = steps.front().items[column];
    if (figures.empty()) return cell;
    const double low = percentile(figures, 0.25);
    const double high = percentile(figures, 0.75);
    if (low > 0 && high > most_spread * low) {
      diagnostics_.error(
          cell.position,
          fmt::format("{} steps of one job contradict each other: the middle half of '{}' goes from {:g} "
                      "to {:g}",
                      figures.size(), columns_.items[column].text, low, high),
          "leave out those of a disturbed machine, or add a column that distinguishes the jobs");
    }
    const Position where = cell.position;
    cell = Value::scalar(fmt::format("{}", median(figures)), where);
    return cell;
  }

  std::string file_;
  Diagnostics& diagnostics_;
  std::string told_;
  Value columns_;
  std::vector<Value> lines_;
  std::vector<std::vector<Value>> jobs_;        ///< Steps by job, jobs in the order of the file.
  std::map<std::string, std::size_t> numbers_;  ///< Of a job, by its cells without figures.
};

}  // namespace

bool holds_steps_alone(const std::string& path) {
  if (path.ends_with("trainer_state.json")) return true;
  return !path.ends_with(".yaml") && !path.ends_with(".yml") && !path.ends_with(".json");
}

std::optional<ValidationSet> load_step_log(const std::string& path, const std::string& like, Diagnostics& diagnostics,
                                           FigureUse use, std::vector<std::string>* told) {
  const bool steps_alone = holds_steps_alone(path);
  if (!steps_alone && like.empty()) return load_validation_set(path, diagnostics, use);
  if (!steps_alone || like.empty()) {
    diagnostics.error({path, 0, 0},
                      steps_alone ? "steps alone say nothing of the cluster, the model and the profile"
                                  : "a validation set says itself what its rows have in common",
                      steps_alone ? "name with --like what does: a validation set, or a job that `hdpsim import` reads"
                                  : "leave out --like");
    return std::nullopt;
  }
  Diagnostics found;
  Value set = load_document(like, found);
  const auto text = read_text_file(path, found);
  if (text && found.empty()) {
    found.add_source(path, *text);
    std::erase_if(set.entries, [](const Value::Entry& entry) { return entry.key == "fitted"; });
    if (set.is_map()) {
      LogReader reader(path, found);
      reader.read(*text, set);
      if (told != nullptr && !reader.told().empty()) told->push_back(reader.told());
    }
  }
  diagnostics.append(found);
  if (!found.empty()) return std::nullopt;
  return read_validation_set(set, diagnostics, use);
}

}  // namespace hdpsim
