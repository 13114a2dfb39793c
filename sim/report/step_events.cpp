#include "sim/report/step_events.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/report/lane.h"

namespace hdpsim {
namespace {

constexpr std::size_t shown_links = 8;
constexpr std::size_t intervals = 1000;

// Counter steps between two memory samples: memory changes evenly, but counters only know steps.
constexpr std::size_t memory_steps = 8;

/// Collects events in the order in which they are found.
class EventCollector {
 public:
  EventCollector(const TracedStep& step, const TraceSelection& selection, std::uint32_t first_process)
      : step_(step),
        pipeline_(step.program.pipeline()),
        ranks_(selection.ranks),
        window_{Instant::at(selection.from), Instant::at(std::min(selection.to, step.timeline.step_time))},
        most_(selection.most_instructions) {
    shown_.first_process = first_process;
    shown_.links_process = first_process + static_cast<std::uint32_t>(step.program.plan().ranks);
  }

  StepEvents collect() {
    add_passes();
    add_instructions();
    add_arrows();
    add_memory();
    add_loads();
    return std::move(shown_);
  }

 private:
  void add_span(Instant begin, Instant end, std::uint32_t process, std::uint32_t thread, std::size_t source) {
    if (end < window_.from || begin > window_.to) return;
    shown_.events.push_back({'X', begin, end - begin, process, thread, source});
  }

  void add_passes() {
    for (const Lane& lane : lanes_of(pipeline_, step_.timeline, workers_of(pipeline_, ranks_))) {
      const std::uint32_t process = shown_.process_of(pipeline_.rank_of(lane.worker));
      for (const Lane::Piece& piece : lane.pieces) {
        const std::uint32_t thread = micro_batch_thread(pipeline_.stage_of(lane.worker));
        add_span(piece.begin, piece.end, process, thread, piece.pass.index());
        passes_[{piece.pass, process}] = piece;
      }
    }
    if (pipeline_.stages() > 1) add_stage_arrows();
  }

  // Adds arrows from each pass to the pass on another stage that needs its result.
  void add_stage_arrows() {
    for (const auto& [key, piece] : passes_) {
      const auto target = pipeline_.target(key.first);
      const auto received = target ? passes_.find({*target, key.second}) : passes_.end();
      if (received == passes_.end() || received->second.begin < piece.end) continue;
      const auto thread = [&](PassId pass) { return micro_batch_thread(pipeline_.pass(pass).stage); };
      // Viewers attach an arrow to the event that encloses its begin: the end of the sending pass.
      const Instant begin = piece.begin + (piece.end - piece.begin).scaled(0.999);
      if (!in_window(begin) || !in_window(received->second.begin)) continue;
      shown_.events.push_back({'s', begin, {}, key.second, thread(key.first), arrows_});
      shown_.events.push_back({'f', received->second.begin, {}, key.second, thread(*target), arrows_});
      ++arrows_;
    }
  }

  [[nodiscard]] bool in_window(Instant at) const { return at >= window_.from && at <= window_.to; }

  void add_instructions() {
    keep_records();
    for (const InstructionRecord* record : kept_) {
      const std::size_t source = static_cast<std::size_t>(record - step_.timeline.instructions.data());
      add_span(record->begin, record->end, shown_.process_of(record->rank), thread_of(record->stage, record->stream),
               source);
      shown_.programs.try_emplace(pass_of(*record, pipeline_));
    }
    for (auto& [id, program] : shown_.programs) program = step_.program.pass(id);
  }

  void keep_records() {
    std::vector<bool> wanted(static_cast<std::size_t>(step_.program.plan().ranks), false);
    for (const HdpRank rank : ranks_) wanted.at(rank.index()) = true;
    for (const InstructionRecord& record : step_.timeline.instructions) {
      if (!wanted[record.rank.index()] || record.end < window_.from || record.begin > window_.to) continue;
      kept_.push_back(&record);
    }
    while (kept_.size() > most_ && shown_.every < (1U << 30U)) {
      shown_.every *= 2;
      std::erase_if(kept_, [&](const InstructionRecord* record) { return record->iteration % shown_.every != 0; });
    }
  }

  // A send/recv is identified by its place in the program; all ranks of the group run it.
  using Exchange = std::tuple<PassId, std::uint32_t, std::uint32_t, std::uint32_t>;
  using ExchangeAndRank = std::pair<Exchange, HdpRank>;

