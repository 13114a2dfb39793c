#include "sim/report/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sim/base/quantity_text.h"
#include "sim/report/gzip_file.h"
#include "sim/report/lane.h"
#include "sim/report/link_load.h"

namespace hdpsim {
namespace {

using nlohmann::json;

constexpr std::size_t shown_links = 8;
constexpr std::size_t stretches = 1000;

// Between two samples memory changes evenly, but counters know steps alone: so many.
constexpr std::size_t memory_steps = 8;

// Threads of a process: stage by stage the micro-batches, then the streams.
constexpr std::uint32_t threads_of_stage = 1 + stream_count;
constexpr std::uint32_t micro_batch_thread(std::int64_t stage) {
  return 1 + static_cast<std::uint32_t>(stage) * threads_of_stage;
}
constexpr std::uint32_t thread_of(std::int64_t stage, Stream stream) {
  return micro_batch_thread(stage) + 1 + static_cast<std::uint32_t>(stream);
}
constexpr bool shows_micro_batches(std::uint32_t thread) {
  return thread % threads_of_stage == 1;
}

// Microseconds, to the picosecond.
std::string microseconds(Duration time) {
  constexpr std::int64_t picoseconds_a_microsecond = 1'000'000;
  const std::int64_t ps = time.picoseconds();
  return fmt::format("{}.{:06}", ps / picoseconds_a_microsecond, ps % picoseconds_a_microsecond);
}

/// One line of the file without the text around it.
struct Event {
  char phase = 'X';
  Instant at;
  Duration lasts{};
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
  std::size_t source = 0;  ///< X: which record or pass. s, f: the number of the arrow. C: which load or sample.
};

// In the order of time. At one time viewers want what lasts no time first, for it ended before the next began; then
// what encloses before what is enclosed; then what is tied to all that has begun.
bool in_order(const Event& a, const Event& b) {
  const auto turn = [](const Event& event) {
    return event.phase == 'X' && event.lasts == Duration{} ? 0 : event.phase == 'X' ? 1 : event.phase == 's' ? 2 : 3;
  };
  return std::tuple(a.at, turn(a), b.lasts, a.process, a.thread) <
         std::tuple(b.at, turn(b), a.lasts, b.process, b.thread);
}

/// The lines of a list, each in its place in the file.
class EventFile {
 public:
  explicit EventFile(const std::filesystem::path& path) : file_(path) {}

  void begin(const std::string& head) { text_ = head; }
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    if (text_.size() > full) flush();
  }
  void end(const std::string& tail) {
    text_ += tail;
    flush();
    file_.finish();
  }

 private:
  static constexpr std::size_t full = 1U << 16U;

  void flush() {
    file_.write(text_);
    text_.clear();
  }

  GzipFile file_;
  std::string text_;
  bool is_first_ = true;
};

/// The events of one step.
class StepEvents {
 public:
  StepEvents(const TracedStep& step, const TraceSelection& selection, std::uint32_t first_process)
      : step_(step),
        plan_(step.program.plan()),
        pipeline_(step.program.pipeline()),
        ranks_(selection.ranks),
        window_{Instant::at(selection.from), Instant::at(std::min(selection.to, step.timeline.step_time))},
        first_process_(first_process),
        most_(selection.most_instructions) {
    add_passes();
    add_instructions();
    add_arrows();
    add_memory();
    add_loads();
  }

  [[nodiscard]] std::uint32_t next_process() const { return links_process() + 1; }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }

  /// What the file says of the step.
  [[nodiscard]] json summary() const {
    json shown = json::array();
    for (const HdpRank rank : ranks_) shown.push_back(rank.index());
    json workers = json::array();
    for (const WorkerId worker : workers_of(pipeline_, ranks_)) workers.push_back(worker_summary(worker));
    return {{"title", step_.title},
            {"plan", plan_.policy},
            {"step", plan_.step},
            {"step_time_s", step_.timeline.step_time.seconds()},
            {"ranks", plan_.ranks},
            {"stages", pipeline_.stages()},
            {"shown_ranks", shown},
            {"workers", workers},
            {"instructions", grain_of_instructions()}};
  }

