#include "sim/trace/impl/csv_records.h"
#include "sim/trace/impl/file_source.h"
#include "sim/trace/impl/readers.h"

namespace hdpsim {
namespace {

class CsvSource : public FileSource {
 public:
  CsvSource(const std::filesystem::path& path, const TraceOptions& options)
      : FileSource(path.string()), records_(path, problems()) {
    columns_ = choose_columns(records_.columns(), options, records_.header(), problems());
    for (const std::string& name : columns_.lengths) lengths_.push_back(records_.index_of(name));
    if (!columns_.step.empty()) step_ = records_.index_of(columns_.step);
  }

  [[nodiscard]] std::string column() const override { return columns_.told(); }

 private:
  std::optional<Length> read() override {
    while (records_.next()) {
      Length length;
      bool good = take_tokens(length.tokens);
      if (step_) good = take(*step_, parse_step, length.step.emplace()) && good;
      if (good) return length;
    }
    return std::nullopt;
  }

  bool take_tokens(std::int64_t& tokens) {
    const auto parse = [&](std::string_view text) { return columns_.parse(text); };
    bool good = true;
    for (const std::size_t column : lengths_) {
      std::int64_t part = 0;
      good = take(column, parse, part) && good;
      tokens += part;
    }
    if (!good || lengths_.size() == 1) return good;
    const Parsed<std::int64_t> sum = checked_length(tokens);
    if (!sum.value) problems().add(records_.place(lengths_.front()), sum.error, sum.help);
    return sum.value.has_value();
  }

  template <class Parse>
  bool take(std::size_t column, Parse parse, std::int64_t& to) {
    const Parsed<std::int64_t> parsed = parse(records_.value(column));
    if (!parsed.value) problems().add(records_.place(column), parsed.error, parsed.help);
    to = parsed.value.value_or(0);
    return parsed.value.has_value();
  }

  CsvRecords records_;
  LengthColumns columns_;
  std::vector<std::size_t> lengths_;
  std::optional<std::size_t> step_;
};

}  // namespace

std::unique_ptr<LengthSource> open_csv(const std::filesystem::path& path, const TraceOptions& options) {
  return std::make_unique<CsvSource>(path, options);
}

}  // namespace hdpsim
