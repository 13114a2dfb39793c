#include "sim/engine/impl/step_run.h"

#include "sim/base/check.h"
#include "sim/engine/impl/ring_traffic.h"

namespace hdpsim {

StepRun::StepRun(const StepSetting& setting)
    : program_(setting.program),
      plan_(program_.plan()),
      machine_(setting.machine),
      queue_(setting.port.queue),
      flows_(setting.port.flows),
      link_bytes_(setting.link_bytes),
      progress_(plan_),
      free_since_(plan_.schedule.size(), queue_.now()) {
  timeline_.ranks.resize(plan_.schedule.size());
  timeline_.micro_batches.resize(plan_.micro_batches.size());
}

void StepRun::take_back_unsent() {
  for (std::size_t m = 0; m < plan_.micro_batches.size(); ++m) {
    const double left = 1 - share_sent(MicroBatchId(m));
    if (!(left > 0)) continue;
    const MicroBatchProgram program = program_.micro_batch(MicroBatchId(m));
    add_ring_traffic(program, ring_hops(plan_.micro_batches[m], machine_), -left, link_bytes_);
  }
}

std::unique_ptr<StepRun> make_step(const StepSetting& setting, Grain grain, bool queue_all) {
  switch (grain) {
    case Grain::fluid:
      return make_fluid_step(setting, true);
    case Grain::exact:
      return make_exact_step(setting, queue_all);
    case Grain::closed_form:
      return make_fluid_step(setting, false);
  }
  return nullptr;
}

}  // namespace hdpsim
