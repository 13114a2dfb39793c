#include "sim/tasks/task_figures.h"

namespace hdpsim {
namespace {

using Rows = FigureTable<TaskFigureRow>;

FigureTable<TaskStep> step_figures() {
  FigureTable<TaskStep> all;
  const auto total = [](const TaskStep& step) { return step.total(); };
  all.add({"step_s", "step_s", "s", "time of a step: the sum of the next five"}, total);
  all.add({"forward_s", "forward_s", "s", "forward of all waves"}, at(&TaskStep::forward));
  all.add({"backward_s", "backward_s", "s", "their backward, with what it computes again"}, at(&TaskStep::backward));
  all.add({"messages_s", "messages_s", "s", "messages between waves, both ways"}, at(&TaskStep::messages));
  all.add({"gradients_s", "gradients_s", "s",
           "sums of gradients among all devices that hold the same parameters, with the gather of what they shard"},
          at(&TaskStep::gradients));
  all.add({"optimizer_s", "optimizer_s", "s", "update of the parameters"}, at(&TaskStep::optimizer));
  all.add({"message_share", "message_share", "share", "`messages_s` over `step_s`"},
          [](const TaskStep& step) { return step.messages / step.total(); });
  all.add({"gradient_share", "gradient_share", "share", "`gradients_s` over `step_s`"},
          [](const TaskStep& step) { return step.gradients / step.total(); });
  all.add({"idle", "idle", "share", "time of all devices in forward and backward in which they compute nothing"},
          at(&TaskStep::idle));
  all.add({"waves", "waves", "waves", "times that devices change hands in forward"}, at(&TaskStep::waves));
  all.add({"memory_gb", "memory_gb", "GB", "memory of the fullest device"}, at(&TaskStep::memory));
  all.add({"fits", "fits", "", "whether devices have as much"}, at(&TaskStep::fits));
  return all;
}

void add_comparison(Rows& all) {
  all.add({"speedup", "speedup", "ratio", "step of `sequential` over that of the policy"},
          [](const TaskFigureRow& row) { return row.row->speedup; });
  all.add(
      {"over_bound", "over_bound", "ratio",
       "`forward_s` and `backward_s` over the continuous optimum of the levels, below which no plan gets that keeps "
       "them apart"},
      [](const TaskFigureRow& row) { return row.row->over_bound; });
  all.add({"published", "published", "ratio", "the published speed-up of the file; empty where it has none"},
          [](const TaskFigureRow& row) { return row.row->published; });
}

}  // namespace

const Rows& task_row_figures() {
  static const Rows figures([](Rows& all) {
    all.add({"case", "", "", "the label of the case"}, [](const TaskFigureRow& row) { return row.comparison->label; });
    all.add({"gpus", "", "GPUs", "GPUs of the cluster"},
            [](const TaskFigureRow& row) { return row.comparison->devices; });
    all.add({"policy", "policy", "", "the policy"}, [](const TaskFigureRow& row) { return row.row->policy; });
    all.part({}, step_figures(), [](const TaskFigureRow& row) -> const TaskStep& { return row.row->step; });
    add_comparison(all);
  });
  return figures;
}

FigureSection task_figures() {
  return {.title = "Tasks that share modules",
          .note = "Rows are policies, case by case. Places are those below a row: `cases[].rows[].step_s`.",
          .json = "tasks.json",
          .files = {{"tasks.csv", task_row_figures().texts()}}};
}

}  // namespace hdpsim
