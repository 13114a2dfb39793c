#include "sim/app/command.h"

#include <fmt/format.h>

#include <map>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/study/override.h"

namespace hdpsim::app {

Option add_count(Command command, const std::string& name, std::int64_t& count, const std::string& help,
                 std::int64_t least, std::int64_t most) {
  const auto read = [&count, least, most](const std::string& text) {
    const Parsed<std::int64_t> parsed = parse_count(text);
    if (!parsed.value) throw WrongValue(parsed.error);
    if (*parsed.value < least) throw WrongValue(fmt::format("{} is less than {}", text, least));
    if (*parsed.value > most) throw WrongValue(fmt::format("{} is more than {}", text, most));
    count = *parsed.value;
  };
  return command.add_option(name, read, help).type_name("COUNT");
}

Option add_patience(Command command, Duration& patience, const std::string& help) {
  const auto read = [&patience](const std::string& text) {
    const Parsed<Duration> parsed = parse_duration(text);
    if (!parsed.value) throw WrongValue(parsed.error);
    if (*parsed.value < Duration::seconds(1e-3)) throw WrongValue("it must be at least 1 ms");
    patience = *parsed.value;
  };
  return command.add_option("--patience", read, help).type_name("TIME");
}

Option add_format(Command command, Format& format) {
  static const std::map<std::string, Format> formats = {
      {"table", Format::table}, {"csv", Format::csv}, {"json", Format::json}};
  const auto read = [&format](const std::string& text) { format = formats.at(text); };
  return command.add_option("--format", read, "What to print: table, csv or json")
      .one_of({"table", "csv", "json"})
      .type_name("FORMAT");
}

void add_lengths(Command command, LengthsOptions& lengths) {
  command
      .add_option("--lengths", lengths.file,
                  "Lengths instead of those of the study: a file in any format of traces/README.md")
      .type_name("FILE");
  command.add_option("--column", lengths.column, "Column or columns of that file that hold the lengths: a, or a+b")
      .type_name("NAME");
}

void add_set(Command command, std::vector<std::string>& overrides, std::string_view what) {
  command.add_option("--set", overrides, fmt::format("Override values of {}; may be given several times", what))
      .type_name("KEY=VALUE")
      .one_at_a_time();
}

void add_without(Command command, std::vector<std::string>& names) {
  command
      .add_option("--without", names,
                  fmt::format("Turn a mechanism off, as --set could; may be given several times: {}",
                              joined(mechanism_names(), ", ")))
      .type_name("MECHANISM")
      .one_at_a_time();
}

void tell_removed(const OutputFolder& folder) {
  if (const std::string text = folder.removed_text(); !text.empty()) note(text);
}

}  // namespace hdpsim::app
