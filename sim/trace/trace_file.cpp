#include "sim/trace/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/text.h"
#include "sim/document/input_file.h"
#include "sim/trace/impl/columns.h"
#include "sim/trace/impl/csv_records.h"
#include "sim/trace/impl/readers.h"
#include "sim/trace/impl/table_layout.h"

namespace hdpsim {
namespace {

struct Named {
  TraceFormat format;
  std::string_view name;
};

constexpr std::array formats{Named{TraceFormat::lines, "lines"},         Named{TraceFormat::csv, "csv"},
                             Named{TraceFormat::jsonl, "jsonl"},         Named{TraceFormat::npy, "npy"},
                             Named{TraceFormat::megatron, "megatron"},   Named{TraceFormat::histogram, "histogram"},
                             Named{TraceFormat::quantiles, "quantiles"}, Named{TraceFormat::mixture, "mixture"},
                             Named{TraceFormat::edges, "edges"}};

constexpr std::array extensions{std::pair{std::string_view(".txt"), TraceFormat::lines},
                                std::pair{std::string_view(".csv"), TraceFormat::csv},
                                std::pair{std::string_view(".tsv"), TraceFormat::csv},
                                std::pair{std::string_view(".jsonl"), TraceFormat::jsonl},
                                std::pair{std::string_view(".ndjson"), TraceFormat::jsonl},
                                std::pair{std::string_view(".npy"), TraceFormat::npy},
                                std::pair{std::string_view(".idx"), TraceFormat::megatron}};

std::string extension_of_contents(const std::filesystem::path& path) {
  return compression_of(path) != nullptr ? path.stem().extension().string() : path.extension().string();
}

// The kind of a text with a header line, by its columns. One that begins with a number has none, unless a line has
// several.
TraceFormat text_kind(const std::filesystem::path& path, TraceFormat by_extension, const TraceOptions& options) {
  if (by_extension == TraceFormat::lines && begins_with_length(path)) return TraceFormat::lines;
  FileProblems problems(path.string());
  const CsvRecords records(path, problems);
  if (is_headerless(records.columns())) return TraceFormat::lines;
  if (!options.column.empty()) return TraceFormat::csv;
  const std::optional<TableLayout> table = find_table(path);
  return table ? table->format : TraceFormat::csv;
}

// Readers of binary files go back and forth.
void refuse_compressed(const std::filesystem::path& path) {
  const Compression* compression = compression_of(path);
  if (compression == nullptr) return;
  throw InputError(Position{path.string(), 0, 0}, "only texts are read compressed",
                   fmt::format("decompress it: {}", compression->command));
}

bool is_column_store(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".parquet" || extension == ".feather" || extension == ".arrow";
}

// Indices of sharded data sets tell the size of shards, and not that of documents.
void refuse_json(const std::filesystem::path& path) {
  if (path.extension() != ".json") return;
  LineReader lines(path);
  bool is_mds = false;
  bool is_webdataset = false;
  for (int i = 0; i < 100 && lines.next(); ++i) {
    is_mds = is_mds || lines.text().find("\"shards\"") != std::string_view::npos;
    is_webdataset = is_webdataset || lines.text().find(".tar\"") != std::string_view::npos;
  }
  const Position place{path.string(), 0, 0};
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  if (is_mds) {
    throw InputError(place, "an index of MDS shards tells no lengths of documents",
                     fmt::format("write these, one a line: python3 -c \"from streaming import StreamingDataset as D; "
                                 "[print(len(x['tokens'])) for x in D(local='{}', batch_size=1)]\" > lengths.txt "
                                 "(divided by the bytes of a token where they are bytes)",
                                 folder));
  }
  if (is_webdataset) {
    throw InputError(place, "an index of tar shards tells no lengths of documents",
                     "write the number of tokens of each document, one a line, to a .txt");
  }
  throw InputError(place, "one JSON document is no list of documents", "write one object a line to a .jsonl");
}

// Formats of data frames are the business of the programs that have them.
void refuse_column_stores(const std::filesystem::path& path) {
  if (!is_column_store(path)) return;
  const bool is_parquet = path.extension() == ".parquet";
  if (path.extension() == ".arrow") {  // HuggingFace's are streams, which pandas does not read
    throw InputError(Position{path.string(), 0, 0}, "Arrow is not read",
                     fmt::format("convert it: python3 -c \"from datasets import Dataset; "
                                 "[print(len(x['input_ids'])) for x in Dataset.from_file('{}')]\" > lengths.txt",
                                 path.filename().string()));
  }
  throw InputError(Position{path.string(), 0, 0}, fmt::format("{} is not read", is_parquet ? "Parquet" : "Feather"),
                   fmt::format("convert it: python3 -c \"import pandas; "
                               "pandas.read_{}('{}')[['COLUMN']].to_csv('lengths.csv', index=False)\"",
                               is_parquet ? "parquet" : "feather", path.filename().string()));
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
  const Compression* compression = compression_of(path);
  if (compression != nullptr && !is_read(*compression)) return std::nullopt;
  const std::string extension = extension_of_contents(path);
  for (const auto& [known, format] : extensions) {
    if (known == extension) return format;
  }
  return std::nullopt;
}

bool is_named_as_lengths(const std::filesystem::path& path) {
  const std::string extension = extension_of_contents(path);
  return is_column_store(path) ||
         std::any_of(extensions.begin(), extensions.end(), [&](const auto& known) { return known.first == extension; });
}

TraceFormat detect_format(const std::filesystem::path& path, const TraceOptions& options) {
  const auto format = options.format ? options.format : format_of_extension(path);
  if (!format || compression_of(path) != nullptr) static_cast<void>(InputFile(path));  // it must be there, and be read
  if (!format) {
    refuse_column_stores(path);
    refuse_json(path);
    throw InputError(Position{path.string(), 0, 0}, "the extension does not name a known format",
                     fmt::format("name one of the formats {}", joined(trace_format_names(), ", ")));
  }
  if (options.format || (*format != TraceFormat::csv && *format != TraceFormat::lines)) return *format;
  return text_kind(path, *format, options);
}

std::unique_ptr<LengthSource> open_trace(const std::filesystem::path& path, const TraceOptions& options) {
  switch (const TraceFormat format = detect_format(path, options); format) {
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
    case TraceFormat::edges:
      return open_edges(path, options.edges);
    default:
      throw InputError(Position{path.string(), 0, 0},
                       fmt::format("holds a distribution ({}), not documents", name_of(format)));
  }
}

LengthDistributionPtr read_distribution(const std::filesystem::path& path, const TraceOptions& options,
                                        const MixtureOptions& mixture) {
  switch (const TraceFormat format = detect_format(path, options); format) {
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
  const TraceFormat format = detect_format(path, options);
  if (holds_distribution(format)) return {nullptr, read_distribution(path, options, mixture)};
  return {std::make_shared<LengthTrace>(collect(*open_trace(path, options))), nullptr};
}

BatchSourcePtr make_batches(const Lengths& lengths, const BatchOptions& options) {
  HDPSIM_CHECK((lengths.trace == nullptr) != (lengths.distribution == nullptr), "exactly one of the two is set");
  return lengths.trace ? make_batches(lengths.trace, options, lengths.order)
                       : make_batches(lengths.distribution, options);
}

std::vector<std::string> preset_names(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code failure;
  for (std::filesystem::directory_iterator it(directory, failure), end; !failure && it != end; it.increment(failure)) {
    if (it->path().extension() == ".csv") names.push_back(it->path().stem().string());
  }
  if (failure) {
    throw InputError(Position{directory.string(), 0, 0},
                     fmt::format("cannot list the shipped traces: {}", failure.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

LengthDistributionPtr load_preset(std::string_view name, const std::filesystem::path& directory,
                                  const MixtureOptions& mixture) {
  const std::vector<std::string> names = preset_names(directory);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw InputError(fmt::format("there is no length preset '{}'", name), suggestion(name, names));
  }
  return read_distribution(directory / fmt::format("{}.csv", name), {}, mixture);
}

}  // namespace hdpsim
