#include "sim/validate/framework_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "sim/analysis/uncertainty.h"

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
     {"iteration:", "elapsed_time_per_iteration_ms:", "step_time_s", 1e-3, "global_batch_size:"},
     {"iteration", "train_step_timing in s:", "step_time_s", 1, "global_batch_size:"},
     {"step:", "tps:", "tokens_per_s_per_gpu", 1, ""},
     {"step:", "wps:", "tokens_per_s_per_gpu", 1, ""}});

struct Figure {
  double value = 0;
  int column = 1;
};

// What a letter behind a number multiplies it by.
double multiple_of(char letter) {
  constexpr std::array<std::pair<char, double>, 3> letters = {{{'K', 1e3}, {'M', 1e6}, {'B', 1e9}}};
  const auto found =
      std::find_if(letters.begin(), letters.end(), [&](const auto& each) { return each.first == letter; });
  return found == letters.end() ? 1 : found->second;
}

// The number behind some words, which may have commas between its thousands, and K for a thousand.
std::optional<Figure> figure_behind(std::string_view line, std::string_view words) {
  const std::size_t found = line.find(words);
  if (found == std::string_view::npos) return std::nullopt;
  const std::size_t begin = line.find_first_not_of(' ', found + words.size());
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end_of_digits = std::min(line.find_first_not_of("0123456789.,eE+-", begin), line.size());
  std::string digits(line.substr(begin, end_of_digits - begin));
  std::erase(digits, ',');
  Figure figure{0, static_cast<int>(begin) + 1};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), figure.value);
  if (end_of_digits < line.size()) figure.value *= multiple_of(line[end_of_digits]);
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
  return steps;
}

// Removes the steps of warm-up, and returns their number.
std::size_t drop_warm_up(std::vector<Step>& steps, bool is_rate) {
  constexpr double much_slower = 1.1;
  const std::size_t all = steps.size();
  const auto is_first = [](const Step& step) { return step.number == 1; };
  if (!std::all_of(steps.begin(), steps.end(), is_first)) std::erase_if(steps, is_first);
  std::vector<double> times;
  times.reserve(steps.size());
  for (const Step& step : steps) times.push_back(is_rate ? 1 / step.figure : step.figure);
  const double usual = median(times);
  std::size_t slow = 0;
  while (slow < times.size() && times[slow] > much_slower * usual) ++slow;
  if (2 * slow < times.size()) steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(slow));
  return all - steps.size();
}

// The steps of a run by the last count of its progress bar, "100/100 [1:02:03<00:00"; 0 if there is none.
double counted_steps(std::string_view text) {
  const std::size_t bracket = text.rfind(" [", text.rfind("<00:00"));
  const std::size_t slash = bracket == std::string_view::npos ? bracket : text.rfind('/', bracket);
  if (slash == std::string_view::npos || bracket <= slash) return 0;
  double count = 0;
  const std::string_view digits = text.substr(slash + 1, bracket - slash - 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  return error == std::errc{} && end == digits.data() + digits.size() ? count : 0;
}

// What the trainers of HuggingFace say of a whole run. A rate of steps is rounded to thousandths: the number of steps
// is better, which trainer_state.json has, and a progress bar.
std::optional<LoggedSteps> mean_of_run(const std::string& file, std::string_view text) {
  const std::size_t at = text.rfind("train_runtime");
  const std::size_t begin = at == std::string_view::npos ? at : text.rfind('{', at);
  if (begin == std::string_view::npos) return std::nullopt;
  std::string entry(text.substr(begin, std::min(text.find('}', at), text.size()) - begin));
  std::erase_if(entry, [](char c) { return c == '\'' || c == '"' || c == '\n' || c == '\r'; });
  const auto runtime = figure_behind(entry, "train_runtime:");
  const auto rate = figure_behind(entry, "train_steps_per_second:");
  const auto step = figure_behind(entry, " step:");
  const double counted = step ? step->value : counted_steps(text.substr(0, begin));
  constexpr double rounded_too_much = 0.05;  // a hundredth of it is the rounding
  if (!runtime || (counted == 0 && (!rate || rate->value < rounded_too_much))) return std::nullopt;
  const double seconds = counted > 0 ? runtime->value / counted : 1 / rate->value;
  const auto line =
      static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) + 1;
  const Position where{file, line, 1};
  LoggedSteps logged{Value::sequence(where), {}};
  logged.columns.items.push_back(Value::scalar("step_time_s", where));
  logged.lines.push_back(Value::sequence(where));
  logged.lines.back().items.push_back(Value::scalar(fmt::format("{:.9g}", seconds), where));
  logged.mean_of = "the whole run, with its first steps, evaluations and checkpoints";
  return logged;
}

}  // namespace

std::optional<LoggedSteps> steps_of_log(const std::string& file, std::string_view text) {
  for (const LogForm& form : log_forms) {
    std::vector<Step> steps = steps_in(file, text, form);
    if (steps.empty()) continue;
    const std::size_t warm_up = drop_warm_up(steps, form.column != "step_time_s");
    const Position& first = steps.front().where;
    const bool has_batches =
        std::any_of(steps.begin(), steps.end(), [&](const Step& step) { return step.batch != steps.front().batch; });
    LoggedSteps logged{Value::sequence(first), {}, warm_up};
    logged.columns.items.push_back(Value::scalar(std::string(form.column), first));
    if (has_batches) logged.columns.items.push_back(Value::scalar("global_batch", first));
    for (const Step& step : steps) {
      Value& line = logged.lines.emplace_back(Value::sequence(step.where));
      line.items.push_back(Value::scalar(fmt::format("{:.9g}", step.figure), step.where));
      if (has_batches) line.items.push_back(Value::scalar(fmt::format("{:.0f}", step.batch), step.where));
    }
    return logged;
  }
  return mean_of_run(file, text);
}

}  // namespace hdpsim
