#include "sim/trace/impl/csv_records.h"
#include "sim/trace/impl/file_source.h"
#include "sim/trace/impl/readers.h"

namespace hdpsim {
namespace {

class CsvSource : public FileSource {
 public:
  CsvSource(const std::filesystem::path& path, const TraceOptions& options)
      : FileSource(path.string()), records_(path, problems()) {
    const LengthColumns columns = choose_columns(records_.columns(), options, records_.header(), problems());
    length_ = records_.index_of(columns.length);
    if (!columns.step.empty()) step_ = records_.index_of(columns.step);
  }

 private:
  std::optional<Length> read() override {
    while (records_.next()) {
      Length length;
      bool good = take(length_, parse_length, length.tokens);
      if (step_) good = take(*step_, parse_step, length.step.emplace()) && good;
      if (good) return length;
    }
    return std::nullopt;
  }

  template <class Parse>
  bool take(std::size_t column, Parse parse, std::int64_t& to) {
    const Parsed<std::int64_t> parsed = parse(records_.value(column));
    if (!parsed.value) problems().add(records_.place(column), parsed.error, parsed.help);
    to = parsed.value.value_or(0);
    return parsed.value.has_value();
  }

  CsvRecords records_;
  std::size_t length_ = 0;
  std::optional<std::size_t> step_;
};

}  // namespace

std::unique_ptr<LengthSource> open_csv(const std::filesystem::path& path, const TraceOptions& options) {
  return std::make_unique<CsvSource>(path, options);
}

}  // namespace hdpsim
