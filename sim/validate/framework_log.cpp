#include "sim/validate/framework_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace hdpsim {
namespace {

/// How a framework writes a step: the words before its number, its figure and its global batch.
struct LogForm {
  std::string_view step;
  std::string_view figure;
  std::string_view column;  ///< What the figure is.
  double scale = 1;         ///< To the column's unit.
  std::string_view batch;   ///< Empty: it does not say.
};

constexpr auto log_forms = std::to_array<LogForm>(
    {{"iteration", "elapsed time per iteration (ms):", "step_time_s", 1e-3, "global batch size:"},
     {"step:", "tps:", "tokens_per_s_per_gpu", 1, ""},
     {"step:", "wps:", "tokens_per_s_per_gpu", 1, ""}});

struct Figure {
  double value = 0;
  int column = 1;
};

// The number behind some words, which may have commas between its thousands.
std::optional<Figure> figure_behind(std::string_view line, std::string_view words) {
  const std::size_t found = line.find(words);
  if (found == std::string_view::npos) return std::nullopt;
  const std::size_t begin = line.find_first_not_of(' ', found + words.size());
  if (begin == std::string_view::npos) return std::nullopt;
  std::string digits(line.substr(begin, line.find_first_not_of("0123456789.,eE+-", begin) - begin));
  std::erase(digits, ',');
  Figure figure{0, static_cast<int>(begin) + 1};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), figure.value);
  return error == std::errc{} && figure.value > 0 ? std::optional(figure) : std::nullopt;
}

struct Step {
  Position where;
  double number = 0;
  double figure = 0;
  double batch = 0;
};

std::optional<Step> step_of(std::string_view line, const LogForm& form, const Position& place) {
  const std::optional<Figure> number = figure_behind(line, form.step);
  const std::optional<Figure> figure = figure_behind(line, form.figure);
  if (!number || !figure) return std::nullopt;
  const std::optional<Figure> batch = form.batch.empty() ? std::nullopt : figure_behind(line, form.batch);
  return Step{
      {place.file, place.line, figure->column}, number->value, figure->value * form.scale, batch ? batch->value : 0};
}

std::vector<Step> steps_in(const std::string& file, std::string_view text, const LogForm& form) {
  std::vector<Step> steps;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto step = step_of(text.substr(begin, end - begin), form, {file, ++number, 1});
    if (step) steps.push_back(*step);
    begin = end + 1;
  }
  const auto is_first = [](const Step& step) { return step.number == 1; };
  if (!std::all_of(steps.begin(), steps.end(), is_first)) std::erase_if(steps, is_first);
  return steps;
}

}  // namespace

std::optional<LoggedSteps> steps_of_log(const std::string& file, std::string_view text) {
  for (const LogForm& form : log_forms) {
    const std::vector<Step> steps = steps_in(file, text, form);
    if (steps.empty()) continue;
    const Position& first = steps.front().where;
    const bool has_batches =
        std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step.batch != steps.front().batch; });
    LoggedSteps logged{Value::sequence(first), {}};
    logged.columns.items.push_back(Value::scalar(std::string(form.column), first));
    if (has_batches) logged.columns.items.push_back(Value::scalar("global_batch", first));
    for (const Step& step : steps) {
      Value& line = logged.lines.emplace_back(Value::sequence(step.where));
      line.items.push_back(Value::scalar(fmt::format("{:.9g}", step.figure), step.where));
      if (has_batches) line.items.push_back(Value::scalar(fmt::format("{:.0f}", step.batch), step.where));
    }
    return logged;
  }
  return std::nullopt;
}

}  // namespace hdpsim
