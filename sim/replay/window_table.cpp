#include "sim/replay/window_table.h"

namespace hdpsim {
namespace {

template <class... Members>
auto of_window(Members... members) {
  return [member = at(members...)](const PlanWindow& row) { return member(*row.window); };
}

FigureTable<PlanWindow> figures_of_a_window() {
  FigureTable<PlanWindow> all;
  all.add({"first_step", "first_step", "", "first step of the window, from 0"}, of_window(&WindowRow::first));
  all.add({"last_step", "last_step", "", "last step of the window"}, of_window(&WindowRow::last));
  all.add({"plan", "", "", "the plan"}, [](const PlanWindow& row) { return *row.plan; });
  all.add({"step_time_mean_s", "step_time_mean_s", "s", "mean time of the window's steps"},
          of_window(&WindowRow::mean_s));
  all.add({"step_time_max_s", "step_time_max_s", "s", "time of the slowest of the window's steps"},
          of_window(&WindowRow::max_s));
  all.add({"speedup", "speedup", "", "the baseline's time for the window's steps over the plan's"},
          of_window(&WindowRow::speedup));
  all.add({"group_wait_share", "group_wait_share", "share", "share of the ranks' time in `group_wait`"},
          of_window(&WindowRow::group_wait_share));
  all.add({"mean_length", "mean_length", "tokens", "mean length of the sequences"}, of_window(&WindowRow::mean_length));
  all.add(weighted_length_text(), of_window(&WindowRow::weighted_length));
  all.add(longest_text(), of_window(&WindowRow::longest));
  return all;
}

}  // namespace

const FigureTable<PlanWindow>& window_figures() {
  static const auto figures = figures_of_a_window();
  return figures;
}

FigureSection replay_figures() {
  return {.title = "A replay",
          .note =
              "Rows of steps.csv begin with `step` and `plan`. Places are those in a window: "
              "`plans[].lead_lost.lowest[].all.speedup`.",
          .json = "replay.json",
          .files = {{"steps.csv", StepTable::figures().texts()}, {"windows.csv", window_figures().texts()}}};
}

void write_window_header(TableSink& sink) {
  window_figures().write_names(sink);
  sink.end_row();
}

void write_window(const WindowRow& row, const std::string& plan, TableSink& sink) {
  window_figures().write_cells({&row, &plan}, sink);
  sink.end_row();
}

}  // namespace hdpsim
