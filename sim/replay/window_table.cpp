#include "sim/replay/window_table.h"

namespace hdpsim {

const FigureTable<PlanWindow>& window_figures() {
  static const FigureTable<PlanWindow> figures([](auto& all) {
    all.add({"first_step", "first_step", "", "first step of the window, from 0"}, through(&PlanWindow::window, &WindowRow::first));
    all.add({"last_step", "last_step", "", "last step of the window"}, through(&PlanWindow::window, &WindowRow::last));
    all.add({"plan", "", "", "the plan"}, [](const PlanWindow& row) { return *row.plan; });
    all.add({"step_time_mean_s", "step_time_mean_s", "s", "mean time of the window's steps"},
            through(&PlanWindow::window, &WindowRow::mean_s));
    all.add({"step_time_max_s", "step_time_max_s", "s", "time of the slowest of the window's steps"},
            through(&PlanWindow::window, &WindowRow::max_s));
    all.add({"speedup", "speedup", "", "the baseline's time for the window's steps over the plan's"},
            through(&PlanWindow::window, &WindowRow::speedup));
    all.add({"group_wait_share", "group_wait_share", "share", "share of the ranks' time in `group_wait`"},
            through(&PlanWindow::window, &WindowRow::group_wait_share));
    all.add({"mean_length", "mean_length", "tokens", "mean length of the sequences"},
            through(&PlanWindow::window, &WindowRow::mean_length));
    all.add(weighted_length_text(), through(&PlanWindow::window, &WindowRow::weighted_length));
    all.add(longest_text(), through(&PlanWindow::window, &WindowRow::longest));
  });
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
