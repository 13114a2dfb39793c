#include "sim/report/timeline_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"

namespace hdpsim {
namespace {

using nlohmann::json;

// ---- Writing

using Output = std::back_insert_iterator<std::string>;

// 1.000000000001, without zeros at its end.
std::string seconds_text(Duration time) {
  constexpr std::int64_t picoseconds_a_second = 1'000'000'000'000;
  const std::int64_t ps = time.picoseconds();
  std::string text = fmt::format("{}.{:012}", ps / picoseconds_a_second, ps % picoseconds_a_second);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}
std::string seconds_text(Instant time) {
  return seconds_text(time.since_start());
}

void write_breakdown(const Breakdown& breakdown, Output out) {
  for (const Activity activity : all_activities) {
    fmt::format_to(out, "{}\"{}\": {}", activity == all_activities.front() ? "{" : ", ", activity_name(activity),
                   seconds_text(breakdown[activity]));
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
                 stream_name(record.stream), seconds_text(record.begin), seconds_text(record.end));
  if (record.kind != PassKind::whole) {
    fmt::format_to(out, ", {}, \"{}\"", record.chunk, pass_kind_name(record.kind));
  }
  fmt::format_to(out, "]\n");
}

// ---- Reading

template <class Kind, std::size_t count>
Kind named(const std::string& name, std::string_view (*name_of)(Kind)) {
  for (std::size_t i = 0; i < count; ++i) {
    if (name_of(static_cast<Kind>(i)) == name) return static_cast<Kind>(i);
  }
  throw std::invalid_argument(fmt::format("there is no '{}'", name));
}

// A count, or the number of a thing. The library would take 1e76 for one.
std::uint32_t number_of(const json& value) {
  constexpr std::uint64_t most = 1'000'000'000;
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
    throw std::invalid_argument(fmt::format("{} is no number from 0 to {}", value.dump(), most));
  }
  return value.get<std::uint32_t>();
}

Duration duration_of(const json& value) {
  const auto seconds = value.get<double>();
  if (!(seconds >= 0 && seconds < 9e6)) throw std::invalid_argument(fmt::format("{} s is no time", seconds));
  return Duration::seconds(seconds);
}
Instant instant_of(const json& value) {
  return Instant::at(duration_of(value));
}

constexpr std::size_t longest_line = 1'000'000;  // one that is parsed takes many times its room in memory

/// The lines of a file, one JSON value each. What is wrong with one becomes an InputError at its place.
class Lines {
 public:
  Lines(const std::string& file, const std::string& text) : file_(file), text_(text) {}

  template <class Read>
  void next(const Read& read) {
    ++line_;
    begin_ = std::min(begin_, text_.size());
    const std::size_t end = std::min(text_.find('\n', begin_), text_.size());
    if (end - begin_ > longest_line) fail(fmt::format("it is longer than {} characters", longest_line));
    try {
      read(json::parse(text_.begin() + static_cast<std::ptrdiff_t>(begin_),
                       text_.begin() + static_cast<std::ptrdiff_t>(end)));
    } catch (const json::exception& error) {
      fail(error.what());
    } catch (const std::invalid_argument& error) {
      fail(error.what());
    }
    begin_ = end + 1;
  }
  void require_end() {
    if (begin_ < text_.size()) fail("there are more lines than the first one says");
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw InputError(Position{file_, line_, 1}, fmt::format("this is no line of a timeline: {}", reason));
  }

