#include "sim/report/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/json.h"
#include "sim/report/gzip_file.h"
#include "sim/report/lane.h"
#include "sim/report/step_events.h"

namespace hdpsim {
namespace {

// The time in microseconds, with all digits down to a picosecond.
std::string microseconds(Duration time) {
  constexpr std::int64_t picoseconds_a_microsecond = 1'000'000;
  const std::int64_t ps = time.picoseconds();
  return fmt::format("{}.{:06}", ps / picoseconds_a_microsecond, ps % picoseconds_a_microsecond);
}

/// Writes the lines of a list, each in its place in the file.
class EventFile {
 public:
  explicit EventFile(const std::filesystem::path& path) : file_(path) {}

  void begin(const std::string& head) { text_ = head; }
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    append(text_, format, std::forward<Arguments>(arguments)...);
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

/// Writes the events of one step as JSON.
class StepWriter {
 public:
  StepWriter(const TracedStep& step, const TraceSelection& selection, std::uint32_t first_process)
      : step_(step),
        plan_(step.program.plan()),
        pipeline_(step.program.pipeline()),
        ranks_(selection.ranks),
        shown_(events_of(step, selection, first_process)) {}

  [[nodiscard]] std::uint32_t next_process() const { return shown_.links_process + 1; }
  [[nodiscard]] const std::vector<TraceEvent>& events() const { return shown_.events; }

  /// The summary of the step in the file.
  [[nodiscard]] Json summary() const {
    Json shown = Json::array();
    for (const HdpRank rank : ranks_) shown.push_back(rank.index());
    Json workers = Json::array();
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
      name_process(file, shown_.process_of(rank), rank_name(rank));
      for (std::int64_t stage = 0; stage < pipeline_.stages(); ++stage) name_threads(file, rank, stage);
    }
    if (!shown_.loads.empty()) name_process(file, shown_.links_process, titled("busiest links"));
  }

  void write(const TraceEvent& event, EventFile& file) const {
    if (event.phase == 'C') {
      return event.process == shown_.links_process ? write_load(event, file) : write_memory(event, file);
    }
    if (event.phase != 'X') return write_arrow(event, file);
    if (shows_micro_batches(event.thread)) return write_pass(event, file);
    write_instruction(event, file);
  }

