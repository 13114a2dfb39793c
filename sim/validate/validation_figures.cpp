#include "sim/validate/validation_figures.h"

#include "sim/validate/trust_format.h"

namespace hdpsim {
namespace {

// An error of a set; empty if none of its rows counts.
auto if_any(double ValidationSummary::*error) {
  return [=](const ValidationSummary& set) { return set.predicted > 0 ? std::optional(set.*error) : std::nullopt; };
}

// A figure of the lines through a set's steps; empty if it has none.
template <class Figure>
auto of_lines(Figure LineErrors::*figure) {
  return [=](const ValidationSummary& set) { return set.lines ? std::optional((*set.lines).*figure) : std::nullopt; };
}

}  // namespace

const FigureTable<ValidationRow>& validation_row_figures() {
  static const FigureTable<ValidationRow> figures([](auto& all) {
    using Row = ValidationRow;
    const auto error = [](const Row& row) { return row.predicted ? std::optional(row.error()) : std::nullopt; };
    const auto is_not_predicted = [](const Row& row) { return !row.predicted; };
    all.add({"set", "set", "", "the validation set"}, at(&Row::set));
    all.add({"case", "case", "", "the case of the set"}, at(&Row::case_name));
    all.add({"quantity", "quantity", "", "what was published of it"}, at(&Row::quantity));
    all.add({"unit", "unit", "", "the unit of the published figure and of its prediction"}, at(&Row::unit));
    all.add({"published", "published", "", "the published figure"}, at(&Row::published));
    all.add({"predicted", "predicted", "", "its prediction; empty where there is none"}, at(&Row::predicted));
    all.add({"error", "", "share", "predicted over published, minus 1"}, error);
    all.add({"fitted", "fitted", "",
             "whether the profile or a constant of the set was fitted to the figure: it is then no part of the set's "
             "errors"},
            at(&Row::fitted));
    all.add({"fits", "fits", "", "whether the plan fits the memory of devices and hosts, as predicted"},
            at(&Row::fits));
    all.add({"at_risk", "at_risk", "",
             "whether it does not where the allocator leaves the largest gaps that were measured"},
            at(&Row::is_at_risk));
    all.add({"not_predicted", "not_predicted", "", "why there is no prediction"}, at(&Row::not_predicted), {},
            is_not_predicted);
    all.add({"source", "source", "", "where the figure was published"}, at(&Row::source));
    all.order_json({"set", "case", "quantity", "published", "predicted", "unit", "fitted", "source"});
  });
  return figures;
}

const FigureTable<ValidationSummary>& validation_set_figures() {
  static const FigureTable<ValidationSummary> figures([](auto& all) {
    using Set = ValidationSummary;
    all.add({"set", "set", "", "the validation set"}, at(&Set::set));
    all.add({"quantity", "quantity", "", "a kind of quantity of the set, whose errors these are"}, at(&Set::quantity));
    all.add({"rows", "rows", "", "its published figures"}, at(&Set::rows));
    all.add({"predicted", "predicted", "", "those whose errors count"}, at(&Set::predicted));
    all.add({"fitted", "fitted", "", "those that are predicted and whose errors do not count"}, at(&Set::fitted));
    all.add({"median_abs_error", "median_abs_error", "share", "median of the absolute errors"},
            if_any(&Set::median_abs_error));
    all.add({"mean_abs_error", "mean_abs_error", "share", "mean of the absolute errors"}, if_any(&Set::mean_abs_error));
    all.add({"worst_abs_error", "worst_abs_error", "share", "the largest absolute error"},
            if_any(&Set::worst_abs_error));
    all.add({"median_error", "median_error", "share",
             "median of the errors with their sign, of rates those of the times that they imply: below 0 is too short"},
            if_any(&Set::median_error));
    all.add(
        {"kendall_tau", "kendall_tau", "",
         "Kendall's tau between the published and the predicted order of the plans of one job; empty if no two can be "
         "ranked"},
        at(&Set::ranking));
    all.add({"lines", "lines", "",
             "plans with step times at several numbers m of micro-batches, through which lines T = a m + c are fitted"},
            of_lines(&LineErrors::plans));
    all.add({"micro_batch_error", "micro_batch_error", "share",
             "median over these plans of predicted over published a, the time of a micro-batch, minus 1"},
            of_lines(&LineErrors::micro_batch_error));
    all.add({"published_rest", "published_rest", "micro-batches",
             "median over these plans of published c / a: what a step takes besides its micro-batches"},
            of_lines(&LineErrors::published_rest));
    all.add({"predicted_rest", "predicted_rest", "micro-batches", "the same as predicted"},
            of_lines(&LineErrors::predicted_rest));
    all.order_json({"set", "quantity", "rows", "median_abs_error", "worst_abs_error", "predicted", "fitted"});
  });
  return figures;
}

FigureSection validation_figures() {
  return {.title = "A validation",
          .note = "Places are those below a row and below a set: `rows[].predicted`, `sets[].kendall_tau`.",
          .json = "validation.json",
          .files = {{"validation.csv", validation_row_figures().texts()},
                    {"sets.csv", validation_set_figures().texts()},
                    {"trust.csv", kind_trust_figures().texts()}}};
}

}  // namespace hdpsim
