#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "sim/engine/impl/connection_set_up.h"
#include "sim/engine/impl/exchange_board.h"
#include "sim/engine/impl/expert_board.h"
#include "sim/engine/impl/group_program.h"
#include "sim/engine/impl/group_run.h"
#include "sim/engine/impl/private_ring.h"
#include "sim/engine/impl/serial_links.h"
#include "sim/engine/impl/shared_processors.h"
#include "sim/engine/impl/step_run.h"
#include "sim/engine/impl/waiting.h"

namespace hdpsim {
namespace {

// One stream of a worker: the next instruction, and whether one is running.
struct StreamState {
  std::int64_t iteration = 0;
  std::size_t next = 0;  // index in the stream's list of the block
  bool running = false;
  Instant free_since;
  Instant began{};  // begin of the running instruction
};

struct WorkerState {
  PassId pass;
  std::size_t index = 0;  // of the worker in the group
  std::size_t block = 0;
  std::array<StreamState, stream_count> streams;
  std::uint32_t posted = 0;  // number of exchanges
  Instant posted_at;         // when the last of them, or the last collective that overlaps with kernels, was posted
  Instant met_at{};          // when the last collective of the group began
  Duration peer_wait;        // idle compute: waiting for ranks that had not posted their side
};

class ExactStep final : public StepRun {
 public:
  ExactStep(const StepSetting& setting, bool queue_all)
      : StepRun(setting, true),
        queue_all_(queue_all || machine_.record_instructions || machine_.processors),
        looks_for_serial_links_(setting.alone && !queue_all),
        set_up_(setting.connections),
        board_(pipeline_, flows_, queue_),
        experts_(pipeline_, program_.plan().expert_ranks),
        groups_(pipeline_.passes()),
        workers_(pipeline_.workers()) {
    if (machine_.processors) processors_.emplace(*machine_.processors, queue_, kernels_ended);
  }

  void handle_pass(const Event& event) override {
    if (event.tag == worker_ended) {
      end_pass_of(event.actor);
    } else if (event.tag == kernels_ended) {
      for (const std::size_t worker : processors_->ended(event.actor)) shared_kernel_ended(worker);
    } else if (event.tag < ExchangeBoard::first_tag) {
      instruction_ended(event.actor, event.tag);
    } else {
      for (const auto& member : board_.handle(event)) exchange_may_have_ended(member);
    }
  }

  void pass_rate_changed(std::uint32_t key) override { board_.rate_changed(key); }

  // The kernels of one worker that runs the pass give the share, because the ranks of a ring stay close together.
  [[nodiscard]] double share_sent(PassId id) const override {
    const auto& group = groups_[id.index()];
    if (group == nullptr) return 1;
    if (group->is_private) return group->share_done(queue_.now());
    for (const auto& [worker, index] : group->places) {
      const WorkerState& state = workers_[worker.index()];
      if (progress_.current(worker) != id || state.pass != id) continue;
      return hdpsim::share_sent(group->priced.program, state.block, state.streams[compute].iteration);
    }
    return 1;
  }

 private:
  static constexpr auto compute = static_cast<std::size_t>(Stream::compute);
  static constexpr std::uint32_t worker_ended = stream_count;  // lower tags: an instruction of that stream ended
  static constexpr std::uint32_t kernels_ended = stream_count + 1;

  const Block& block_of(const WorkerState& state) const {
    return groups_[state.pass.index()]->priced.program.blocks[state.block];
  }

  // Each worker starts by itself; the ring makes it wait for the others where it needs them.
  void arrive(WorkerId worker, PassId pass, bool all_are_here) override {
    open_group(pass);
    GroupProgram& group = *groups_[pass.index()];
    WorkerState& state = workers_[worker.index()];
    state.pass = pass;
    state.index = group.place_of(worker);
    state.posted = 0;
    state.peer_wait = Duration{};
    if (group.starts_together) {
      if (all_are_here) start_together(pass);
    } else if (group.is_private) {
      group.begins[state.index] = queue_.now();
      if (all_are_here) run_private(pass);
    } else {
      enter_block(worker.index(), 0);
    }
  }

  void start_together(PassId id) {
    GroupProgram& group = *groups_[id.index()];
    const std::vector<WorkerId> workers = pipeline_.group(id);
    group.priced.delay_start(set_up_.connect(pipeline_.micro_batch(id).group, pipeline_.pass(id).stage));
    for (const WorkerId worker : workers) {
      timeline_.ranks[worker.index()][Activity::group_wait] += queue_.now() - free_since_[worker.index()];
    }
    if (group.is_private) {
      group.begins.assign(workers.size(), queue_.now());
      run_private(id);
    } else {
      for (const WorkerId worker : workers) enter_block(worker.index(), 0);
    }
  }

