#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/batch_source.h"
#include "sim/trace/length_distribution.h"
#include "sim/trace/length_source.h"

namespace hdpsim {

/// The formats are specified in traces/README.md. Three hold a distribution, the others documents.
enum class TraceFormat { lines, csv, jsonl, npy, megatron, histogram, quantiles, mixture, edges };

[[nodiscard]] std::string_view name_of(TraceFormat format);
[[nodiscard]] std::optional<TraceFormat> trace_format(std::string_view name);
/// Names of all formats, for suggestions and help.
[[nodiscard]] std::vector<std::string> trace_format_names();
[[nodiscard]] bool holds_distribution(TraceFormat format);

/// How the interactions of a temporal graph become sequences: three each, of the source, of the target and of a target
/// so far that is drawn at random (by a fixed seed); a node and its last neighbours of earlier times.
struct EdgeOptions {
  std::int64_t neighbours = 10;                   ///< At most so many of them, from 1.
  std::optional<std::int64_t> interactions = {};  ///< Of a step, from 1; by default the lengths have no steps.
};

struct TraceOptions {
  std::optional<TraceFormat> format = {};  ///< By default from the extension, and for texts from their columns.
  /// The column of a CSV, or the field of JSON lines; several are added up: `input_length+output_length`. By default
  /// `length`, `tokens`, the only column, those of a published trace, or the only one with a usual name
  /// (traces/README.md).
  std::string column = {};
  std::string step_column = {};  ///< By default `step` if there is one.
  EdgeOptions edges = {};
};

/// The format of .txt, .csv, .tsv, .jsonl, .ndjson, .npy or .idx, the texts among them also compressed (.csv.gz); empty
/// for others.
[[nodiscard]] std::optional<TraceFormat> format_of_extension(const std::filesystem::path& path);
/// Whether a file of this name can be meant as one of lengths, be it in a compression or format that is not read.
[[nodiscard]] bool is_named_as_lengths(const std::filesystem::path& path);
/// The format that the options name, or else that of the extension and, of a text, of its columns: those of a table
/// unless a column is named, which says that every row is a document. InputError if the extension is unknown, there is
/// no such file, or a table leaves a doubt; MachineError if it cannot be read.
[[nodiscard]] TraceFormat detect_format(const std::filesystem::path& path, const TraceOptions& options = {});

/// Streams a file of documents. Problems of the file as a whole (missing, wrong header, missing column, truncated) are
/// thrown here; those of single lengths at the end of the stream. InputError or MachineError.
[[nodiscard]] std::unique_ptr<LengthSource> open_trace(const std::filesystem::path& path,
                                                       const TraceOptions& options = {});

/// How to read the classes of a mixture file: see TokenShareMixture.
struct MixtureOptions {
  ClassEdges edges = TokenShareMixture{}.edges;
  std::int64_t lowest = TokenShareMixture{}.lowest;
};

/// Reads a histogram, quantile or mixture file. InputError or MachineError.
[[nodiscard]] LengthDistributionPtr read_distribution(const std::filesystem::path& path,
                                                      const TraceOptions& options = {},
                                                      const MixtureOptions& mixture = {});

/// The contents of a file of lengths: exactly one of the first two is set.
struct Lengths {
  std::shared_ptr<const LengthTrace> trace;
  LengthDistributionPtr distribution;
  RowOrder order{};  ///< Of a trace without steps.
};
[[nodiscard]] Lengths load_lengths(const std::filesystem::path& path, const TraceOptions& options = {},
                                   const MixtureOptions& mixture = {});

[[nodiscard]] BatchSourcePtr make_batches(const Lengths& lengths, const BatchOptions& options);

/// The names of the distributions in `directory` (the project's traces/), sorted: byted, github, web, wikipedia.
[[nodiscard]] std::vector<std::string> preset_names(const std::filesystem::path& directory);

/// Reads `directory`/`name`.csv. InputError with a suggestion if there is none of this name.
[[nodiscard]] LengthDistributionPtr load_preset(std::string_view name, const std::filesystem::path& directory,
                                                const MixtureOptions& mixture = {});

}  // namespace hdpsim
