// Planning of tasks that share modules. The target: the waves of ten tasks on 64 GPUs with their places in less than 3
// s (Spindle, arXiv 2409.03365, section 5).

#include <benchmark/benchmark.h>

#include "sim/tasks/slice_placement.h"
#include "sim/tasks/task_comparison.h"

namespace hdpsim {
namespace {

void plan_tasks(benchmark::State& state) {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const std::string gpus = std::to_string(state.range(0));
  const TaskFile file = load_task_file(HDPSIM_SOURCE_DIR "/configs/tasks/spindle-clip.yaml",
                                       {"cases=null", "cluster.gpus=" + gpus}, catalog);
  CasePrices prices(file.cases.front());
  const TaskWork work = prices.work();
  const SliceData data(file.cases.front(), work);
  for (auto _ : state) {
    TaskPlan plan = wave_plan(work);
    place_slices(data, SlicePlacing::local, plan);
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(plan_tasks)->Arg(8)->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hdpsim
