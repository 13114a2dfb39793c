#include "sim/compare/timeline_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/document/input_file.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

template <class Kind, std::size_t count>
Kind named(const std::string& name, std::string_view (*name_of)(Kind)) {
  for (std::size_t i = 0; i < count; ++i) {
    if (name_of(static_cast<Kind>(i)) == name) return static_cast<Kind>(i);
  }
  throw std::invalid_argument(fmt::format("there is no '{}'", name));
}

// A count, or the index of a thing. The library would accept 1e76 as one.
std::uint32_t number_of(const Json& value) {
  constexpr std::uint64_t most = 1'000'000'000;
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
    throw std::invalid_argument(fmt::format("{} is no number from 0 to {}", json_line(value), most));
  }
  return value.get<std::uint32_t>();
}

Duration duration_of(const Json& value) {
  constexpr double longest_s = 9e6;
  const auto seconds = value.get<double>();
  if (!(seconds >= 0 && seconds < longest_s)) {
    throw std::invalid_argument(fmt::format("{} s is no time from 0 to {} s", seconds, longest_s));
  }
  return Duration::seconds(seconds);
}
Instant instant_of(const Json& value) {
  return Instant::at(duration_of(value));
}

constexpr std::size_t most_ranks = 1'000'000;
constexpr std::size_t longest_record = 1'000'000;  // bytes; a parsed line takes many times its size in memory

/// Gives the next line of a file; false, and an empty line, after the last one.
using NextLine = std::function<bool(std::string_view& line)>;

NextLine lines_of(const std::string& text) {
  return [rest = std::string_view(text)](std::string_view& line) mutable {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    line = rest.substr(0, end);
    if (rest.empty()) return false;
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return true;
  };
}

NextLine lines_of(LineReader& reader) {
  return [&reader](std::string_view& line) {
    const bool is_there = reader.next();
    line = is_there ? reader.text() : std::string_view{};
    return is_there;
  };
}

/// The problem of one value of a line: a member of an object by its name, or of a list by its number.
class Misfit : public std::invalid_argument {
 public:
  Misfit(const std::string& message, std::string key) : std::invalid_argument(message), key_(std::move(key)) {}
  Misfit(const std::string& message, std::size_t item) : std::invalid_argument(message), item_(item) {}

  /// The column of the value in its line, counted from 1.
  [[nodiscard]] int column(std::string_view line) const {
    const std::size_t at = key_.empty() ? item_at(line) : line.find(fmt::format("\"{}\"", key_));
    return at == std::string_view::npos ? 1 : static_cast<int>(at) + 1;
  }

 private:
  // Works because the items before it are numbers and names, without commas.
  [[nodiscard]] std::size_t item_at(std::string_view line) const {
    std::size_t at = line.find('[');
    for (std::size_t item = 0; item < item_ && at != std::string_view::npos; ++item) at = line.find(',', at + 1);
    return at == std::string_view::npos ? at : line.find_first_not_of(" ,[", at);
  }

  std::string key_;
  std::size_t item_ = 0;
};

/// What an error says, without the JSON library's names and positions in the text of one line.
std::string reason_of(const std::exception& error) {
  const std::string_view text = error.what();
  const bool is_of_library = text.starts_with("[json.exception");
  return std::string(is_of_library ? text.substr(std::min(text.find("] "), text.size() - 2) + 2) : text);
}

/// Calls `read` on a member; a problem that it throws is reported at the member's place.
template <class Place, class Read>
auto member(const Json& value, const Place& place, const Read& read) {
  try {
    return read(value.at(place));
  } catch (const std::exception& error) {  // the library's, or one about a value that is impossible
    throw Misfit(reason_of(error), place);
  }
}

constexpr std::size_t problems_told = 100;

/// The lines of a file, one JSON value each, and their problems.
class Lines {
 public:
  Lines(const std::string& file, NextLine next) : file_(file), next_(std::move(next)) {}

  /// Calls read(value, number) for the next `count` lines.
  template <class Read>
  void each(std::size_t count, const Read& read) {
    for (std::size_t i = 0; i < count && problems_ < problems_told; ++i) {
      ++line_;
      if (!next_(text_)) {
        return problem(1, line_ == 1 ? "the file is empty" : "there are fewer lines than the first one says");
      }
      parse([&](const Json& value) { read(value, i); });
    }
  }
  void require_end() {
    ++line_;
    if (problems_ == 0 && next_(text_)) problem(1, "there are more lines than the first one says");
  }
  /// Reports a problem at the line that was read last.
  void problem(int column, const std::string& reason) {
    // Only the lines with problems are kept of the file, each at its line number.
    if (problems_ < problems_told && shown_lines_ < line_ && text_.size() <= longest_record) {
      shown_.append(static_cast<std::size_t>(line_ - shown_lines_ - 1), '\n').append(text_).push_back('\n');
      shown_lines_ = line_;
    }
    problem_at(line_, column, reason);
  }
  void problem_at(int line, int column, const std::string& reason) {
    if (problems_++ >= problems_told) return;
    diagnostics_.error({file_, line, column}, fmt::format("this is no line of a timeline: {}", reason));
  }
  void throw_if_any() {
    if (problems_ > 0) diagnostics_.add_source(file_, shown_);
    diagnostics_.throw_if_any();
  }
  [[nodiscard]] int line() const { return line_; }

