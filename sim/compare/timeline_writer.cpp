#include <fmt/format.h>

#include "sim/base/text.h"
#include "sim/compare/timeline_file.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

std::string exact_seconds(Instant time) {
  return hdpsim::exact_seconds(time.since_start());
}

void write_breakdown(const Breakdown& breakdown, std::string& text) {
  for (const Activity activity : all_activities) {
    append(text, "{}\"{}\": {}", activity == all_activities.front() ? "{" : ", ", activity_name(activity),
           exact_seconds(breakdown[activity]));
  }
  append(text, "}}");
}

void write_rank(std::size_t rank, const Timeline& timeline, const std::vector<Breakdown>& processor,
                std::string& text) {
  append(text, "{{\"rank\": {}, \"breakdown_s\": ", rank);
  write_breakdown(timeline.ranks[rank], text);
  if (!processor.empty()) {
    append(text, ", \"processor_s\": ");
    write_breakdown(processor.at(rank), text);
  }
  append(text, "}}\n");
}

void write_instruction(const InstructionRecord& record, std::string& text) {
  append(text, "[{}, {}, {}, {}, {}, \"{}\", \"{}\", {}, {}", record.rank.index(), record.micro_batch.index(),
         record.block, record.iteration, record.instruction, opcode_name(record.opcode), stream_name(record.stream),
         exact_seconds(record.begin), exact_seconds(record.end));
  if (record.kind != PassKind::whole) {
    append(text, ", {}, \"{}\", {}", record.chunk, pass_kind_name(record.kind), record.stage);
  }
  append(text, "]\n");
}

}  // namespace

std::string exact_seconds(Duration time) {
  constexpr std::int64_t picoseconds_a_second = 1'000'000'000'000;
  const std::int64_t ps = time.picoseconds();
  std::string text = fmt::format("{}.{:012}", ps / picoseconds_a_second, ps % picoseconds_a_second);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string timeline_text(const TimelineTitle& title, const Timeline& timeline,
                          const std::vector<Breakdown>& processor) {
  std::string text;
  append(text,
         "{{\"schema\": \"{}\", \"source\": {}, \"plan\": {}, \"step\": {}{}{}{}, \"step_time_s\": {}, \"ranks\": {}, "
         "\"micro_batches\": {}, \"instructions\": {}}}\n",
         timeline_schema, json_string(title.source), json_string(title.plan), title.step,
         title.core_share == 1 ? "" : fmt::format(", \"core_share\": {}", title.core_share),
         title.stages == 1 ? "" : fmt::format(", \"stages\": {}", title.stages),
         title.at_pace ? fmt::format(", \"at_pace_s\": {}", exact_seconds(*title.at_pace)) : "",
         exact_seconds(timeline.step_time), timeline.ranks.size(), timeline.micro_batches.size(),
         timeline.instructions.size());
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) write_rank(rank, timeline, processor, text);
  for (std::size_t id = 0; id < timeline.micro_batches.size(); ++id) {
    const MicroBatchInterval& interval = timeline.micro_batches[id];
    append(text, "{{\"micro_batch\": {}, \"begin_s\": {}, \"end_s\": {}}}\n", id, exact_seconds(interval.begin),
           exact_seconds(interval.end));
  }
  for (const InstructionRecord& record : timeline.instructions) write_instruction(record, text);
  return text;
}

}  // namespace hdpsim
