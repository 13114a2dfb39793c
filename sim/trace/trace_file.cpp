#include "sim/trace/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/text.h"
#include "sim/document/input_file.h"
#include "sim/trace/impl/csv_records.h"
#include "sim/trace/impl/readers.h"

namespace hdpsim {
namespace {

struct Named {
  TraceFormat format;
  std::string_view name;
};

constexpr std::array formats{Named{TraceFormat::lines, "lines"},         Named{TraceFormat::csv, "csv"},
                             Named{TraceFormat::jsonl, "jsonl"},         Named{TraceFormat::npy, "npy"},
                             Named{TraceFormat::megatron, "megatron"},   Named{TraceFormat::histogram, "histogram"},
                             Named{TraceFormat::quantiles, "quantiles"}, Named{TraceFormat::mixture, "mixture"}};

constexpr std::array extensions{std::pair{std::string_view(".txt"), TraceFormat::lines},
                                std::pair{std::string_view(".csv"), TraceFormat::csv},
                                std::pair{std::string_view(".jsonl"), TraceFormat::jsonl},
                                std::pair{std::string_view(".ndjson"), TraceFormat::jsonl},
                                std::pair{std::string_view(".npy"), TraceFormat::npy},
                                std::pair{std::string_view(".idx"), TraceFormat::megatron}};

TraceFormat csv_kind(const std::filesystem::path& path) {
  FileProblems problems(path.string());
  const CsvRecords records(path, problems);
  if (is_headerless(records.columns())) return TraceFormat::lines;
  if (records.has("quantile") && records.has("length")) return TraceFormat::quantiles;
  if (records.has("edge") && records.has("token_share")) return TraceFormat::mixture;
  const bool counts = records.has("count") || records.has("number");
  if (counts && (records.has("range") || records.has("upper"))) return TraceFormat::histogram;
  return TraceFormat::csv;
}

// Readers of binary files go back and forth.
void refuse_compressed(const std::filesystem::path& path) {
  if (path.extension() != ".gz") return;
  throw InputError(Position{path.string(), 0, 0}, "only texts are read compressed", "decompress it: gunzip");
}

// Formats of data frames are the business of the programs that have them.
void refuse_column_stores(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  const bool is_parquet = extension == ".parquet";
  if (!is_parquet && extension != ".feather" && extension != ".arrow") return;
  throw InputError(Position{path.string(), 0, 0}, fmt::format("{} is not read", is_parquet ? "Parquet" : "Arrow"),
                   fmt::format("convert it: python3 -c \"import pandas; "
                               "pandas.read_{}('{}')[['COLUMN']].to_csv('lengths.csv', index=False)\"",
                               is_parquet ? "parquet" : "feather", path.filename().string()));
}

TraceFormat format_of(const std::filesystem::path& path, const TraceOptions& options) {
  return options.format ? *options.format : detect_format(path);
}

// Errors of a file's distribution that only the factory detects are reported with the name of the file.
LengthDistributionPtr make_mixture(const std::filesystem::path& path, const MixtureOptions& options) {
  const TokenShareMixture mixture{read_mixture(path), options.edges, options.lowest};
  try {
    return make_distribution(mixture);
  } catch (const InputError& error) {
    FileProblems problems(path.string());
    for (const Diagnostic& problem : error.diagnostics().sorted()) problems.add(problem.message, problem.help);
    problems.throw_if_any();
    throw;
  }
}

}  // namespace

std::string_view name_of(TraceFormat format) {
  return std::find_if(formats.begin(), formats.end(), [&](const Named& named) { return named.format == format; })->name;
}

std::optional<TraceFormat> trace_format(std::string_view name) {
  for (const Named& named : formats) {
    if (named.name == name) return named.format;
  }
  return std::nullopt;
}

std::vector<std::string> trace_format_names() {
  std::vector<std::string> names;
  names.reserve(formats.size());
  for (const Named& named : formats) names.emplace_back(named.name);
  return names;
}

bool holds_distribution(TraceFormat format) {
  return format == TraceFormat::histogram || format == TraceFormat::quantiles || format == TraceFormat::mixture;
}

std::optional<TraceFormat> format_of_extension(const std::filesystem::path& path) {
  const std::string last = path.extension().string();
  const std::string extension = last == ".gz" ? path.stem().extension().string() : last;
  for (const auto& [known, format] : extensions) {
    if (known == extension) return format;
  }
  return std::nullopt;
}

TraceFormat detect_format(const std::filesystem::path& path) {
  const auto format = format_of_extension(path);
  if (!format) {
    static_cast<void>(InputFile(path));  // a missing file is reported before a wrong name
    refuse_column_stores(path);
    throw InputError(Position{path.string(), 0, 0}, "the extension does not tell the format",
                     fmt::format("name one of the formats {}", joined(trace_format_names(), ", ")));
  }
  return *format == TraceFormat::csv ? csv_kind(path) : *format;
}

std::unique_ptr<LengthSource> open_trace(const std::filesystem::path& path, const TraceOptions& options) {
  switch (const TraceFormat format = format_of(path, options); format) {
    case TraceFormat::lines:
      return open_lines(path);
    case TraceFormat::csv:
      return open_csv(path, options);
    case TraceFormat::jsonl:
      return open_jsonl(path, options);
    case TraceFormat::npy:
      refuse_compressed(path);
      return open_npy(path);
    case TraceFormat::megatron:
      refuse_compressed(path);
      return open_megatron(path);
    default:
      throw InputError(Position{path.string(), 0, 0},
                       fmt::format("holds a distribution ({}), not documents", name_of(format)));
  }
}

LengthDistributionPtr read_distribution(const std::filesystem::path& path, const TraceOptions& options,
                                        const MixtureOptions& mixture) {
  switch (const TraceFormat format = format_of(path, options); format) {
    case TraceFormat::histogram:
      return make_distribution(read_histogram(path));
    case TraceFormat::quantiles:
      return make_distribution(read_quantiles(path));
    case TraceFormat::mixture:
      return make_mixture(path, mixture);
    default:
      throw InputError(Position{path.string(), 0, 0},
                       fmt::format("holds documents ({}), not a distribution", name_of(format)));
  }
}

Lengths load_lengths(const std::filesystem::path& path, const TraceOptions& options, const MixtureOptions& mixture) {
  const TraceFormat format = format_of(path, options);
  if (holds_distribution(format)) return {nullptr, read_distribution(path, options, mixture)};
  return {std::make_shared<LengthTrace>(collect(*open_trace(path, options))), nullptr};
}

BatchSourcePtr make_batches(const Lengths& lengths, const BatchOptions& options) {
  HDPSIM_CHECK((lengths.trace == nullptr) != (lengths.distribution == nullptr), "exactly one of the two is set");
  return lengths.trace ? make_batches(lengths.trace, options, lengths.order)
                       : make_batches(lengths.distribution, options);
}

}  // namespace hdpsim
