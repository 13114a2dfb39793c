#include "sim/engine/impl/step_run.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/engine/impl/group_run.h"
#include "sim/engine/step_ending.h"

namespace hdpsim {

ScheduleProgress::ScheduleProgress(const Pipeline& pipeline) : pipeline_(pipeline), position_(pipeline.workers()) {
  still_absent_.reserve(pipeline.passes());
  for (std::size_t p = 0; p < pipeline.passes(); ++p) {
    still_absent_.push_back(pipeline.micro_batch(PassId(p)).group.size());
  }
  for (const auto& schedule : pipeline.orders()) unfinished_ += schedule.empty() ? 0 : 1;
}

std::optional<PassId> ScheduleProgress::current(WorkerId worker) const {
  const auto& schedule = pipeline_.orders()[worker.index()];
  const std::size_t position = position_[worker.index()];
  if (position == schedule.size()) return std::nullopt;
  return schedule[position];
}

std::optional<PassId> ScheduleProgress::arrive(WorkerId worker) {
  const auto next = current(worker);
  if (!next || --still_absent_[next->index()] > 0) return std::nullopt;
  return next;
}

void ScheduleProgress::check_all_ended(std::string_view whose) const {
  constexpr std::size_t most_listed = 8;
  std::string waiting;
  std::size_t listed = 0;
  for (std::size_t w = 0; w < position_.size() && listed < most_listed; ++w) {
    const auto next = current(WorkerId(w));
    if (!next) continue;
    waiting += fmt::format("; {} waits in micro-batch {} for {} of its {} ranks", name_of(WorkerId(w)),
                           pipeline_.micro_batch_id(*next).index(), still_absent_[next->index()],
                           pipeline_.micro_batch(*next).group.size());
    ++listed;
  }
  HDPSIM_CHECK(listed == 0, "the simulated program{} is deadlocked{}",
               whose.empty() ? "" : fmt::format(" of '{}'", whose), waiting);
}

std::string ScheduleProgress::name_of(WorkerId worker) const {
  const std::string rank = fmt::format("rank {}", pipeline_.rank_of(worker).index());
  return pipeline_.stages() == 1 ? rank : fmt::format("{} stage {}", rank, pipeline_.stage_of(worker));
}

StepRun::StepRun(const StepSetting& setting, bool contention)
    : program_(setting.program),
      pipeline_(program_.pipeline()),
      machine_(setting.machine),
      queue_(setting.port.queue),
      flows_(setting.port.flows),
      links_(setting.links),
      collectives_(setting.collectives),
      progress_(pipeline_),
      free_since_(pipeline_.workers(), queue_.now()),
      intervals_(pipeline_.passes()),
      pool_free_(pipeline_.workers(), queue_.now()),
      gathered_for_(pipeline_.workers()),
      messages_(program_, machine_, setting.port, links_, contention),
      inbox_(pipeline_.workers()),
      waits_(pipeline_.workers()),
      sends_(pipeline_.workers()) {
  timeline_.ranks.resize(pipeline_.workers());
}

void StepRun::begin() {
  for (std::size_t w = 0; w < pipeline_.workers(); ++w) go_on(WorkerId(w));
}

void StepRun::handle(const Event& event) {
  if (event.tag == parameters_came) return parameters_arrived(WorkerId(event.actor));
  if (event.tag < StageMessages::first_tag) return handle_pass(event);
  const auto arrival = messages_.handle(event);
  if (!arrival) return;
  inbox_[arrival->worker.index()].push_back(arrival->pass);
  if (waits_[arrival->worker.index()]) go_on(arrival->worker);
  sent(arrival->sender);
}

void StepRun::sent(WorkerId worker) {
  if (!sends_[worker.index()]) return;
  sends_[worker.index()] = false;
  timeline_.ranks[worker.index()][Activity::bubble] += queue_.now() - free_since_[worker.index()];
  free_since_[worker.index()] = queue_.now();
  go_on(worker);
}

void StepRun::rate_changed(std::uint32_t key) {
  if ((key & StageMessages::key_bit) != 0) return messages_.rate_changed(key);
  pass_rate_changed(key);
}

void StepRun::count_collectives(PassId id, const PricedProgram& priced, std::span<const WorkerId> workers,
                                double share) {
  collectives_.add(priced.traffic.sets, workers, share);
  const std::vector<std::int64_t>& runs = priced.traffic.share_runs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const SharingCollective& op = priced.program.shares[i];
    const SharingRanks ranks{pipeline_.micro_batch(id).group, pipeline_.pass(id).stage,
                             op.party(priced.program.sharing)};
    collectives_.traffic()->add_sharing(ranks, op, share * static_cast<double>(runs[i]), links_);
  }
}

