#include <algorithm>
#include <thread>
#include <vector>

#include "sim/run/run_workers.h"

namespace hdpsim {
namespace {

/// The world of the point at which a thread works; made anew when the point needs another one than the point before.
class ThreadWorld {
 public:
  World& at(const StudyPoint& point) {
    if (world_ == nullptr || number_ != point.world) {
      world_.reset();
      world_ = point.make_world();
      number_ = point.world;
    }
    return *world_;
  }

 private:
  std::unique_ptr<World> world_;
  std::size_t number_ = 0;
};

class ThreadWorkers final : public RunWorkers {
 public:
  ThreadWorkers(const Study& study, std::size_t jobs) : study_(study), jobs_(std::max<std::size_t>(1, jobs)) {}

  void work(RunQueue& queue) override {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < jobs_; ++i) others.emplace_back([&] { work_alone(queue); });
    work_alone(queue);
  }

 private:
  void work_alone(RunQueue& queue) const {
    try {
      ThreadWorld world;
      while (const std::optional<StepTask> task = queue.next_step()) simulate(*task, world, queue);
    } catch (...) {
      queue.fail(std::current_exception());
    }
  }

  void simulate(const StepTask& task, ThreadWorld& thread_world, RunQueue& queue) const {
    const std::size_t plans = study_.plans.size();
    const StudyPoint& point = study_.points[task.run / plans];
    World& world = thread_world.at(point);
    try {
      SimulatedStep step = simulate_step(point, task.run % plans, task.step, world, study_.output.memory_ranks);
      queue.add(task, std::move(step), world.take_coverage(), *world.machine().network);
    } catch (const PlanRefused& refused) {
      queue.refuse(task, refused.refusal());
    }
  }

  const Study& study_;
  const std::size_t jobs_;
};

}  // namespace

std::unique_ptr<RunWorkers> make_thread_workers(const Study& study, std::size_t jobs) {
  return std::make_unique<ThreadWorkers>(study, jobs);
}

}  // namespace hdpsim