 private:
  template <class Read>
  void parse(const Read& read) {
    if (text_.size() > longest_record) {
      return problem(1, fmt::format("it is longer than {} characters", longest_record));
    }
    if (is_nested_too_deeply(text_)) return problem(1, "it is nested too deeply");
    try {
      read(Json::parse(text_));
    } catch (const Json::parse_error& error) {
      problem(static_cast<int>(std::max<std::size_t>(1, error.byte)), "it is not JSON from here on");
    } catch (const Misfit& error) {
      problem(error.column(text_), error.what());
    } catch (const std::exception& error) {  // the library's, or one about a line that is impossible
      problem(1, reason_of(error));
    }
  }

  const std::string& file_;
  NextLine next_;
  std::string_view text_;  // the line that was read last
  int line_ = 0;
  std::string shown_;
  int shown_lines_ = 0;
  std::size_t problems_ = 0;
  Diagnostics diagnostics_;
};

Breakdown breakdown_of(const Json& value) {
  Breakdown breakdown;
  for (const auto& [name, time] : value.items()) {
    const auto activity = named<Activity, activity_count>(name, activity_name);
    breakdown[activity] = member(value, name, duration_of);
  }
  return breakdown;
}

std::string required_text(const Json& value) {
  return value.get<std::string>();
}

InstructionRecord record_of(const Json& value) {
  if (!value.is_array()) throw std::invalid_argument("it is no list");
  const auto number = [&](std::size_t item) { return member(value, item, number_of); };
  const auto name = [&](std::size_t item, auto name_of) {
    return member(value, item, [&](const Json& text) { return name_of(required_text(text)); });
  };
  InstructionRecord record{
      .rank = HdpRank(number(0)),
      .micro_batch = MicroBatchId(number(1)),
      .block = number(2),
      .iteration = number(3),
      .instruction = number(4),
      .opcode = name(5, [](const auto& text) { return named<Opcode, opcode_count>(text, opcode_name); }),
      .stream = name(6, [](const auto& text) { return named<Stream, stream_count>(text, stream_name); }),
      .begin = member(value, std::size_t{7}, instant_of),
      .end = member(value, std::size_t{8}, instant_of)};
  if (value.size() > 9) {
    record.chunk = number(9);
    record.kind = name(10, [](const auto& text) { return named<PassKind, pass_kinds>(text, pass_kind_name); });
    record.stage = number(11);
  }
  return record;
}

/// The contents of a timeline's first line.
struct Header {
  TimelineTitle title;
  Duration step_time;
  std::size_t ranks = 0;
  std::size_t micro_batches = 0;
  std::size_t instructions = 0;
};

template <class Place>
void require_ordered(Instant begin, Instant end, Duration step_time, const Place& place) {
  if (end < begin)
    throw Misfit(fmt::format("it ends at {} s, before it begins", exact_seconds(end.since_start())), place);
  if (end.since_start() <= step_time) return;
  throw Misfit(fmt::format("it ends at {} s, after the step, which takes {} s", exact_seconds(end.since_start()),
                           exact_seconds(step_time)),
               place);
}

template <class Place>
void require_below(std::size_t number, std::size_t count, const char* what, const Place& place) {
  if (number < count) return;
  throw Misfit(fmt::format("there is no {} {}: the first line says that there are {}", what, number, count), place);
}

// Large numbers of the file have fewer digits than picoseconds.
void require_sum(const Breakdown& breakdown, Duration step_time) {
  const double difference = breakdown.total().seconds() - step_time.seconds();
  if (std::abs(difference) <= 1e-9 + 1e-9 * step_time.seconds()) return;
  throw Misfit(fmt::format("its parts sum to {} s, the step takes {} s", exact_seconds(breakdown.total()),
                           exact_seconds(step_time)),
               "breakdown_s");
}

void require_number(const Json& line, const char* what, std::size_t expected) {
  const std::size_t number = member(line, std::string(what), number_of);
  if (number != expected) throw Misfit(fmt::format("{} {} is due here", what, expected), what);
}

Breakdown rank_of(const Json& line, const Header& header, std::size_t number) {
  require_number(line, "rank", number);
  const Breakdown breakdown = breakdown_of(line.at("breakdown_s"));
  require_sum(breakdown, header.step_time);
  return breakdown;
}

// A micro-batch that no rank has run begins when the step ends, and ends when it begins.
MicroBatchInterval micro_batch_of(const Json& line, const Header& header, std::size_t number) {
  require_number(line, "micro_batch", number);
  const MicroBatchInterval interval{member(line, std::string("begin_s"), instant_of),
                                    member(line, std::string("end_s"), instant_of)};
  const bool ran = interval.begin.since_start() != header.step_time || interval.end != Instant{};
  if (ran) require_ordered(interval.begin, interval.end, header.step_time, std::string("end_s"));
  return interval;
}