void StepRun::end_pass(WorkerId worker) {
  free_since_[worker.index()] = queue_.now();
  const bool is_sent = messages_.send(worker, *progress_.current(worker));
  sends_[worker.index()] = is_sent && !program_.options().pipeline.overlaps_messages();
  reduce_gradients(worker, *progress_.current(worker));
  progress_.advance(worker);
}

void StepRun::go_on(WorkerId worker) {
  if (sends_[worker.index()]) return;
  const auto pass = progress_.current(worker);
  if (!pass || !parameters_are_there(worker, *pass)) return;
  if (pipeline_.source(*pass)) {
    std::vector<PassId>& inbox = inbox_[worker.index()];
    const auto message = std::find(inbox.begin(), inbox.end(), *pass);  // mostly the first
    waits_[worker.index()] = message == inbox.end();
    if (message == inbox.end()) return;
    inbox.erase(message);
    timeline_.ranks[worker.index()][Activity::bubble] += queue_.now() - free_since_[worker.index()];
    free_since_[worker.index()] = queue_.now();
  }
  const bool all_are_here = progress_.arrive(worker).has_value();
  arrive(worker, *pass, all_are_here);
}

void StepRun::parameters_arrived(WorkerId worker) {
  Instant& free_since = free_since_[worker.index()];
  timeline_.ranks[worker.index()][Activity::grad_sync] += queue_.now() - free_since;
  free_since = queue_.now();
  go_on(worker);
}

bool StepRun::parameters_are_there(WorkerId worker, PassId pass) {
  const std::size_t w = worker.index();
  if (gathered_for_[w] == pass) return true;
  gathered_for_[w] = pass;
  const PoolBytes parameters = program_.pool_work(pass).gather;
  if (parameters == PoolBytes{}) return true;
  if (const CollectiveTraffic* links = collectives_.traffic()) {
    std::vector<SetTraffic> sent;
    links->add_gather(sent, parameters);
    collectives_.add(sent, {&worker, 1});
  }
  Instant& there = pool_free_[w];
  there += gather_of(parameters, machine_).time;
  if (there <= queue_.now()) return true;
  queue_.schedule_after(there - queue_.now(), static_cast<std::uint32_t>(w), parameters_came);
  return false;
}

void StepRun::reduce_gradients(WorkerId worker, PassId pass) {
  const PoolBytes gradients = program_.pool_work(pass).reduction;
  if (gradients == PoolBytes{}) return;
  if (const CollectiveTraffic* links = collectives_.traffic()) {
    std::vector<SetTraffic> sent;
    links->add_reduction(sent, gradients, program_.options().recipe.reduces_all());
    collectives_.add(sent, {&worker, 1});
  }
  Instant& free = pool_free_[worker.index()];
  free = std::max(free, queue_.now()) + reduction_of(gradients, program_.options().recipe.reduces_all(), machine_).time;
}

Instant StepRun::collectives_end() const {
  return pool_free_.empty() ? Instant{} : *std::max_element(pool_free_.begin(), pool_free_.end());
}

// Books the data-parallel collectives that are still under way when a worker has ended its last pass.
void StepRun::end_pool_streams() {
  for (std::size_t w = 0; w < pool_free_.size(); ++w) {
    if (pool_free_[w] <= free_since_[w]) continue;
    timeline_.ranks[w][Activity::grad_sync] += pool_free_[w] - free_since_[w];
    free_since_[w] = pool_free_[w];
  }
}

// A micro-batch runs from the begin of its first pass to the end of its last.
Timeline StepRun::take_timeline() {
  end_pool_streams();
  const std::size_t micro_batches = program_.plan().micro_batches.size();
  const std::size_t passes = micro_batches == 0 ? 1 : intervals_.size() / micro_batches;
  timeline_.micro_batches.reserve(micro_batches);
  for (std::size_t p = 0; p < intervals_.size(); ++p) {
    if (p % passes == 0) timeline_.micro_batches.push_back(intervals_[p]);
    MicroBatchInterval& whole = timeline_.micro_batches.back();
    whole.begin = std::min(whole.begin, intervals_[p].begin);
    whole.end = std::max(whole.end, intervals_[p].end);
  }
  if (!pipeline_.has_whole_passes()) timeline_.passes = std::move(intervals_);
  return std::move(timeline_);
}

void StepRun::take_back_unsent() {
  for (std::size_t p = 0; p < pipeline_.passes(); ++p) {
    const PassId id(p);
    const double left = 1 - share_sent(id);
    if (!(left > 0)) continue;
    const std::vector<Hop> hops = ring_hops(program_, id, machine_);
    const PricedProgram priced = price(program_, id, hops, machine_);
    add_ring_traffic(priced.program, hops, -left, links_);
    count_collectives(id, priced, pipeline_.group(id), -left);
  }
  messages_.take_back_unsent();
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