  void name_processes(EventFile& file) const {
    for (const HdpRank rank : ranks_) {
      name_process(file, process_of(rank), rank_name(rank));
      for (std::int64_t stage = 0; stage < pipeline_.stages(); ++stage) name_threads(file, rank, stage);
    }
    if (!loads_.empty()) name_process(file, links_process(), titled("busiest links"));
  }

  void write(const Event& event, EventFile& file) const {
    if (event.phase == 'C')
      return event.process == links_process() ? write_load(event, file) : write_memory(event, file);
    if (event.phase != 'X') return write_arrow(event, file);
    if (shows_micro_batches(event.thread)) return write_pass(event, file);
    write_instruction(event, file);
  }

 private:
  [[nodiscard]] std::uint32_t process_of(HdpRank rank) const {
    return first_process_ + static_cast<std::uint32_t>(rank.index());
  }
  [[nodiscard]] std::uint32_t links_process() const { return first_process_ + static_cast<std::uint32_t>(plan_.ranks); }
  [[nodiscard]] std::string titled(const std::string& name) const {
    return step_.title.empty() ? name : fmt::format("{} {}", step_.title, name);
  }
  [[nodiscard]] std::string rank_name(HdpRank rank) const {
    const std::string name = titled(fmt::format("rank {}", rank.index()));
    if (step_.machine == nullptr || step_.machine->placement == nullptr) return name;
    const auto device = [&](std::int64_t stage, std::int64_t shard) {
      return step_.machine->placement->device(rank, stage, shard).index();
    };
    const std::size_t first = device(0, 0);
    const std::size_t last = device(pipeline_.stages() - 1, step_.machine->tp - 1);
    if (first == last) return fmt::format("{} (gpu {})", name, first);
    const bool in_a_row = last - first + 1 == static_cast<std::size_t>(pipeline_.stages() * step_.machine->tp);
    return fmt::format("{} (gpus {} {} {})", name, first, in_a_row ? "to" : "...", last);
  }
  [[nodiscard]] json worker_summary(WorkerId worker) const {
    const Breakdown& breakdown = step_.timeline.ranks.at(worker.index());
    json seconds = json::object();
    for (std::size_t i = 0; i < activity_count; ++i) {
      const auto activity = static_cast<Activity>(i);
      seconds[std::string(activity_name(activity))] = breakdown[activity].seconds();
    }
    return {
        {"rank", pipeline_.rank_of(worker).index()}, {"stage", pipeline_.stage_of(worker)}, {"breakdown_s", seconds}};
  }
  [[nodiscard]] std::string grain_of_instructions() const {
    if (step_.timeline.instructions.empty()) return "not known: micro-batches only";
    return every_ == 1 ? "all" : fmt::format("of every {} turns of a loop the first", every_);
  }

  // ---- What happened

  void add_span(Instant begin, Instant end, std::uint32_t process, std::uint32_t thread, std::size_t source) {
    if (end < window_.from || begin > window_.to) return;
    events_.push_back({'X', begin, end - begin, process, thread, source});
  }

  void add_passes() {
    for (const Lane& lane : lanes_of(pipeline_, step_.timeline, workers_of(pipeline_, ranks_))) {
      const std::uint32_t process = process_of(pipeline_.rank_of(lane.worker));
      for (const Lane::Piece& piece : lane.pieces) {
        const std::uint32_t thread = micro_batch_thread(pipeline_.stage_of(lane.worker));
        add_span(piece.begin, piece.end, process, thread, piece.pass.index());
        passes_[{piece.pass, process}] = piece;
      }
    }
    if (pipeline_.stages() > 1) add_stage_arrows();
  }

  // From each pass to the one on another stage that needs what it computes.
  void add_stage_arrows() {
    for (const auto& [key, piece] : passes_) {
      const auto target = pipeline_.target(key.first);
      const auto received = target ? passes_.find({*target, key.second}) : passes_.end();
      if (received == passes_.end() || received->second.begin < piece.end) continue;
      const auto thread = [&](PassId pass) { return micro_batch_thread(pipeline_.pass(pass).stage); };
      // Viewers tie an arrow to what encloses its begin: the last of the pass that sends.
      const Instant begin = piece.begin + (piece.end - piece.begin).scaled(0.999);
      if (!shown(begin) || !shown(received->second.begin)) continue;
      events_.push_back({'s', begin, {}, key.second, thread(key.first), arrows_});
      events_.push_back({'f', received->second.begin, {}, key.second, thread(*target), arrows_});
      ++arrows_;
    }
  }

