#include "sim/analysis/critical_path.h"

#include <algorithm>

#include "sim/engine/priced_program.h"
#include "sim/plan/updates.h"

namespace hdpsim {
namespace {

/// The latest end of the earlier passes on any of a pass's workers, before which the pass could not begin.
struct Predecessor {
  bool known = false;
  PassId pass;
  WorkerId worker;
  Instant end;
};

bool later(const Predecessor& a, const Predecessor& b) {
  return a.known && (!b.known || a.end > b.end);
}

// Micro-batches of one wave continue from layer to layer together: they wait for the last of all their ranks.
void join_waves(const Pipeline& pipeline, std::vector<Predecessor>& latest) {
  std::vector<bool> joined(latest.size());  // by wave
  for (std::size_t p = 0; p < latest.size(); ++p) {
    if (pipeline.wave_size(PassId(p)) == 1 || joined[pipeline.wave_index(PassId(p))]) continue;
    joined[pipeline.wave_index(PassId(p))] = true;
    const std::vector<PassId> wave = pipeline.wave(PassId(p));
    Predecessor last = latest[p];
    for (const PassId member : wave) last = later(latest[member.index()], last) ? latest[member.index()] : last;
    for (const PassId member : wave) latest[member.index()] = last;
  }
}

std::vector<Predecessor> predecessors(const Pipeline& pipeline, const Timeline& timeline) {
  std::vector<Predecessor> latest(pipeline.passes());
  for (std::size_t w = 0; w < pipeline.workers(); ++w) {
    const std::vector<PassId>& schedule = pipeline.orders()[w];
    for (std::size_t i = 1; i < schedule.size(); ++i) {
      if (pipeline.micro_batch(schedule[i - 1]).update != pipeline.micro_batch(schedule[i]).update) continue;
      const Predecessor before{true, schedule[i - 1], WorkerId(w), timeline.interval(schedule[i - 1]).end};
      Predecessor& known = latest[schedule[i].index()];
      if (later(before, known)) known = before;
    }
  }
  join_waves(pipeline, latest);
  return latest;
}

Breakdown kernels_of(const PricedProgram& priced, double speed) {
  Breakdown sum;
  for (std::size_t b = 0; b < priced.program.blocks.size(); ++b) {
    const Block& block = priced.program.blocks[b];
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      const Instruction& instruction = block.body[i];
      if (instruction.stream != Stream::compute) continue;
      sum[activity_of(instruction.opcode)] += priced.time(b, i, speed) * instruction.runs(block.iterations);
    }
  }
  return sum;
}

/// Walks from the last pass of a step back to its start. Its updates follow each other: of each, from its last pass
/// back to its start.
class PathWalk {
 public:
  PathWalk(const Program& program, const Timeline& timeline, const Machine& machine)
      : program_(program),
        pipeline_(program.pipeline()),
        timeline_(timeline),
        machine_(machine),
        latest_(predecessors(pipeline_, timeline)) {}

  CriticalPath walk() {
    CriticalPath path;
    Instant ends = Instant::at(timeline_.step_time);
    for (std::int64_t update = update_count(program_.plan()); update-- > 0;) {
      Instant last;
      for (std::optional<PassId> pass = last_pass(update); pass; pass = before(path.passes.back())) {
        path.passes.push_back(link_of(*pass));
        last = std::max(last, path.passes.back().end);
      }
      path.ending += ends - last;
      if (!path.passes.empty()) ends = path.passes.back().begin;
    }
    std::reverse(path.passes.begin(), path.passes.end());
    return path;
  }

 private:
  [[nodiscard]] std::optional<PassId> last_pass(std::int64_t update) const {
    std::optional<PassId> last;
    for (const std::vector<PassId>& schedule : pipeline_.orders()) {
      const auto of_update = std::find_if(schedule.rbegin(), schedule.rend(),
                                          [&](PassId pass) { return pipeline_.micro_batch(pass).update <= update; });
      if (of_update == schedule.rend() || pipeline_.micro_batch(*of_update).update < update) continue;
      if (!last || timeline_.interval(*of_update).end > timeline_.interval(*last).end) last = *of_update;
    }
    return last;
  }

