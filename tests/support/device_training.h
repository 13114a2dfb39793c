#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/exec/executor.h"
#include "kernels/transport/in_process.h"
#include "tests/support/fake_job.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {

/// Trains as train() does, but on devices that run queued work only when a thread waits for them, and then in an order
/// drawn from `job.seed` (tests/support/fake_queues.h). `job.ranks` is ignored.
inline Training train_on_device(const Transformer& model, const std::vector<Plan>& plans, const TokenSource& tokens,
                                const Way& way, cuda::FakeJob job, const TrainingOptions& options = {}) {
  job.ranks = static_cast<std::size_t>(way.mesh(plans.front().ranks).devices());
  auto hosts = make_in_process_transports(static_cast<int>(job.ranks));
  Training result;
  const auto work = [&](cuda::FakeRank& self) {
    const auto host = std::move(hosts[static_cast<std::size_t>(self.transport->rank())]);
    Executor executor({self.backend, *self.transport, *host, &self.copies}, model, options_for(way, options));
    Training own;
    for (const Plan& plan : plans) {
      const LoweringOptions lowering = lowering_for(self.backend, model, way.mesh(plan.ranks), way.recipe());
      StepOutcome outcome = executor.run_step(Program(plan, lowering), tokens);
      own.losses.push_back(outcome.loss);
      if (outcome.timeline) own.timelines.push_back(std::move(*outcome.timeline));
    }
    own.gradients = executor.gradients();
    own.parameters = executor.parameters();
    if (host->rank() == 0) result = std::move(own);
  };
  for (const std::string& error : cuda::run(job, work)) {
    if (!error.empty()) throw std::runtime_error(error);
  }
  return result;
}

}  // namespace hdpsim::kernels::exec
