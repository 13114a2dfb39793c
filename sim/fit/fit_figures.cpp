#include "sim/fit/fit_figures.h"

#include "sim/profile/physical_parameters.h"

namespace hdpsim {
namespace {

// The places of the figures in the whole.
std::vector<FigureText> below(std::string_view path, std::vector<FigureText> texts) {
  for (FigureText& text : texts) text.path = fmt::format("{}.{}", path, text.path);
  return texts;
}

}  // namespace

std::vector<ReportedParameter> reported_parameters(const FitResult& result) {
  std::vector<ReportedParameter> all;
  for (const FittedParameter& fitted : result.profile.provenance.fit->parameters) {
    all.push_back({fitted, std::string(fit_parameter(fitted.name).unit), result.at_limit.at(all.size())});
  }
  return all;
}

const FigureTable<FitRow>& fit_row_figures() {
  static const FigureTable<FitRow> figures([](auto& all) {
    using Row = FitRow;
    all.add({"case", "case", "", "the row of the set"}, at(&Row::name));
    all.add({"quantity", "quantity", "", "what was measured of it"}, at(&Row::quantity));
    all.add({"unit", "unit", "", "the unit of the figure and of its predictions"}, at(&Row::unit));
    all.add({"group", "group", "", "rows of one group are held out together in cross-validation"}, at(&Row::group));
    all.add({"measured", "measured", "", "the measured figure"}, at(&Row::measured));
    all.add({"before", "before", "", "its prediction with the profile from which the fit started"}, at(&Row::before));
    all.add({"after", "after", "", "its prediction with the fitted profile"}, at(&Row::after));
    all.add({"cross_validated", "cross_validated", "", "its prediction by a fit to rows of other groups"},
            at(&Row::cross_validated));
    all.add({"held_out", "held_out", "", "whether the fit has not seen it"}, at(&Row::held_out));
    all.add({"unexplained", "unexplained", "", "whether no parameter explains it: beyond 3 robust standard deviations"},
            at(&Row::unexplained));
  });
  return figures;
}

const FigureTable<ReportedParameter>& fit_parameter_figures() {
  static const FigureTable<ReportedParameter> figures([](auto& all) {
    using Row = ReportedParameter;
    using Told = FittedParameter;
    all.add({"", "name", "", "the parameter's name"}, at(&Row::fitted, &Told::name));
    all.add({"", "unit", "", "`x`: of the starting profile's figure; `s`: seconds"}, at(&Row::unit));
    all.add({"", "start", "", "its value in the profile from which the fit started"}, at(&Row::fitted, &Told::start));
    all.add({"", "value", "", "its fitted value"}, at(&Row::fitted, &Told::value));
    all.add({"", "p5", "", "the 5th percentile of its posterior"}, at(&Row::fitted, &Told::p5));
    all.add({"", "p95", "", "the 95th percentile of its posterior"}, at(&Row::fitted, &Told::p95));
    all.add({"", "prior_p5", "", "the 5th percentile of its prior"}, at(&Row::fitted, &Told::prior_p5));
    all.add({"", "prior_p95", "", "the 95th percentile of its prior"}, at(&Row::fitted, &Told::prior_p95));
    all.add({"", "determined", "", "whether the rows say something about it"}, at(&Row::fitted, &Told::determined));
    all.add({"", "at_limit", "", "whether its value is at the end of its range"}, at(&Row::at_limit));
  });
  return figures;
}

const FigureTable<TriedValue>& tried_value_figures() {
  static const FigureTable<TriedValue> figures([](auto& all) {
    using Row = TriedValue;
    all.add({"", "value", "", "a value of the key that was tried"}, at(&Row::value));
    all.add({"", "error_after", "share", "mean absolute error of the rows after a fit with it"}, at(&Row::error_after));
    all.add({"", "error_cross_validated", "share", "the same of rows held out"}, at(&Row::error_cross_validated));
    all.add({"", "excess", "", "mean over groups of the absolute log errors, held out, beyond that of the best"},
            at(&Row::excess));
    all.add({"", "excess_deviation", "", "the standard error of that mean"}, at(&Row::excess_deviation));
  });
  return figures;
}

const FigureTable<FitErrors>& fit_error_figures() {
  static const FigureTable<FitErrors> figures([](auto& all) {
    using Row = FitErrors;
    all.add({"", "rows", "", "rows that count"}, at(&Row::rows));
    all.add({"", "mean_abs_error", "share", "mean of the absolute errors"}, at(&Row::mean));
    all.add({"", "median_abs_error", "share", "median of the absolute errors"}, at(&Row::median));
    all.add({"", "worst_abs_error", "share", "the largest absolute error"}, at(&Row::worst));
    all.add({"", "kendall_tau", "", "Kendall's tau between measured and predicted order of the plans of one job"},
            at(&Row::ranking));
    all.add({"", "kendall_tau_of_all", "", "Kendall's tau over all rows"}, at(&Row::order));
  });
  return figures;
}

const FigureTable<CandidateRun>& candidate_run_figures() {
  static const FigureTable<CandidateRun> figures([](auto& all) {
    using Row = CandidateRun;
    all.add({"", "case", "", "a run that could be measured"}, at(&Row::name));
    all.add({"", "quantity", "", "what would be measured of it"}, at(&Row::quantity));
    all.add({"", "width", "", "the width after only this run, as `next.width`"}, at(&Row::width));
    all.add({"", "share", "share", "that of the width now"}, at(&Row::share));
    all.add({"", "parameter", "", "the parameter that it narrows most"}, at(&Row::parameter));
    all.add({"", "parameter_share", "share", "the width of this parameter's interval after it, of that now"},
            at(&Row::parameter_share));
    all.add({"", "place", "", "1: to be measured first; 2: then; null: neither"}, at(&Row::place));
  });
  return figures;
}

const FigureTable<StepKnowledge>& step_knowledge_figures() {
  static const FigureTable<StepKnowledge> figures([](auto& all) {
    using Row = StepKnowledge;
    all.add({"", "run", "", "a run of the study: the values of its sweep, and its plan"}, at(&Row::run));
    all.add({"", "step_time_s", "s", "its mean step time with the fitted profile"}, at(&Row::step_time_s));
    const auto add_interval = [&](const std::string& when, const std::string& words, double Row::*deviation) {
      all.add({"", when + "_p5", "s", "the 5th percentile of what is known of it " + words},
              [deviation](const Row& row) { return row.low(row.*deviation); });
      all.add({"", when + "_p95", "s", "the 95th percentile of what is known of it " + words},
              [deviation](const Row& row) { return row.high(row.*deviation); });
    };
    add_interval("now", "now", &Row::now);
    add_interval("after_first", "after the first run to be measured", &Row::after_first);
    add_interval("after_both", "after both", &Row::after_both);
  });
  return figures;
}

FigureSection fit_figures() {
  return {
      .title = "A fit to steps",
      .note =
          "Printed by `hdpsim calibrate --from-steps`: `--format csv` has the rows, `--format json` all. With "
          "`--next`, `next.width` is how widely spread is what is asked: with a study half the interval of 90 % of "
          "the logarithm of its step time, the mean over its runs; otherwise the geometric mean over the parameters "
          "of posterior over prior deviation. `next.width_after` has it after the first run to be measured, and "
          "after both.",
      .json = "--format json",
      .files = {{"rows", below("rows[]", fit_row_figures().texts())},
                {"parameters", below("parameters[]", fit_parameter_figures().texts())},
                {"errors", below("errors.after", fit_error_figures().texts())},
                {"tried", below("tried.values[]", tried_value_figures().texts())},
                {"candidates", below("next.runs[]", candidate_run_figures().texts())},
                {"steps of the study", below("next.steps[]", step_knowledge_figures().texts())}}};
}

}  // namespace hdpsim