 private:
  [[nodiscard]] std::string titled(const std::string& name) const {
    return step_.title.empty() ? name : fmt::format("{} {}", step_.title, name);
  }
  [[nodiscard]] std::string rank_name(HdpRank rank) const {
    std::string name = titled(fmt::format("rank {}", rank.index()));
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
  [[nodiscard]] Json worker_summary(WorkerId worker) const {
    const Breakdown& breakdown = step_.timeline.ranks.at(worker.index());
    Json seconds = Json::object();
    for (const Activity activity : all_activities) {
      seconds[std::string(activity_name(activity))] = breakdown[activity].seconds();
    }
    return {
        {"rank", pipeline_.rank_of(worker).index()}, {"stage", pipeline_.stage_of(worker)}, {"breakdown_s", seconds}};
  }
  [[nodiscard]] std::string grain_of_instructions() const {
    if (step_.timeline.instructions.empty()) return "not known: micro-batches only";
    return shown_.every == 1 ? "all" : fmt::format("of every {} turns of a loop the first", shown_.every);
  }

  static void name_process(EventFile& file, std::uint32_t process, const std::string& name) {
    file.add(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})", process, json_string(name));
    file.add(R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}}}})", process,
             process);
  }
  static void name_thread(EventFile& file, std::uint32_t process, std::uint32_t thread, std::string_view name) {
    file.add(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", process, thread,
             json_string(name));
    file.add(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", process, thread,
             thread);
  }

  void name_threads(EventFile& file, HdpRank rank, std::int64_t stage) const {
    const std::string of_stage = pipeline_.stages() == 1 ? "" : fmt::format("stage {} ", stage);
    name_thread(file, shown_.process_of(rank), micro_batch_thread(stage), of_stage + "micro-batches");
    if (shown_.programs.empty()) return;
    for (std::size_t i = 0; i < stream_count; ++i) {
      const auto stream = static_cast<Stream>(i);
      name_thread(file, shown_.process_of(rank), thread_of(stage, stream), of_stage + std::string(stream_name(stream)));
    }
  }

  void write_pass(const TraceEvent& event, EventFile& file) const {
    const PassId id(event.source);
    const MicroBatch& micro_batch = pipeline_.micro_batch(id);
    const std::size_t ranks = micro_batch.group.size();
    file.add(R"({{"ph":"X","name":"{}{} on {} rank{}","cat":"micro-batch","ts":{},"dur":{},"pid":{},"tid":{},"args":{{)"
             R"("micro_batch":{},"ranks":{},"spans":{},"tokens":{},"tokens_per_rank":{},"offload":{}{}}}}})",
             name_of_pass(id), count_text(micro_batch.tokens()), ranks, ranks == 1 ? "" : "s",
             microseconds(event.at.since_start()), microseconds(event.lasts), event.process, event.thread,
             pipeline_.micro_batch_id(id).index(), ranks, span_count(micro_batch), micro_batch.tokens(),
             micro_batch.tokens_per_rank(), micro_batch.offload, place_of_pass(id));
  }

  // The begin of a pass's name, before its tokens: "forward of 3: 8Ki on 2 ranks".
  [[nodiscard]] std::string name_of_pass(PassId id) const {
    if (pipeline_.stages() == 1) return {};
    return fmt::format("{} of {}: ", pass_kind_name(pipeline_.pass(id).kind), pipeline_.micro_batch_id(id).index());
  }
  [[nodiscard]] std::string place_of_pass(PassId id) const {
    if (pipeline_.stages() == 1) return {};
    const StagePass pass = pipeline_.pass(id);
    return fmt::format(R"(,"stage":{},"chunk":{},"pass":"{}")", pass.stage, pass.chunk, pass_kind_name(pass.kind));
  }

  void write_instruction(const TraceEvent& event, EventFile& file) const {
    const InstructionRecord& record = step_.timeline.instructions[event.source];
    const MicroBatchProgram& program = shown_.programs.at(pass_of(record, pipeline_));
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
        if (instruction.ring_step == local_step) return R"(,"local":true)";
        return fmt::format(R"(,"ring_step":{})", instruction.ring_step);
      case Opcode::collective:
        return fmt::format(R"(,"bytes":{})", program.collectives.at(instruction.work).bytes.count());
      case Opcode::share:
        return fmt::format(R"(,"bytes":{})", program.shares.at(instruction.work).bytes.count());
      case Opcode::exchange:
      case Opcode::offload:
      case Opcode::prefetch:
        return fmt::format(R"(,"bytes":{})", program.bytes.at(instruction.work).count());
      case Opcode::gather:
      case Opcode::reduce:
        return fmt::format(R"(,"bytes":{})", program.pools.at(instruction.work).all().count());
      case Opcode::dense:
      case Opcode::overhead:
      case Opcode::expert_wait:
      case Opcode::issue:
      case Opcode::rank_wait:
        return {};
    }
    return {};
  }

  void write_arrow(const TraceEvent& event, EventFile& file) const {
    const bool to_stage = shows_micro_batches(event.thread);
    // The first process makes the ids of two steps differ.
    file.add(R"({{"ph":"{}","name":"to the next {}","cat":"{}","id":"{}.{}","ts":{},"pid":{},"tid":{}{}}})",
             event.phase, to_stage ? "stage" : "rank", to_stage ? "pipeline" : "ring", shown_.first_process,
             event.source, microseconds(event.at.since_start()), event.process, event.thread,
             event.phase == 'f' ? R"(,"bp":"e")" : "");
  }

  void write_memory(const TraceEvent& event, EventFile& file) const {
    const MemorySample& sample = shown_.samples[event.source];
    const std::string at = microseconds(event.at.since_start());
    const std::string_view of_stage = pipeline_.stages() == 1 ? "" : " of stage 0";
    file.add(R"({{"ph":"C","name":"device memory{}, GB of {:.4g}","ts":{},"pid":{},"tid":0,"args":{{"GB":{:.3f}}}}})",
             of_stage, step_.device_memory.gigabytes(), at, event.process, sample.device.gigabytes());
    file.add(R"({{"ph":"C","name":"host memory{}, GB","ts":{},"pid":{},"tid":0,"args":{{"GB":{:.3f}}}}})", of_stage, at,
             event.process, sample.host.gigabytes());
  }

  void write_load(const TraceEvent& event, EventFile& file) const {
    const LinkLoad& load = shown_.loads[event.source % shown_.loads.size()];
    file.add(R"({{"ph":"C","name":{},"ts":{},"pid":{},"tid":0,"args":{{"% of its rate":{:.2f}}}}})",
             json_string(load.name), microseconds(event.at.since_start()), event.process,
             100 * load.shares[event.source / shown_.loads.size()]);
  }

  const TracedStep& step_;
  const Plan& plan_;
  const Pipeline& pipeline_;
  const std::vector<HdpRank>& ranks_;
  StepEvents shown_;
};

}  // namespace

void write_trace_events(const std::filesystem::path& path, const std::vector<TracedStep>& steps,
                        const TraceSelection& selection) {
  std::vector<StepWriter> all;
  all.reserve(steps.size());
  std::uint32_t process = 1;  // 0 is the idle process of operating systems, and viewers treat it as such
  Json summaries = Json::array();
  for (const TracedStep& step : steps) {
    all.emplace_back(step, selection, process);
    process = all.back().next_process();
    summaries.push_back(all.back().summary());
  }

  EventFile file(path);
  file.begin(fmt::format(R"({{"displayTimeUnit":"ms","otherData":{},"traceEvents":[)",
                         json_line({{"schema", "hdpsim.trace_events/1"}, {"steps", summaries}})));
  for (const StepWriter& step : all) step.name_processes(file);
  std::vector<std::pair<const StepWriter*, const TraceEvent*>> order;
  for (const StepWriter& step : all) {
    for (const TraceEvent& event : step.events()) order.emplace_back(&step, &event);
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
      for (const Instruction& instruction : block.body) of_rank += instruction.runs(block.iterations);
    }
    sum += of_rank * std::ssize(pipeline.micro_batch(PassId(id)).group);
  }
  return sum;
}

}  // namespace hdpsim