  [[nodiscard]] bool shown(Instant at) const { return at >= window_.from && at <= window_.to; }

  void add_instructions() {
    keep_records();
    for (const InstructionRecord* record : kept_) {
      const std::size_t source = static_cast<std::size_t>(record - step_.timeline.instructions.data());
      add_span(record->begin, record->end, process_of(record->rank), thread_of(stage_of(*record), record->stream),
               source);
      programs_.try_emplace(pass_of(*record, pipeline_));
    }
    for (auto& [id, program] : programs_) program = step_.program.pass(id);
  }

  [[nodiscard]] std::int64_t stage_of(const InstructionRecord& record) const {
    return record.chunk % pipeline_.stages();
  }

  void keep_records() {
    std::vector<bool> wanted(static_cast<std::size_t>(plan_.ranks), false);
    for (const HdpRank rank : ranks_) wanted.at(rank.index()) = true;
    for (const InstructionRecord& record : step_.timeline.instructions) {
      if (!wanted[record.rank.index()] || record.end < window_.from || record.begin > window_.to) continue;
      kept_.push_back(&record);
    }
    while (kept_.size() > most_ && every_ < (1U << 30U)) {
      every_ *= 2;
      std::erase_if(kept_, [&](const InstructionRecord* record) { return record->iteration % every_ != 0; });
    }
  }