  void open_group(PassId id) {
    auto& group = groups_[id.index()];
    if (group) return;
    const MicroBatch& micro_batch = pipeline_.micro_batch(id);
    const std::int64_t stage = pipeline_.pass(id).stage;
    const std::size_t ranks = micro_batch.group.size();
    std::vector<Hop> hops = ring_hops(program_, id, machine_);
    group = std::make_unique<GroupProgram>(price(program_, id, hops, machine_), pipeline_.group(id));
    group->starts_together = set_up_.is_due(micro_batch.group, stage);
    add_evidence(group->priced, pipeline_.group(id), machine_, timeline_.evidence);
    add_ring_traffic(group->priced.program, hops, 1, links_);
    count_collectives(id, group->priced, pipeline_.group(id));
    make_private(hops);
    intervals_[id.index()].begin = queue_.now();
    // Weight gradients need no ring: each worker runs at its own pace.
    const bool rings = pipeline_.pass(id).kind != PassKind::weight_gradient;
    group->is_private = !queue_all_ && !experts_.joins_ranks() && (rings || ranks == 1) &&
                        std::all_of(hops.begin(), hops.end(), [](const Hop& hop) { return hop.is_private; });
    if (group->is_private) {
      group->hops = std::move(hops);
      group->begins.resize(ranks);
    } else {
      board_.open(id, std::move(hops), group->priced.program.sharing);
    }
  }

  // Makes the hops of a ring over serial links private. The serial links of the step are only looked for when some ring
  // shares a link.
  void make_private(std::vector<Hop>& hops) {
    const auto is_private = [](const Hop& hop) { return hop.is_private; };
    if (!looks_for_serial_links_ || std::all_of(hops.begin(), hops.end(), is_private)) return;
    if (!serial_links_) serial_links_.emplace(program_, machine_);
    for (Hop& hop : hops) serial_links_->make_private(hop);
  }

  // No worker can end before the last one has begun, since every rank needs the keys of all others.
  void run_private(PassId id) {
    GroupProgram& group = *groups_[id.index()];
    const std::vector<WorkerId> workers = pipeline_.group(id);
    std::vector<double> speeds;
    speeds.reserve(workers.size());
    for (const WorkerId worker : workers) speeds.push_back(machine_.speed[worker.index()]);
    const PrivateRing::Outcome outcome = PrivateRing(group.priced, group.hops, speeds).run(group.begins);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      timeline_.ranks[workers[i].index()] += outcome.booked[i];
      const auto actor = static_cast<std::uint32_t>(workers[i].index());
      queue_.schedule_after(outcome.ends[i] - queue_.now(), actor, worker_ended);
    }
    group.began = intervals_[id.index()].begin;
    group.ends = *std::max_element(outcome.ends.begin(), outcome.ends.end());
    timeline_.events += outcome.events - workers.size();  // the queue counts the ends of the workers
  }

  void enter_block(std::size_t worker, std::size_t block) {
    WorkerState& state = workers_[worker];
    state.block = block;
    for (StreamState& stream : state.streams) stream = {0, 0, false, queue_.now()};
    advance(worker);
  }

