#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/command.h"
#include "sim/model/token_clusters.h"

namespace hdpsim::app {
namespace {

struct CompressOptions {
  std::vector<double> similarity;
  std::string vectors;
  std::int64_t hashes = 0;   ///< 0: those of usual_hashes.
  std::int64_t columns = 0;  ///< 0: all.
  std::int64_t alike = SimilarTokens{}.alike;
  std::int64_t width = 768;
  Format format = Format::table;
};

// Those that the authors of LSH-MoE compare.
const std::vector<std::int64_t> usual_hashes = {2, 4, 6, 8, 10};
const std::vector<double> usual_similarity = {0.5, 0.9, 0.99, 0.999};
constexpr std::int64_t most_width = 1 << 20;

/// Vectors with so many hashes.
struct MeasuredRate {
  std::optional<double> similarity = {};  ///< Of drawn vectors.
  std::int64_t hashes = 0;
  std::int64_t columns = 0;
  std::int64_t tokens = 0;
  std::int64_t clusters = 0;
  double rate = 1;
  double left = 0;    ///< Length of what tokens differ from the means, by their own, in root mean squares.
  double hash_s = 0;  ///< A token, on one core of this machine.
};

double squares(const TokenVectors& vectors) {
  return std::inner_product(vectors.values.begin(), vectors.values.end(), vectors.values.begin(), 0.0);
}

MeasuredRate measured(const TokenVectors& tokens, std::int64_t hashes, std::int64_t columns) {
  const CrossPolytopeHashes own(tokens.width, hashes, columns);
  const auto begin = std::chrono::steady_clock::now();
  const TokenClusters clusters = clusters_of(tokens, own);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const double left = squares(differences(tokens, means_of(tokens, clusters), clusters));
  const double all = squares(tokens);
  return {.hashes = hashes,
          .columns = columns,
          .tokens = tokens.count(),
          .clusters = std::ssize(clusters.sizes),
          .rate = clusters.rate(),
          .left = all > 0 ? std::sqrt(left / all) : 0,
          .hash_s = taken.count() / static_cast<double>(tokens.count())};
}

std::int64_t columns_of(const CompressOptions& options, std::int64_t width) {
  if (options.columns <= width) return options.columns == 0 ? width : options.columns;
  throw InputError(fmt::format("--columns {} is more than the {} of a vector", options.columns, width));
}

void add_rows(const CompressOptions& options, const TokenVectors& tokens, std::optional<double> similarity,
              std::vector<MeasuredRate>& rows) {
  const std::vector<std::int64_t> numbers =
      options.hashes == 0 ? usual_hashes : std::vector<std::int64_t>{options.hashes};
  for (const std::int64_t hashes : numbers) {
    rows.push_back(measured(tokens, hashes, columns_of(options, tokens.width)));
    rows.back().similarity = similarity;
  }
}

std::vector<MeasuredRate> rows_of(const CompressOptions& options) {
  std::vector<MeasuredRate> rows;
  if (!options.vectors.empty()) {
    Diagnostics diagnostics;
    const auto tokens = load_token_vectors(options.vectors, diagnostics);
    diagnostics.throw_if_any();
    add_rows(options, *tokens, std::nullopt, rows);
    return rows;
  }
  for (const double similarity : options.similarity.empty() ? usual_similarity : options.similarity) {
    const SimilarTokens tokens{similarity, options.alike, measured_sets(options.alike), options.width};
    add_rows(options, similar_tokens(tokens), similarity, rows);
  }
  return rows;
}

std::string table_of(const std::vector<MeasuredRate>& rows) {
  std::string text = "similarity  hashes  columns  tokens  clusters   rate  difference  hash, us a token\n";
  for (const MeasuredRate& row : rows) {
    text += fmt::format("{:>10}  {:>6}  {:>7}  {:>6}  {:>8}  {:>5.3f}  {:>10.3f}  {:>16.1f}\n",
                        row.similarity ? fmt::format("{}", *row.similarity) : "-", row.hashes, row.columns, row.tokens,
                        row.clusters, row.rate, row.left, row.hash_s * 1e6);
  }
  return text +
         "\nrate: clusters by tokens, moe.compression.rate of a study. difference: what tokens differ from the mean of "
         "their\ncluster, by their own length. Times are of one core of this machine, and of no study.\n";
}

std::string csv_of(const std::vector<MeasuredRate>& rows) {
  std::string text = "similarity,hashes,columns,tokens,clusters,rate,difference,hash_s\n";
  for (const MeasuredRate& row : rows) {
    text += fmt::format("{},{},{},{},{},{},{},{}\n", row.similarity ? fmt::format("{}", *row.similarity) : "",
                        row.hashes, row.columns, row.tokens, row.clusters, row.rate, row.left, row.hash_s);
  }
  return text;
}

// All values are numbers, so that no text needs marks.
std::string json_of(const std::vector<MeasuredRate>& rows) {
  std::string text;
  for (const MeasuredRate& row : rows) {
    text += fmt::format(
        "{}\n    {{{}\"hashes\": {}, \"columns\": {}, \"tokens\": {}, \"clusters\": {}, \"rate\": {}, "
        "\"difference\": {}, \"hash_s\": {}}}",
        text.empty() ? "" : ",", row.similarity ? fmt::format("\"similarity\": {}, ", *row.similarity) : "", row.hashes,
        row.columns, row.tokens, row.clusters, row.rate, row.left, row.hash_s);
  }
  return fmt::format("{{\n  \"rates\": [{}\n  ]\n}}\n", text);
}

int run_compress(const CompressOptions& options, const Session& /*session*/) {
  const std::vector<MeasuredRate> rows = rows_of(options);
  switch (options.format) {
    case Format::table:
      print(table_of(rows), options.format);
      break;
    case Format::csv:
      print(csv_of(rows), options.format);
      break;
    case Format::json:
      print(json_of(rows), options.format);
      break;
  }
  return 0;
}

}  // namespace

void add_compress_command(Command app, Session& session) {
  const Command command = app.add_subcommand(
      "compress", "Hash vectors as LSH-MoE does, and measure the rate for moe.compression of a study");
  CompressOptions& options = add_command(command, session, run_compress);
  const Option similarity = command.add_option("--similarity", options.similarity,
                                               "Cosines between the vectors that are drawn (default: 0.5,0.9,0.99,"
                                               "0.999)");
  similarity.separated_by(',').within(0.0, 1.0).type_name("S,...");
  command.add_option("--vectors", options.vectors, "Vectors of a file instead: a list of lists of numbers")
      .type_name("FILE")
      .excludes(similarity);
  add_count(command, "--hashes", options.hashes, "Hashes of a vector (default: 2, 4, 6, 8 and 10)", 1, 32);
  add_count(command, "--columns", options.columns, "How much of each turned vector a hash looks at (default: all)", 1,
            most_width);
  add_count(command, "--alike", options.alike, "How many drawn vectors at a time are similar (default: 16)", 2, 512);
  add_count(command, "--width", options.width, "Numbers of a drawn vector (default: 768)", 1, 65536);
  add_format(command, options.format);
  command.footer("Example:\n  hdpsim compress --similarity 0.9,0.99 --hashes 6");
}

}  // namespace hdpsim::app
