#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/document/key.h"
#include "sim/trace/trace_file.h"

namespace hdpsim {

/// The keys of all sources of lengths; a map has one source, and the keys that belong to it.
[[nodiscard]] KeyShape lengths_shape();

/// The lengths of a study:
///   {preset: github, edges: lower, lowest: 256}              a file of `presets`; the last two for mixtures only
///   {file: lengths.csv, column: tokens, step_column: step, format: csv, order: shuffle, edges: lower, lowest: 256}
///   lengths.csv                                        the same file, without further keys
///   {fixed: 2Ki}                                       every sequence has this length
///   {lognormal: {mu: 7.6, sigma: 1.4, min: 1, max: 2Mi}}
///   {lognormal_pareto: {mu: 7.6, sigma: 1.4, tail_from: 64Ki, alpha: 1.2, min: 1, max: 2Mi, tail_share: 0.01}}
///   {preset: web, media: {images: ...}}                any of the distributions, with media_keys.h beside the text
///   {file: graph.csv, format: edges, neighbours: 10, interactions: 600}    the sequences of a temporal graph
/// Only the first key of each map is required; of the generators' parameters, mu, sigma, tail_from and alpha. Problems
/// are reported; the result is then empty.
[[nodiscard]] std::optional<Lengths> read_lengths(const Value& value, const std::filesystem::path& presets,
                                                  Diagnostics& diagnostics);

/// The order of documents that these lengths state; empty if they state none.
[[nodiscard]] std::optional<TraceOrder> order_of_lengths(const Value& lengths);

/// The overrides with which a study is read whose lengths a command line names: those that put the file and, unless it
/// is empty, the column of the lengths into it, then the user's. InputError for a column without a file, and for
/// standard input.
[[nodiscard]] std::vector<std::string> with_lengths(const std::string& file, const std::string& column,
                                                    const std::vector<std::string>& overrides);

/// A hash of the contents of the file that the lengths come from; 0 if they come from none.
[[nodiscard]] std::uint64_t fingerprint_of_lengths(const Value& lengths, const std::filesystem::path& presets);

}  // namespace hdpsim