  // Starts every instruction that can start on any stream; ends the block when all streams have ended it.
  void advance(std::size_t worker) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t stream = 0; stream < stream_count; ++stream) moved = try_issue(worker, stream) || moved;
    }
    const WorkerState& state = workers_[worker];
    const auto& lists = groups_[state.pass.index()]->streams[state.block];
    const std::int64_t iterations = block_of(state).iterations;
    for (std::size_t stream = 0; stream < stream_count; ++stream) {
      if (!lists[stream].empty() && state.streams[stream].iteration < iterations) return;
    }
    end_block(worker);
  }

  // Returns true if an instruction was skipped, so that another one may be able to start.
  bool try_issue(std::size_t worker, std::size_t stream) {
    WorkerState& state = workers_[worker];
    StreamState& queue = state.streams[stream];
    const GroupProgram& group = *groups_[state.pass.index()];
    const auto& list = group.streams[state.block][stream];
    const Block& block = group.priced.program.blocks[state.block];
    if (list.empty() || queue.running || queue.iteration == block.iterations) return false;
    const std::uint32_t index = list[queue.next];
    const Instruction& instruction = block.body[index];
    if (!instruction.active(queue.iteration, block.iterations)) {
      complete(state, stream);
      return true;
    }
    if (!ready(state, group, instruction)) return false;
    queue.running = true;
    queue.began = queue_.now();
    if (stream == compute) book_wait(worker, instruction);
    if (instruction.opcode == Opcode::exchange) {
      ++state.posted;
      state.posted_at = queue_.now();
      board_.post(state.pass, state.index, group.priced.program.bytes[instruction.work]);
      return false;
    }
    const Duration time = group.priced.time(state.block, index, machine_.speed[worker]);
    if (instruction.opcode == Opcode::share) {
      meet_group(WorkerId(worker), instruction, time);
      return false;
    }
    if (meets_others(instruction, group.priced.program)) {
      meet(WorkerId(worker), time);
      return false;
    }
    if (processors_ && depends_on_device_speed(instruction.opcode)) {
      processors_->begin(worker, time);  // booked when it ends
      return false;
    }
    if (stream == compute) timeline_.ranks[worker][activity_of(instruction.opcode)] += time;
    queue_.schedule_after(time, static_cast<std::uint32_t>(worker), static_cast<std::uint32_t>(stream));
    return false;
  }

  [[nodiscard]] bool meets_others(const Instruction& instruction, const MicroBatchProgram& program) const {
    return experts_.joins_ranks() && instruction.opcode == Opcode::collective &&
           program.collectives[instruction.work].among == CollectiveGroup::experts;
  }

  void meet(WorkerId worker, Duration time) {
    const auto begun = experts_.come(worker, queue_.now(), time);
    if (!begun) return;
    for (const WorkerId member : begun->workers) {
      Breakdown& booked = timeline_.ranks[member.index()];
      booked[Activity::group_wait] += queue_.now() - experts_.came(member);
      booked[activity_of(Opcode::collective)] += begun->time;
      queue_.schedule_after(begun->time, static_cast<std::uint32_t>(member.index()), compute);
    }
  }

  // A collective of a group begins when the last of its ranks has come; all of them wait at the same one.
  void meet_group(WorkerId worker, const Instruction& instruction, Duration time) {
    WorkerState& state = workers_[worker.index()];
    GroupProgram& group = *groups_[state.pass.index()];
    const SharingCollective& collective = group.priced.program.shares[instruction.work];
    const auto subgroup = static_cast<std::size_t>(collective.party(group.priced.program.sharing));
    group.meetings.resize(group.places.size());
    auto& here = group.meetings[state.index / subgroup];
    here.emplace_back(worker, queue_.now());
    if (instruction.stream == Stream::comm) state.posted_at = queue_.now();
    if (here.size() < subgroup) return;
    for (const auto& [member, came] : std::exchange(here, {})) {
      workers_[member.index()].met_at = queue_.now();
      if (instruction.stream == Stream::compute) {
        Breakdown& booked = timeline_.ranks[member.index()];
        booked[Activity::group_wait] += queue_.now() - came;
        booked[activity_of(Opcode::share)] += time;
      }
      const auto stream = static_cast<std::uint32_t>(instruction.stream);
      queue_.schedule_after(time, static_cast<std::uint32_t>(member.index()), stream);
    }
  }

  // A stream completes its instructions in order, so that its position says how often each of them has ended.
  static bool ready(const WorkerState& state, const GroupProgram& group, const Instruction& instruction) {
    const std::int64_t iteration = state.streams[static_cast<std::size_t>(instruction.stream)].iteration;
    const std::vector<Instruction>& body = group.priced.program.blocks[state.block].body;
    for (const Dependency& dependency : instruction.needed()) {
      const StreamState& on = state.streams[static_cast<std::size_t>(body[dependency.instruction].stream)];
      const bool in_this_iteration = group.turns[state.block][dependency.instruction] < on.next;
      if (on.iteration + (in_this_iteration ? 1 : 0) + dependency.iterations_back <= iteration) return false;
    }
    return true;
  }

  // Books the idle time of the compute stream, which waited for ranks of the ring that had not posted their side of an
  // exchange, for messages under way, or for a copy.
  void book_wait(std::size_t worker, const Instruction& instruction) {
    WorkerState& state = workers_[worker];
    const Duration idle = queue_.now() - state.streams[compute].free_since;
    Breakdown& booked = timeline_.ranks[worker];
    const Activity waited_for = waits_for(state, instruction);
    booked[Activity::group_wait] += state.peer_wait;
    booked[waited_for] += idle - state.peer_wait;
    state.peer_wait = Duration{};
  }

  // The activity of the dependency that has ended just now: it is the last instruction that its stream has completed.
  [[nodiscard]] Activity waits_for(const WorkerState& state, const Instruction& instruction) const {
    const auto& lists = groups_[state.pass.index()]->streams[state.block];
    const auto end_of = [&](const Dependency& dependency) {
      const auto stream = static_cast<std::size_t>(block_of(state).body[dependency.instruction].stream);
      const StreamState& on = state.streams[stream];
      const std::uint32_t last = on.next > 0 ? lists[stream][on.next - 1] : lists[stream].back();
      return last == dependency.instruction ? on.free_since : Instant{};
    };
    return start_of(instruction, block_of(state), state.streams[compute].free_since, end_of).waited_for;
  }

  // An exchange has ended. If compute was idle meanwhile, the time until the message began was a wait for the peer.
  void note_peer_wait(WorkerState& state, Instant began) const {
    const StreamState& kernels = state.streams[compute];
    if (kernels.running) return;
    const Instant since = std::max(state.posted_at, kernels.free_since);
    if (began > since) state.peer_wait += began - since;
  }

  void complete(WorkerState& state, std::size_t stream) {
    StreamState& queue = state.streams[stream];
    const auto& list = groups_[state.pass.index()]->streams[state.block][stream];
    if (machine_.record_instructions && queue.running) record(state, stream, list[queue.next]);
    queue.running = false;
    queue.free_since = queue_.now();
    if (++queue.next == list.size()) {
      queue.next = 0;
      ++queue.iteration;
    }
  }

  void record(const WorkerState& state, std::size_t stream, std::uint32_t instruction) {
    const StagePass pass = pipeline_.pass(state.pass);
    timeline_.instructions.push_back({.rank = pipeline_.micro_batch(state.pass).group[state.index],
                                      .micro_batch = pass.micro_batch,
                                      .block = static_cast<std::uint32_t>(state.block),
                                      .iteration = static_cast<std::uint32_t>(state.streams[stream].iteration),
                                      .instruction = instruction,
                                      .opcode = block_of(state).body[instruction].opcode,
                                      .stream = static_cast<Stream>(stream),
                                      .begin = state.streams[stream].began,
                                      .end = queue_.now(),
                                      .chunk = static_cast<std::uint32_t>(pass.chunk),
                                      .stage = static_cast<std::uint32_t>(pass.stage),
                                      .kind = pass.kind});
  }

  void shared_kernel_ended(std::size_t worker) {
    const WorkerState& state = workers_[worker];
    const StreamState& kernels = state.streams[compute];
    const std::uint32_t index = groups_[state.pass.index()]->streams[state.block][compute][kernels.next];
    timeline_.ranks[worker][activity_of(block_of(state).body[index].opcode)] += queue_.now() - kernels.began;
    instruction_ended(worker, compute);
  }

  // Of the communication stream only collectives of the group end by an event of their own.
  void instruction_ended(std::size_t worker, std::size_t stream) {
    WorkerState& state = workers_[worker];
    if (stream == static_cast<std::size_t>(Stream::comm)) note_peer_wait(state, state.met_at);
    complete(state, stream);
    advance(worker);
  }

  void exchange_may_have_ended(const ExchangeBoard::Member& member) {
    const WorkerId worker =
        pipeline_.worker(pipeline_.micro_batch(member.pass).group[member.index], pipeline_.pass(member.pass).stage);
    WorkerState& state = workers_[worker.index()];
    constexpr auto comm = static_cast<std::size_t>(Stream::comm);
    const bool here = state.pass == member.pass && state.streams[comm].running;
    if (!here || board_.ended(member.pass, member.index) < state.posted) return;
    note_peer_wait(state, board_.last_received_began(member.pass, member.index));
    complete(state, comm);
    advance(worker.index());
  }

  void end_block(std::size_t worker) {
    WorkerState& state = workers_[worker];
    std::array<Instant, stream_count> ends;
    for (std::size_t stream = 0; stream < stream_count; ++stream) ends[stream] = state.streams[stream].free_since;
    const auto [end, waited_for] = end_of_block(ends);
    const Duration drained = end - state.streams[compute].free_since;
    if (drained > Duration{}) {
      timeline_.ranks[worker][waited_for] += drained - state.peer_wait;
      timeline_.ranks[worker][Activity::group_wait] += state.peer_wait;
      state.peer_wait = Duration{};
    }
    if (state.block + 1 < groups_[state.pass.index()]->priced.program.blocks.size()) {
      enter_block(worker, state.block + 1);
    } else {
      end_pass_of(worker);
    }
  }

  void end_pass_of(std::size_t worker) {
    const PassId id = workers_[worker].pass;
    auto& group = groups_[id.index()];
    intervals_[id.index()].end = queue_.now();
    if (--group->ranks_left == 0) {
      board_.close(id);
      group.reset();
    }
    end_pass(WorkerId(worker));
    go_on(WorkerId(worker));
  }

  bool queue_all_;
  bool looks_for_serial_links_;
  std::optional<SerialLinks> serial_links_;     // made on first use
  std::optional<SharedProcessors> processors_;  // if workers share them
  ConnectionSetUp& set_up_;
  ExchangeBoard board_;
  ExpertBoard experts_;
  std::vector<std::unique_ptr<GroupProgram>> groups_;  // by pass, while it runs
  std::vector<WorkerState> workers_;
};

}  // namespace

std::unique_ptr<StepRun> make_exact_step(const StepSetting& setting, bool queue_all) {
  return std::make_unique<ExactStep>(setting, queue_all);
}

}  // namespace hdpsim
