#include "sim/model/token_clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/document/reader.h"

namespace hdpsim {
namespace {

constexpr std::int64_t rounds = 3;

// The fast Walsh-Hadamard transform, without its scale, which no largest component depends on.
void transform(std::span<double> values) {
  for (std::size_t half = 1; half < values.size(); half *= 2) {
    for (std::size_t first = 0; first < values.size(); first += 2 * half) {
      for (std::size_t i = first; i < first + half; ++i) {
        const double sum = values[i] + values[i + half];
        values[i + half] = values[i] - values[i + half];
        values[i] = sum;
      }
    }
  }
}

std::int32_t largest_component(std::span<const double> values) {
  const auto largest =
      std::max_element(values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  const auto place = static_cast<std::int32_t>(largest - values.begin()) + 1;
  return *largest < 0 ? -place : place;
}

TokenVectors zeros(std::int64_t count, std::int64_t width) {
  return {width, std::vector<double>(static_cast<std::size_t>(count * width))};
}

std::int64_t cluster_of(const TokenClusters& clusters, std::int64_t token) {
  return clusters.of_token[static_cast<std::size_t>(token)];
}

}  // namespace

std::int64_t TokenVectors::count() const {
  return width == 0 ? 0 : std::ssize(values) / width;
}

std::span<const double> TokenVectors::of(std::int64_t token) const {
  return std::span(values).subspan(static_cast<std::size_t>(token * width), static_cast<std::size_t>(width));
}

std::span<double> TokenVectors::of(std::int64_t token) {
  return std::span(values).subspan(static_cast<std::size_t>(token * width), static_cast<std::size_t>(width));
}

CrossPolytopeHashes::CrossPolytopeHashes(std::int64_t width, std::int64_t hashes, std::int64_t columns,
                                         std::uint64_t seed)
    : width_(width),
      hashes_(hashes),
      columns_(static_cast<std::size_t>(columns)),
      padded_(std::bit_ceil(static_cast<std::size_t>(width))) {
  HDPSIM_CHECK(width >= 1 && hashes >= 1 && columns >= 1 && columns <= width, "{} hashes of {} of {} columns", hashes,
               columns, width);
  RandomStream random(seed, "rotations of hashes");
  signs_.resize(static_cast<std::size_t>(hashes * rounds) * padded_);
  for (double& sign : signs_) sign = random.below(2) == 0 ? 1 : -1;
}

std::vector<std::int32_t> CrossPolytopeHashes::key(std::span<const double> vector) const {
  HDPSIM_CHECK(std::ssize(vector) == width_, "a vector of {} values in place of {}", vector.size(), width_);
  std::vector<std::int32_t> key;
  std::vector<double> turned(padded_);
  auto sign = signs_.begin();
  for (std::int64_t hash = 0; hash < hashes_; ++hash) {
    std::fill(std::copy(vector.begin(), vector.end(), turned.begin()), turned.end(), 0.0);
    for (std::int64_t round = 0; round < rounds; ++round) {
      for (double& value : turned) value *= *sign++;
      transform(turned);
    }
    key.push_back(largest_component(std::span(turned).first(columns_)));
  }
  return key;
}

double TokenClusters::rate() const {
  return of_token.empty() ? 1 : static_cast<double>(sizes.size()) / static_cast<double>(of_token.size());
}

TokenClusters clusters_of(const TokenVectors& tokens, const CrossPolytopeHashes& hashes) {
  TokenClusters clusters;
  std::map<std::vector<std::int32_t>, std::int64_t> known;
  for (std::int64_t token = 0; token < tokens.count(); ++token) {
    const auto [found, is_new] = known.try_emplace(hashes.key(tokens.of(token)), std::ssize(clusters.sizes));
    if (is_new) clusters.sizes.push_back(0);
    clusters.of_token.push_back(found->second);
    ++clusters.sizes[static_cast<std::size_t>(found->second)];
  }
  return clusters;
}

TokenVectors sums_of(const TokenVectors& tokens, const TokenClusters& clusters) {
  TokenVectors sums = zeros(std::ssize(clusters.sizes), tokens.width);
  for (std::int64_t token = 0; token < tokens.count(); ++token) {
    const std::span<double> sum = sums.of(cluster_of(clusters, token));
    std::transform(sum.begin(), sum.end(), tokens.of(token).begin(), sum.begin(), std::plus<>());
  }
  return sums;
}

TokenVectors means_of(const TokenVectors& tokens, const TokenClusters& clusters) {
  TokenVectors means = sums_of(tokens, clusters);
  for (std::int64_t cluster = 0; cluster < means.count(); ++cluster) {
    const auto size = static_cast<double>(clusters.sizes[static_cast<std::size_t>(cluster)]);
    for (double& value : means.of(cluster)) value /= size;
  }
  return means;
}

TokenVectors differences(const TokenVectors& tokens, const TokenVectors& means, const TokenClusters& clusters) {
  TokenVectors found = tokens;
  for (std::int64_t token = 0; token < tokens.count(); ++token) {
    const std::span<double> own = found.of(token);
    std::transform(own.begin(), own.end(), means.of(cluster_of(clusters, token)).begin(), own.begin(), std::minus<>());
  }
  return found;
}

TokenVectors restored(const TokenVectors& results, const TokenVectors& differences, const TokenClusters& clusters) {
  TokenVectors found = differences;
  for (std::int64_t token = 0; token < found.count(); ++token) {
    const std::span<double> own = found.of(token);
    std::transform(own.begin(), own.end(), results.of(cluster_of(clusters, token)).begin(), own.begin(), std::plus<>());
  }
  return found;
}

TokenVectors restored_gradients(const TokenVectors& of_means, const TokenVectors& of_results,
                                const TokenClusters& clusters) {
  TokenVectors shared = of_means;
  for (std::int64_t cluster = 0; cluster < shared.count(); ++cluster) {
    const auto size = static_cast<double>(clusters.sizes[static_cast<std::size_t>(cluster)]);
    for (double& value : shared.of(cluster)) value /= size;
  }
  return restored(shared, differences(of_results, means_of(of_results, clusters), clusters), clusters);
}

// Components are uniform: a product of sums of them needs no function whose last bits depend on a library.
TokenVectors similar_tokens(const SimilarTokens& tokens, std::uint64_t seed) {
  RandomStream random(seed, "similar tokens");
  const auto component = [&random] { return 2 * random.uniform() - 1; };
  const double of_set = std::sqrt(tokens.similarity);
  const double own = std::sqrt(1 - tokens.similarity);
  TokenVectors found{tokens.width, {}};
  std::vector<double> common(static_cast<std::size_t>(tokens.width));
  for (std::int64_t set = 0; set < tokens.sets; ++set) {
    std::generate(common.begin(), common.end(), component);
    for (std::int64_t token = 0; token < tokens.alike; ++token) {
      for (const double value : common) found.values.push_back(of_set * value + own * component());
    }
  }
  return found;
}

std::int64_t measured_sets(std::int64_t alike) {
  return std::max<std::int64_t>(1, 512 / alike);
}

std::optional<TokenVectors> load_token_vectors(const std::string& path, Diagnostics& diagnostics) {
  Diagnostics found;
  const Value list = load_document(path, found);
  TokenVectors tokens;
  if (found.empty() && (!list.is_sequence() || list.items.empty())) {
    found.error(list.position, "the vectors must be a list of lists of numbers", "write [[0.1, -0.3], [0.2, 0.5]]");
  }
  for (const Value& vector : list.items) {
    if (tokens.width == 0) tokens.width = std::ssize(vector.items);
    if (!vector.is_sequence() || vector.items.empty() || std::ssize(vector.items) != tokens.width) {
      found.error(vector.position, fmt::format("a vector must be a list of {} numbers, as the first one is",
                                               std::max<std::int64_t>(1, tokens.width)));
      continue;
    }
    constexpr Range numbers{-1e30, 1e30};  // of which no sum of squares is infinite
    for (const Value& number : vector.items) {
      tokens.values.push_back(read_in<double>(number, "a number of a vector", numbers, found).value_or(0));
    }
  }
  diagnostics.append(found);
  if (!found.empty()) return std::nullopt;
  return tokens;
}

}  // namespace hdpsim