InstructionRecord instruction_of(const Json& line, const Header& header) {
  const InstructionRecord record = record_of(line);
  const std::size_t ranks = header.ranks / static_cast<std::size_t>(header.title.stages);
  require_below(record.rank.index(), ranks, "rank", std::size_t{0});
  require_below(record.micro_batch.index(), header.micro_batches, "micro-batch", std::size_t{1});
  require_below(record.stage, static_cast<std::size_t>(header.title.stages), "stage", std::size_t{11});
  require_ordered(record.begin, record.end, header.step_time, std::size_t{8});
  return record;
}

// `lines[i]` is the line number of records[i].
void require_once(const std::vector<InstructionRecord>& records, const std::vector<int>& lines, Lines& problems) {
  std::vector<std::size_t> order(records.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(instruction_id(records[a]), a) < std::pair(instruction_id(records[b]), b);
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (instruction_id(records[order[i]]) != instruction_id(records[order[i - 1]])) continue;
    problems.problem_at(lines[order[i]], 1, fmt::format("line {} has this instruction, too", lines[order[i - 1]]));
  }
}

TimelineTitle title_of(const Json& first) {
  if (first.at("schema") != timeline_schema) {
    throw std::invalid_argument(fmt::format("its schema is not {}", timeline_schema));
  }
  const double core_share = first.value("core_share", 1.0);
  if (!(core_share > 0 && core_share <= 1)) {
    throw std::invalid_argument(fmt::format("{} is no share of a core", core_share));
  }
  const std::int64_t stages = number_of(first.value("stages", Json(1U)));
  if (stages < 1) throw std::invalid_argument(fmt::format("{} is no number of stages", stages));
  std::optional<Duration> at_pace;
  if (first.contains("at_pace_s")) at_pace = duration_of(first.at("at_pace_s"));
  return {first.at("source"), first.at("plan"), number_of(first.at("step")), core_share, stages, at_pace};
}

Header header_of(const Json& first) {
  const auto number = [&](const char* key) { return member(first, std::string(key), number_of); };
  Header header{.title = title_of(first),
                .step_time = member(first, std::string("step_time_s"), duration_of),
                .ranks = number("ranks"),
                .micro_batches = number("micro_batches"),
                .instructions = number("instructions")};
  if (header.ranks > most_ranks)
    throw Misfit(fmt::format("{} ranks are more than {}", header.ranks, most_ranks), "ranks");
  if (header.ranks % static_cast<std::size_t>(header.title.stages) != 0) {
    throw Misfit(fmt::format("{} are no ranks of {} stages each", header.ranks, header.title.stages), "ranks");
  }
  return header;
}

}  // namespace

TimelineTitle read_timeline_title(const std::string& file, const std::string& line) {
  TimelineTitle title;
  Lines lines(file, lines_of(line));
  lines.each(1, [&](const Json& first, std::size_t) { title = title_of(first); });
  lines.throw_if_any();
  return title;
}

bool states_no_instructions(const std::string& line) {
  if (is_nested_too_deeply(line)) return false;
  const Json first = Json::parse(line, nullptr, false);
  return first.is_object() && first.contains("instructions") && first["instructions"] == 0;
}

namespace {

TimelineFile read_lines(const std::string& file, NextLine next_line) {
  TimelineFile read;
  Timeline& timeline = read.timeline;
  Lines lines(file, std::move(next_line));
  Header header;
  lines.each(1, [&](const Json& first, std::size_t) { header = header_of(first); });
  lines.throw_if_any();
  read.title = header.title;
  timeline.step_time = header.step_time;
  lines.each(header.ranks, [&](const Json& rank, std::size_t number) {
    timeline.ranks.push_back(rank_of(rank, header, number));
    if (rank.contains("processor_s")) read.processor.push_back(breakdown_of(rank.at("processor_s")));
    if (!read.processor.empty() && read.processor.size() != timeline.ranks.size()) {
      throw std::invalid_argument("some ranks say what they did on their core, others do not");
    }
  });
  lines.each(header.micro_batches, [&](const Json& interval, std::size_t number) {
    timeline.micro_batches.push_back(micro_batch_of(interval, header, number));
  });
  std::vector<int> line_of;
  lines.each(header.instructions, [&](const Json& record, std::size_t) {
    timeline.instructions.push_back(instruction_of(record, header));
    line_of.push_back(lines.line());
  });
  lines.require_end();
  require_once(timeline.instructions, line_of, lines);
  lines.throw_if_any();
  return read;
}

}  // namespace

TimelineFile read_timeline(const std::string& file, const std::string& text) {
  return read_lines(file, lines_of(text));
}

TimelineFile load_timeline(const std::filesystem::path& path) {
  LineReader reader(path);
  return read_lines(path.string(), lines_of(reader));
}

}  // namespace hdpsim
