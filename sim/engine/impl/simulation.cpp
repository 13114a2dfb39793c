#include "sim/engine/impl/simulation.h"

#include "sim/base/check.h"

namespace hdpsim {

Simulation::Simulation(const Program& program, const Machine& machine, Grain grain, const Background& background,
                       bool queue_all)
    : program_(program), machine_(machine), ground_(*machine.network) {
  HDPSIM_CHECK(background.empty() || grain != Grain::closed_form, "the closed form simulates the main job alone");
  const bool alone = background.empty();
  const TrainingJob::Setting setting{alone ? "" : "the main job", machine, grain, alone, queue_all};
  main_ = std::make_unique<TrainingJob>(setting, program, new_port(), machine.network->link_count());
  add_neighbours(background, grain);
}

void Simulation::add_neighbours(const Background& background, Grain grain) {
  for (const BackgroundJob& job : background.jobs) {
    HDPSIM_CHECK(job.machine->network == machine_.network, "the job '{}' is on another network", job.name);
    neighbours_.push_back(make_neighbour(job, grain, new_port()));
  }
  for (const BackgroundTraffic& traffic : background.traffic) {
    neighbours_.push_back(make_neighbour(traffic, *machine_.network, new_port()));
  }
}

JobPort& Simulation::new_port() {
  ports_.push_back(std::make_unique<JobPort>(ground_, static_cast<std::uint32_t>(ports_.size())));
  return *ports_.back();
}

Timeline Simulation::run() {
  main_->begin_step(program_);
  for (const auto& neighbour : neighbours_) neighbour->begin();
  follow_rate_changes();
  if (ports_.front()->queue.pending() == 0) main_->run_out();
  while (!main_->step_ended()) {
    const Event event = ground_.queue.pop();
    handle(event);
    follow_rate_changes();
    check_not_stuck(JobQueue::job_of(event));
  }
  Timeline timeline = main_->take_timeline();
  timeline.events += ground_.queue.executed();
  if (!neighbours_.empty()) timeline.other_links = LinkTraffic(machine_.network->link_count());
  for (const auto& neighbour : neighbours_) neighbour->add_traffic(timeline.other_links);
  return timeline;
}

void Simulation::handle(const Event& event) {
  const std::uint32_t job = JobQueue::job_of(event);
  const Event own = ports_[job]->queue.take(event);
  if (job == 0) return main_->handle(own);
  neighbours_[job - 1]->handle(own);
}

void Simulation::follow_rate_changes() {
  if (!ground_.any_flow) return;
  ++ground_.round;
  changed_.clear();
  ground_.network->take_changed(changed_);
  for (const FlowId flow : changed_) {
    const FlowOwner owner = ground_.owners[flow.index()];
    if (owner.job == 0) {
      main_->rate_changed(owner.key);
    } else {
      neighbours_[owner.job - 1]->rate_changed(owner.key);
    }
  }
}

// A job that waits must have a pending event; otherwise what it waits for would never come.
void Simulation::check_not_stuck(std::uint32_t job) {
  if (ports_[job]->queue.pending() > 0) return;
  if (job > 0) return neighbours_[job - 1]->run_out();
  if (!main_->step_ended()) main_->run_out();
}

Timeline simulate(const Program& program, Machine& machine, Grain grain, const Background& background) {
  return Simulation(program, machine, grain, background).run();
}

}  // namespace hdpsim
