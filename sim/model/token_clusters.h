#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"

namespace hdpsim {

// Locality-sensitive hashing of tokens as LSH-MoE compresses with it (Nie et al. 2024, arXiv 2411.08446): what
// ExpertCompression prices, done for real, in fp64. The same input gives the same clusters on every processor: random
// numbers are seeded, sums have a fixed order, and components are compared, not printed.

/// Vectors of tokens, one behind another: values[token * width + column].
struct TokenVectors {
  std::int64_t width = 0;
  std::vector<double> values;

  [[nodiscard]] std::int64_t count() const;
  [[nodiscard]] std::span<const double> of(std::int64_t token) const;
  [[nodiscard]] std::span<double> of(std::int64_t token);
};

/// Cross-polytope hashes of a vector (Andoni et al. 2015, arXiv 1509.02897): each turns it at random and takes the
/// largest component among the first `columns` of the result, with its sign. Rotations are those of section 3.1 there,
/// three times random signs and a Hadamard transform; vectors are filled up with zeros to a power of two.
class CrossPolytopeHashes {
 public:
  /// `width` of vectors and `hashes` are at least 1, `columns` from 1 to `width` (checked).
  CrossPolytopeHashes(std::int64_t width, std::int64_t hashes, std::int64_t columns, std::uint64_t seed = 1);

  /// 1 + the place of the largest component, negative if that is, for each hash. Of equal ones the first. `vector` has
  /// `width` values (checked).
  [[nodiscard]] std::vector<std::int32_t> key(std::span<const double> vector) const;

 private:
  std::int64_t width_;
  std::int64_t hashes_;
  std::size_t columns_;
  std::size_t padded_;
  std::vector<double> signs_;  ///< By hash, round and component: 1 or -1.
};

/// Tokens with the same key are a cluster.
struct TokenClusters {
  std::vector<std::int64_t> of_token;  ///< Clusters are counted in the order of their first tokens.
  std::vector<std::int64_t> sizes;

  /// Clusters by tokens: what travels of them. 1 without tokens.
  [[nodiscard]] double rate() const;
};
[[nodiscard]] TokenClusters clusters_of(const TokenVectors& tokens, const CrossPolytopeHashes& hashes);

/// The sums, or the means, of the tokens of each cluster.
[[nodiscard]] TokenVectors sums_of(const TokenVectors& tokens, const TokenClusters& clusters);
[[nodiscard]] TokenVectors means_of(const TokenVectors& tokens, const TokenClusters& clusters);
/// What each token differs from the mean of its cluster.
[[nodiscard]] TokenVectors differences(const TokenVectors& tokens, const TokenVectors& means,
                                       const TokenClusters& clusters);
/// The result of each token: that of its cluster's mean, plus its difference.
[[nodiscard]] TokenVectors restored(const TokenVectors& results, const TokenVectors& differences,
                                    const TokenClusters& clusters);
/// The gradient of each token, of those of the means and of the tokens' results: its part of the mean's, plus its own
/// less the mean of its cluster's.
[[nodiscard]] TokenVectors restored_gradients(const TokenVectors& of_means, const TokenVectors& of_results,
                                              const TokenClusters& clusters);

/// Sets of vectors that are alike: any two of a set have this cosine on average, those of different sets 0.
struct SimilarTokens {
  double similarity = 1;  ///< From 0 to 1.
  std::int64_t alike = 16;
  std::int64_t sets = 32;
  std::int64_t width = 0;
};
[[nodiscard]] TokenVectors similar_tokens(const SimilarTokens& tokens, std::uint64_t seed = 1);
/// As many sets as rates are measured with: those of about 512 vectors.
[[nodiscard]] std::int64_t measured_sets(std::int64_t alike);

/// Reads a file, JSON or YAML, with a list of vectors, each a list of its numbers. Empty, with all problems reported,
/// if it is none.
[[nodiscard]] std::optional<TokenVectors> load_token_vectors(const std::string& path, Diagnostics& diagnostics);

}  // namespace hdpsim
