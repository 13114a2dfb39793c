#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/compare/timeline_file.h"

namespace hdpsim {
namespace {

using nlohmann::json;
using Output = std::back_insert_iterator<std::string>;

// Names are users' text: invalid UTF-8 in them becomes U+FFFD.
std::string json_string(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string exact_seconds(Instant time) {
  return hdpsim::exact_seconds(time.since_start());
}

void write_breakdown(const Breakdown& breakdown, Output out) {
  for (const Activity activity : all_activities) {
    fmt::format_to(out, "{}\"{}\": {}", activity == all_activities.front() ? "{" : ", ", activity_name(activity),
                   exact_seconds(breakdown[activity]));
  }
  fmt::format_to(out, "}}");
}

void write_rank(std::size_t rank, const Timeline& timeline, const std::vector<Breakdown>& processor, Output out) {
  fmt::format_to(out, "{{\"rank\": {}, \"breakdown_s\": ", rank);
  write_breakdown(timeline.ranks[rank], out);
  if (!processor.empty()) {
    fmt::format_to(out, ", \"processor_s\": ");
    write_breakdown(processor.at(rank), out);
  }
  fmt::format_to(out, "}}\n");
}

void write_instruction(const InstructionRecord& record, Output out) {
  fmt::format_to(out, "[{}, {}, {}, {}, {}, \"{}\", \"{}\", {}, {}", record.rank.index(), record.micro_batch.index(),
                 record.block, record.iteration, record.instruction, opcode_name(record.opcode),
                 stream_name(record.stream), exact_seconds(record.begin), exact_seconds(record.end));
  if (record.kind != PassKind::whole) {
    fmt::format_to(out, ", {}, \"{}\", {}", record.chunk, pass_kind_name(record.kind), record.stage);
  }
  fmt::format_to(out, "]\n");
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
  const Output out(text);
  fmt::format_to(
      out,
      "{{\"schema\": \"{}\", \"source\": {}, \"plan\": {}, \"step\": {}{}{}{}, \"step_time_s\": {}, \"ranks\": {}, "
      "\"micro_batches\": {}, \"instructions\": {}}}\n",
      timeline_schema, json_string(title.source), json_string(title.plan), title.step,
      title.core_share == 1 ? "" : fmt::format(", \"core_share\": {}", title.core_share),
      title.stages == 1 ? "" : fmt::format(", \"stages\": {}", title.stages),
      title.at_pace ? fmt::format(", \"at_pace_s\": {}", exact_seconds(*title.at_pace)) : "",
      exact_seconds(timeline.step_time), timeline.ranks.size(), timeline.micro_batches.size(),
      timeline.instructions.size());
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) write_rank(rank, timeline, processor, out);
  for (std::size_t id = 0; id < timeline.micro_batches.size(); ++id) {
    const MicroBatchInterval& interval = timeline.micro_batches[id];
    fmt::format_to(out, "{{\"micro_batch\": {}, \"begin_s\": {}, \"end_s\": {}}}\n", id, exact_seconds(interval.begin),
                   exact_seconds(interval.end));
  }
  for (const InstructionRecord& record : timeline.instructions) write_instruction(record, out);
  return text;
}

}  // namespace hdpsim