  // An exchange is known by its place in the program; all ranks of the group run it.
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
    for (const auto& [id, program] : programs_) {
      const std::vector<HdpRank>& group = pipeline_.micro_batch(id).group;
      for (std::size_t i = 0; i < group.size(); ++i) next[{id, group[i]}] = group[(i + 1) % group.size()];
    }
    for (const auto& [key, sender] : exchanges) {
      const HdpRank receiver = next.at({pass_of(*sender, pipeline_), sender->rank});
      const auto received = exchanges.find({key.first, receiver});
      if (receiver != sender->rank && received != exchanges.end()) add_arrow(*sender, *received->second);
    }
  }

  // Viewers tie the ends of an arrow to the events around them: both must lie within.
  void add_arrow(const InstructionRecord& sender, const InstructionRecord& receiver) {
    const Instant posted = std::max(sender.begin, receiver.begin);
    if (posted >= receiver.end || sender.begin >= sender.end) return;
    events_.push_back(
        {'s', sender.begin, {}, process_of(sender.rank), thread_of(stage_of(sender), sender.stream), arrows_});
    events_.push_back(
        {'f', posted, {}, process_of(receiver.rank), thread_of(stage_of(receiver), receiver.stream), arrows_});
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
    if (!shown(Instant::at(sample.at))) return;
    events_.push_back({'C', Instant::at(sample.at), {}, process_of(rank), 0, samples_.size()});
    samples_.push_back(sample);
  }

  void add_loads() {
    if (step_.machine == nullptr || step_.machine->network == nullptr || step_.timeline.link_bytes.empty()) return;
    loads_ = link_loads(step_.program, step_.timeline, *step_.machine, window_, shown_links, stretches);
    const double length = (window_.to - window_.from).seconds() / static_cast<double>(stretches);
    for (std::size_t stretch = 0; stretch < stretches && !loads_.empty(); ++stretch) {
      const Instant at = window_.from + Duration::seconds(length * static_cast<double>(stretch));
      for (std::size_t link = 0; link < loads_.size(); ++link) {
        const bool same = stretch > 0 && loads_[link].shares[stretch] == loads_[link].shares[stretch - 1];
        if (!same) events_.push_back({'C', at, {}, links_process(), 0, stretch * loads_.size() + link});
      }
    }
  }

  // ---- How it is written

  static void name_process(EventFile& file, std::uint32_t process, const std::string& name) {
    file.add(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})", process, json(name).dump());
    file.add(R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}}}})", process,
             process);
  }
  static void name_thread(EventFile& file, std::uint32_t process, std::uint32_t thread, std::string_view name) {
    file.add(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", process, thread,
             json(name).dump());
    file.add(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", process, thread,
             thread);
  }

  void name_threads(EventFile& file, HdpRank rank, std::int64_t stage) const {
    const std::string of_stage = pipeline_.stages() == 1 ? "" : fmt::format("stage {} ", stage);
    name_thread(file, process_of(rank), micro_batch_thread(stage), of_stage + "micro-batches");
    if (kept_.empty()) return;
    for (std::size_t i = 0; i < stream_count; ++i) {
      const auto stream = static_cast<Stream>(i);
      name_thread(file, process_of(rank), thread_of(stage, stream), of_stage + std::string(stream_name(stream)));
    }
  }

  void write_pass(const Event& event, EventFile& file) const {
    const PassId id(event.source);
    const MicroBatch& micro_batch = pipeline_.micro_batch(id);
    const std::size_t ranks = micro_batch.group.size();
    file.add(R"({{"ph":"X","name":"{}{} on {} rank{}","cat":"micro-batch","ts":{},"dur":{},"pid":{},"tid":{},"args":{{)"
             R"("micro_batch":{},"ranks":{},"spans":{},"tokens":{},"tokens_per_rank":{},"offload":{}{}}}}})",
             name_of_pass(id), count_text(micro_batch.tokens()), ranks, ranks == 1 ? "" : "s",
             microseconds(event.at.since_start()), microseconds(event.lasts), event.process, event.thread,
             pipeline_.micro_batch_id(id).index(), ranks, micro_batch.spans.size(), micro_batch.tokens(),
             micro_batch.tokens_per_rank(), micro_batch.offload, place_of_pass(id));
  }

  // Before the tokens: "forward of 3: 8Ki on 2 ranks".
  [[nodiscard]] std::string name_of_pass(PassId id) const {
    if (pipeline_.stages() == 1) return {};
    return fmt::format("{} of {}: ", pass_kind_name(pipeline_.pass(id).kind), pipeline_.micro_batch_id(id).index());
  }
  [[nodiscard]] std::string place_of_pass(PassId id) const {
    if (pipeline_.stages() == 1) return {};
    const StagePass pass = pipeline_.pass(id);
    return fmt::format(R"(,"stage":{},"chunk":{},"pass":"{}")", pass.stage, pass.chunk, pass_kind_name(pass.kind));
  }

  void write_instruction(const Event& event, EventFile& file) const {
    const InstructionRecord& record = step_.timeline.instructions[event.source];
    const MicroBatchProgram& program = programs_.at(pass_of(record, pipeline_));
    const Instruction& instruction = program.blocks.at(record.block).body.at(record.instruction);
    file.add(
        R"({{"ph":"X","name":"{}","cat":"{}","ts":{},"dur":{},"pid":{},"tid":{},"args":{{"micro_batch":{},"block":{},)"
        R"("iteration":{},"instruction":{}{}}}}})",
        opcode_name(record.opcode), activity_name(activity_of(record.opcode)), microseconds(event.at.since_start()),
        microseconds(event.lasts), event.process, event.thread, record.micro_batch.index(), record.block,
        record.iteration, record.instruction, details_of(instruction, program));
  }

  static std::string details_of(const Instruction& instruction, const MicroBatchProgram& program) {
    switch (instruction.opcode) {
      case Opcode::attention:
      case Opcode::merge:
        return fmt::format(R"(,"ring_step":{})", instruction.ring_step);
      case Opcode::collective:
        return fmt::format(R"(,"bytes":{})", program.collectives.at(instruction.work).bytes.count());
      case Opcode::exchange:
      case Opcode::offload:
      case Opcode::prefetch:
      case Opcode::gather:
      case Opcode::reduce:
        return fmt::format(R"(,"bytes":{})", program.bytes.at(instruction.work).count());
      case Opcode::dense:
      case Opcode::overhead:
      case Opcode::expert_wait:
      case Opcode::issue:
        return {};
    }
    return {};
  }

  void write_arrow(const Event& event, EventFile& file) const {
    const bool to_stage = shows_micro_batches(event.thread);
    // The first process makes the ids of two steps differ.
    file.add(R"({{"ph":"{}","name":"to the next {}","cat":"{}","id":"{}.{}","ts":{},"pid":{},"tid":{}{}}})",
             event.phase, to_stage ? "stage" : "rank", to_stage ? "pipeline" : "ring", first_process_, event.source,
             microseconds(event.at.since_start()), event.process, event.thread,
             event.phase == 'f' ? R"(,"bp":"e")" : "");
  }

  void write_memory(const Event& event, EventFile& file) const {
    const MemorySample& sample = samples_[event.source];
    const std::string at = microseconds(event.at.since_start());
    const std::string_view of_stage = pipeline_.stages() == 1 ? "" : " of stage 0";
    file.add(R"({{"ph":"C","name":"device memory{}, GB of {:.4g}","ts":{},"pid":{},"tid":0,"args":{{"GB":{:.3f}}}}})",
             of_stage, step_.device_memory.gigabytes(), at, event.process, sample.device.gigabytes());
    file.add(R"({{"ph":"C","name":"host memory{}, GB","ts":{},"pid":{},"tid":0,"args":{{"GB":{:.3f}}}}})", of_stage, at,
             event.process, sample.host.gigabytes());
  }

  void write_load(const Event& event, EventFile& file) const {
    const LinkLoad& load = loads_[event.source % loads_.size()];
    file.add(R"({{"ph":"C","name":{},"ts":{},"pid":{},"tid":0,"args":{{"% of its rate":{:.2f}}}}})",
             json(load.name).dump(), microseconds(event.at.since_start()), event.process,
             100 * load.shares[event.source / loads_.size()]);
  }

  const TracedStep& step_;
  const Plan& plan_;
  const Pipeline& pipeline_;
  const std::vector<HdpRank>& ranks_;
  TimeWindow window_;
  std::uint32_t first_process_;
  std::size_t most_;
  std::uint32_t every_ = 1;                                         // turn of a loop is shown
  std::vector<const InstructionRecord*> kept_;                      // those that are shown
  std::map<PassId, MicroBatchProgram> programs_;                    // of theirs
  std::map<std::pair<PassId, std::uint32_t>, Lane::Piece> passes_;  // by pass and process
  std::vector<MemorySample> samples_;
  std::vector<LinkLoad> loads_;
  std::size_t arrows_ = 0;
  std::vector<Event> events_;
};

}  // namespace