  void add_arrows() {
    std::map<ExchangeAndRank, const InstructionRecord*> exchanges;
    for (const InstructionRecord* record : kept_) {
      if (record->opcode != Opcode::exchange) continue;
      const Exchange exchange(pass_of(*record, pipeline_), record->block, record->iteration, record->instruction);
      exchanges.emplace(ExchangeAndRank(exchange, record->rank), record);
    }
    std::map<std::pair<PassId, HdpRank>, HdpRank> next;
    for (const auto& [id, program] : shown_.programs) {
      const std::vector<HdpRank>& group = pipeline_.micro_batch(id).group;
      for (std::size_t i = 0; i < group.size(); ++i) next[{id, group[i]}] = group[(i + 1) % group.size()];
    }
    for (const auto& [key, sender] : exchanges) {
      const HdpRank receiver = next.at({pass_of(*sender, pipeline_), sender->rank});
      const auto received = exchanges.find({key.first, receiver});
      if (receiver != sender->rank && received != exchanges.end()) add_arrow(*sender, *received->second);
    }
  }

  // Viewers attach the ends of an arrow to the events around them: both must lie within.
  void add_arrow(const InstructionRecord& sender, const InstructionRecord& receiver) {
    const Instant posted = std::max(sender.begin, receiver.begin);
    if (posted >= receiver.end || sender.begin >= sender.end) return;
    shown_.events.push_back(
        {'s', sender.begin, {}, shown_.process_of(sender.rank), thread_of(sender.stage, sender.stream), arrows_});
    shown_.events.push_back(
        {'f', posted, {}, shown_.process_of(receiver.rank), thread_of(receiver.stage, receiver.stream), arrows_});
    ++arrows_;
  }

  void add_memory() {
    for (const RankMemory& memory : step_.memory) {
      if (std::find(ranks_.begin(), ranks_.end(), memory.rank) == ranks_.end()) continue;
      for (std::size_t i = 0; i < memory.samples.size(); ++i) {
        const MemorySample& from = memory.samples[i];
        const MemorySample& to = memory.samples[std::min(i + 1, memory.samples.size() - 1)];
        const bool even = from.device == to.device && from.host == to.host;
        for (std::size_t k = 0; k < (even ? 1 : memory_steps); ++k) add_sample(memory.rank, between(from, to, k));
      }
    }
  }

  static MemorySample between(const MemorySample& from, const MemorySample& to, std::size_t step) {
    const double share = static_cast<double>(step) / static_cast<double>(memory_steps);
    const auto bytes = [&](Bytes a, Bytes b) { return a.scaled(1 - share) + b.scaled(share); };
    return {from.at + (to.at - from.at).scaled(share), bytes(from.device, to.device), bytes(from.host, to.host)};
  }

  void add_sample(HdpRank rank, const MemorySample& sample) {
    if (!in_window(Instant::at(sample.at))) return;
    shown_.events.push_back({'C', Instant::at(sample.at), {}, shown_.process_of(rank), 0, shown_.samples.size()});
    shown_.samples.push_back(sample);
  }

  void add_loads() {
    if (step_.machine == nullptr || step_.machine->network == nullptr || step_.timeline.links.empty()) return;
    shown_.loads = link_loads(step_.program, step_.timeline, *step_.machine, window_, shown_links, intervals);
    const double length = (window_.to - window_.from).seconds() / static_cast<double>(intervals);
    for (std::size_t interval = 0; interval < intervals && !shown_.loads.empty(); ++interval) {
      const Instant at = window_.from + Duration::seconds(length * static_cast<double>(interval));
      for (std::size_t link = 0; link < shown_.loads.size(); ++link) {
        const bool same =
            interval > 0 && shown_.loads[link].shares[interval] == shown_.loads[link].shares[interval - 1];
        if (same) continue;
        shown_.events.push_back({'C', at, {}, shown_.links_process, 0, interval * shown_.loads.size() + link});
      }
    }
  }

  const TracedStep& step_;
  const Pipeline& pipeline_;
  const std::vector<HdpRank>& ranks_;
  TimeWindow window_;
  std::size_t most_;
  std::vector<const InstructionRecord*> kept_;                      // shown instructions
  std::map<std::pair<PassId, std::uint32_t>, Lane::Piece> passes_;  // by pass and process
  std::size_t arrows_ = 0;
  StepEvents shown_;
};

}  // namespace

bool in_order(const TraceEvent& a, const TraceEvent& b) {
  const auto turn = [](const TraceEvent& event) {
    return event.phase == 'X' && event.lasts == Duration{} ? 0 : event.phase == 'X' ? 1 : event.phase == 's' ? 2 : 3;
  };
  return std::tuple(a.at, turn(a), b.lasts, a.process, a.thread) <
         std::tuple(b.at, turn(b), a.lasts, b.process, b.thread);
}

StepEvents events_of(const TracedStep& step, const TraceSelection& selection, std::uint32_t first_process) {
  return EventCollector(step, selection, first_process).collect();
}

}  // namespace hdpsim