  // True if all workers were ready before the pass began, so that only a message can have been missing.
  [[nodiscard]] bool waited_for_message(PassId pass) const {
    const Predecessor& known = latest_[pass.index()];
    return pipeline_.source(pass) && (!known.known || timeline_.interval(pass).begin > known.end);
  }

  [[nodiscard]] std::optional<PassId> before(const CriticalPass& link) const {
    if (waited_for_message(link.pass)) return pipeline_.source(link.pass);
    const Predecessor& known = latest_[link.pass.index()];
    return known.known ? std::optional(known.pass) : std::nullopt;
  }

  [[nodiscard]] CriticalPass link_of(PassId pass) const {
    const MicroBatchInterval& interval = timeline_.interval(pass);
    const Predecessor& known = latest_[pass.index()];
    CriticalPass link{.pass = pass,
                      .last_to_come = known.known ? known.worker : pipeline_.group(pass).front(),
                      .begin = interval.begin,
                      .end = interval.end,
                      .message = {},
                      .time = {}};
    if (waited_for_message(pass)) {
      link.message = interval.begin - std::min(interval.begin, timeline_.interval(*pipeline_.source(pass)).end);
    } else if (known.known) {
      // In the exact fidelity a pass begins with the first of its workers; nothing holds it back once the last one is
      // ready.
      link.begin = std::clamp(known.end, interval.begin, interval.end);
    }
    link.time = time_of(link);
    return link;
  }

  [[nodiscard]] Breakdown time_of(const CriticalPass& link) const {
    const std::vector<WorkerId> group = pipeline_.group(link.pass);
    double speed = machine_.speed[group.front().index()];
    for (const WorkerId worker : group) speed = std::min(speed, machine_.speed[worker.index()]);
    const PricedProgram priced = price(program_, link.pass, machine_);
    const bool is_wave = pipeline_.wave_size(link.pass) > 1;
    const bool is_alone = group.size() == 1 && !is_wave;
    Breakdown time = is_alone ? time_of_one_rank(priced, speed) : kernels_of(priced, speed);
    Activity rest = is_wave ? Activity::group_wait : Activity::cp_comm;
    if (is_alone) rest = Activity::overhead;  // setting up connections
    time[rest] += std::max(Duration{}, (link.end - link.begin) - time.total());
    return time;
  }

  const Program& program_;
  const Pipeline& pipeline_;
  const Timeline& timeline_;
  const Machine& machine_;
  std::vector<Predecessor> latest_;
};

}  // namespace

Breakdown CriticalPath::time() const {
  Breakdown sum;
  for (const CriticalPass& link : passes) {
    sum += link.time;
    sum[Activity::bubble] += link.message;
  }
  return sum;
}

CriticalPath critical_path(const Program& program, const Timeline& timeline, const Machine& machine) {
  return PathWalk(program, timeline, machine).walk();
}

std::optional<SlowHop> slowest_hop(const Program& program, PassId pass, const Machine& machine) {
  const Pipeline& pipeline = program.pipeline();
  const MicroBatch& micro_batch = pipeline.micro_batch(pass);
  const std::vector<HdpRank>& group = micro_batch.group;
  const std::vector<Hop> hops = ring_hops(program, pass, machine);
  const auto slowest =
      std::min_element(hops.begin(), hops.end(), [](const Hop& a, const Hop& b) { return a.alone < b.alone; });
  if (slowest == hops.end()) return std::nullopt;
  const auto rate = [&](const RouteLink& one) { return machine.network->link_rate(one.link).scaled(1 / one.share); };
  std::optional<RouteLink> narrowest;
  for (const HopRoute& part : slowest->routes) {
    for (const RouteLink& one : part.route.binding_links()) {
      if (!narrowest || rate(one) < rate(*narrowest)) narrowest = one;
    }
  }
  if (!narrowest) return std::nullopt;
  const auto i = static_cast<std::size_t>(slowest - hops.begin());
  return SlowHop{group[i], group[program.sharing(micro_batch).next(i)], machine.network->link_name(narrowest->link),
                 slowest->alone};
}

}  // namespace hdpsim
