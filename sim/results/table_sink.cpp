#include "sim/results/table_sink.h"

#include <fmt/format.h>

#include <utility>

#include "sim/base/text.h"
#include "sim/document/values.h"

namespace hdpsim {
namespace {

/// A sink that makes the text of a table.
class CsvText final : public TableSink {
 public:
  void text(std::string_view text) override { add(csv_field(text)); }
  void count(std::int64_t count) override { add_number(count); }
  void number(double number) override { add_number(number); }
  void flag(bool flag) override { add_number(flag); }
  void value(const Value& value) override { text(line_of(value)); }
  void nothing() override { add(""); }
  void end_row() override {
    text_ += '\n';
    row_started_ = false;
  }
  std::string take() { return std::move(text_); }

 private:
  void add(std::string_view field) {
    separate();
    text_ += field;
  }
  template <class Number>
  void add_number(Number number) {
    separate();
    append(text_, "{}", number);
  }
  void separate() {
    if (row_started_) text_ += ',';
    row_started_ = true;
  }

  std::string text_;
  bool row_started_ = false;
};

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

std::string csv_text(const std::function<void(TableSink&)>& write) {
  CsvText text;
  write(text);
  return text.take();
}

}  // namespace hdpsim