void write_trace_events(const std::filesystem::path& path, const std::vector<TracedStep>& steps,
                        const TraceSelection& selection) {
  std::vector<StepEvents> all;
  all.reserve(steps.size());
  std::uint32_t process = 1;  // 0 is the idle process of operating systems, which viewers treat as such
  json summaries = json::array();
  for (const TracedStep& step : steps) {
    all.emplace_back(step, selection, process);
    process = all.back().next_process();
    summaries.push_back(all.back().summary());
  }

  EventFile file(path);
  file.begin(fmt::format(R"({{"displayTimeUnit":"ms","otherData":{},"traceEvents":[)",
                         json{{"schema", "hdpsim.trace_events/1"}, {"steps", summaries}}.dump()));
  for (const StepEvents& step : all) step.name_processes(file);
  std::vector<std::pair<const StepEvents*, const Event*>> order;
  for (const StepEvents& step : all) {
    for (const Event& event : step.events()) order.emplace_back(&step, &event);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return in_order(*a.second, *b.second); });
  for (const auto& [step, event] : order) step->write(*event, file);
  file.end("\n]}\n");
}

std::int64_t instructions_of(const Program& program) {
  const Pipeline& pipeline = program.pipeline();
  std::int64_t sum = 0;
  for (std::size_t id = 0; id < pipeline.passes(); ++id) {
    std::int64_t of_rank = 0;
    for (const Block& block : program.pass(PassId(id)).blocks) {
      for (const Instruction& instruction : block.body) {
        const std::int64_t skipped = std::int64_t{instruction.first_iteration} + instruction.last_skipped;
        of_rank += std::max<std::int64_t>(block.iterations - skipped, 0);
      }
    }
    sum += of_rank * std::ssize(pipeline.micro_batch(PassId(id)).group);
  }
  return sum;
}

}  // namespace hdpsim
