#include "sim/replay/window_table.h"

namespace hdpsim {

void write_window_header(TableSink& sink) {
  for (const char* name : {"first_step", "last_step", "plan", "step_time_mean_s", "step_time_max_s", "speedup",
                           "group_wait_share", "mean_length", "weighted_length", "longest"}) {
    sink.text(name);
  }
  sink.end_row();
}

void write_window(const WindowRow& row, const std::string& plan, TableSink& sink) {
  sink.count(row.first);
  sink.count(row.last);
  sink.text(plan);
  for (const double number :
       {row.mean_s, row.max_s, row.speedup, row.group_wait_share, row.mean_length, row.weighted_length}) {
    sink.number(number);
  }
  sink.count(row.longest);
  sink.end_row();
}

}  // namespace hdpsim