  const std::string& file_;
  const std::string& text_;
  std::size_t begin_ = 0;
  int line_ = 0;
};

Breakdown breakdown_of(const json& value) {
  Breakdown breakdown;
  for (const auto& [name, time] : value.items()) {
    breakdown[named<Activity, activity_count>(name, activity_name)] = duration_of(time);
  }
  return breakdown;
}

InstructionRecord record_of(const json& value) {
  InstructionRecord record{.rank = HdpRank(number_of(value.at(0))),
                           .micro_batch = MicroBatchId(number_of(value.at(1))),
                           .block = number_of(value.at(2)),
                           .iteration = number_of(value.at(3)),
                           .instruction = number_of(value.at(4)),
                           .opcode = named<Opcode, opcode_count>(value.at(5).get<std::string>(), opcode_name),
                           .stream = named<Stream, stream_count>(value.at(6).get<std::string>(), stream_name),
                           .begin = instant_of(value.at(7)),
                           .end = instant_of(value.at(8))};
  if (value.size() > 9) {
    record.chunk = number_of(value.at(9));
    record.kind = named<PassKind, pass_kinds>(value.at(10).get<std::string>(), pass_kind_name);
  }
  return record;
}

TimelineTitle title_of(const json& first) {
  if (first.at("schema") != timeline_schema) {
    throw std::invalid_argument(fmt::format("its schema is not {}", timeline_schema));
  }
  const double core_share = first.value("core_share", 1.0);
  if (!(core_share > 0 && core_share <= 1)) {
    throw std::invalid_argument(fmt::format("{} is no share of a core", core_share));
  }
  const std::int64_t stages = number_of(first.value("stages", json(1U)));
  if (stages < 1) throw std::invalid_argument(fmt::format("{} is no number of stages", stages));
  std::optional<Duration> at_pace;
  if (first.contains("at_pace_s")) at_pace = duration_of(first.at("at_pace_s"));
  return {first.at("source"), first.at("plan"), number_of(first.at("step")), core_share, stages, at_pace};
}

}  // namespace

std::string timeline_text(const TimelineTitle& title, const Timeline& timeline,
                          const std::vector<Breakdown>& processor) {
  std::string text;
  const Output out(text);
  fmt::format_to(
      out,
      "{{\"schema\": \"{}\", \"source\": {}, \"plan\": {}, \"step\": {}{}{}{}, \"step_time_s\": {}, \"ranks\": {}, "
      "\"micro_batches\": {}, \"instructions\": {}}}\n",
      timeline_schema, json(title.source).dump(), json(title.plan).dump(), title.step,
      title.core_share == 1 ? "" : fmt::format(", \"core_share\": {}", title.core_share),
      title.stages == 1 ? "" : fmt::format(", \"stages\": {}", title.stages),
      title.at_pace ? fmt::format(", \"at_pace_s\": {}", seconds_text(*title.at_pace)) : "",
      seconds_text(timeline.step_time), timeline.ranks.size(), timeline.micro_batches.size(),
      timeline.instructions.size());
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) write_rank(rank, timeline, processor, out);
  for (std::size_t id = 0; id < timeline.micro_batches.size(); ++id) {
    const MicroBatchInterval& interval = timeline.micro_batches[id];
    fmt::format_to(out, "{{\"micro_batch\": {}, \"begin_s\": {}, \"end_s\": {}}}\n", id, seconds_text(interval.begin),
                   seconds_text(interval.end));
  }
  for (const InstructionRecord& record : timeline.instructions) write_instruction(record, out);
  return text;
}

TimelineTitle read_timeline_title(const std::string& file, const std::string& line) {
  TimelineTitle title;
  Lines(file, line).next([&](const json& first) { title = title_of(first); });
  return title;
}

TimelineFile read_timeline(const std::string& file, const std::string& text) {
  TimelineFile read;
  Timeline& timeline = read.timeline;
  Lines lines(file, text);
  std::size_t ranks = 0;
  std::size_t micro_batches = 0;
  std::size_t instructions = 0;
  lines.next([&](const json& first) {
    read.title = title_of(first);
    timeline.step_time = duration_of(first.at("step_time_s"));
    ranks = number_of(first.at("ranks"));
    micro_batches = number_of(first.at("micro_batches"));
    instructions = number_of(first.at("instructions"));
  });
  const auto add_rank = [&](const json& rank) {
    timeline.ranks.push_back(breakdown_of(rank.at("breakdown_s")));
    if (rank.contains("processor_s")) read.processor.push_back(breakdown_of(rank.at("processor_s")));
  };
  for (std::size_t i = 0; i < ranks; ++i) lines.next(add_rank);
  if (!read.processor.empty() && read.processor.size() != ranks) {
    throw InputError(Position{file, 2, 1}, "some ranks say what they did on their core, others do not");
  }
  const auto add_micro_batch = [&](const json& interval) {
    timeline.micro_batches.push_back({instant_of(interval.at("begin_s")), instant_of(interval.at("end_s"))});
  };
  for (std::size_t i = 0; i < micro_batches; ++i) lines.next(add_micro_batch);
  const auto add_instruction = [&](const json& record) { timeline.instructions.push_back(record_of(record)); };
  for (std::size_t i = 0; i < instructions; ++i) lines.next(add_instruction);
  lines.require_end();
  return read;
}

}  // namespace hdpsim
