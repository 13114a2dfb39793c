#include "sim/study/compression_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "sim/document/key_table.h"
#include "sim/model/token_clusters.h"
#include "sim/study/study_paths.h"

namespace hdpsim {
namespace {

// A rate is that of at most a thousand copies in a cluster.
constexpr Range rates{0.001, 1};
// Of vectors that are drawn and hashed when a study is read, so that this takes seconds: wider than the copies of any
// shipped model.
constexpr std::int64_t widest_drawn = 16384;
constexpr Range numbers_of_hashes{1, 32};
constexpr Range widths{1, 1 << 20};
constexpr Range cosines{0, 1};
constexpr Range sizes_of_sets{2, 512};

struct CompressionText {
  ExpertCompression compression;
  std::optional<double> rate;
  std::optional<double> similarity;
  std::int64_t alike = SimilarTokens{}.alike;
  const Value* file = nullptr;
};

const KeyTable<CompressionText>& compression_table() {
  static const auto made = [] {
    using Text = CompressionText;
    KeyTable<Text> keys("the compression");
    keys.count("hashes", numbers_of_hashes, at(&Text::compression, &ExpertCompression::hashes),
               "copies with this many equal hashes are a cluster");
    keys.count("columns", widths, at(&Text::compression, &ExpertCompression::columns),
               "how much of each turned copy a hash looks at", {.otherwise = "all of it"});
    keys.number("rate", rates, at(&Text::rate), "clusters by copies",
                {.otherwise = "measured of `similarity` or a `file`"});
    keys.number("similarity", cosines, at(&Text::similarity),
                "the cosine between vectors of which the rate is measured", {.otherwise = "`rate` or `file` says"});
    keys.count("alike", sizes_of_sets, at(&Text::alike), "how many vectors at a time have that `similarity`");
    keys.add({"file",
              shape_of(KeyShape::Kind::text),
              "",
              "a list of vectors of which the rate is measured, each a list of numbers",
              {.otherwise = "`rate` or `similarity` says"}},
             [](const Value& value, Text& read, Diagnostics&) { read.file = &value; });
    keys.flag("free", at(&Text::compression, &ExpertCompression::is_free),
              "hashes, means and what restores copies take no time");
    return keys;
  }();
  return made;
}

/// Reads a compression that is not `none`.
class CompressionReader {
 public:
  CompressionReader(const Value& value, std::int64_t copy_columns, Diagnostics& diagnostics)
      : value_(value), width_(copy_columns), diagnostics_(diagnostics) {}

  std::optional<ExpertCompression> read() {
    Diagnostics found;
    (void)compression_table().read(value_, text_, found);
    if (found.empty()) check_source(found);
    const bool is_right = found.empty();
    diagnostics_.append(found);
    if (!is_right || width_ == 0) return std::nullopt;
    ExpertCompression& compression = text_.compression;
    if (compression.columns > width_) {
      diagnostics_.error(value_.find("columns")->position,
                         fmt::format("hashes look at {} columns, and a copy has {}", compression.columns, width_));
      return std::nullopt;
    }
    if (compression.columns == 0) compression.columns = width_;
    const std::optional<double> rate = text_.rate ? text_.rate : measured();
    if (!rate) return std::nullopt;
    compression.rate = *rate;
    return compression;
  }

 private:
  void check_source(Diagnostics& found) const {
    const int sources = (text_.rate ? 1 : 0) + (text_.similarity ? 1 : 0) + (text_.file != nullptr ? 1 : 0);
    if (sources != 1) {
      found.error(value_.position, "compression has a 'rate', or a 'similarity' or a 'file' of which it is measured",
                  "write compression: {hashes: 6, rate: 0.2}");
    } else if (const Value* alike = value_.find("alike"); alike != nullptr && !text_.similarity) {
      found.error(alike->position, "'alike' belongs to a 'similarity'", "remove it");
    }
  }

  [[nodiscard]] std::optional<double> measured() const {
    const std::optional<TokenVectors> tokens = vectors();
    if (!tokens) return std::nullopt;
    const std::int64_t columns = std::min(text_.compression.columns, tokens->width);
    const CrossPolytopeHashes hashes(tokens->width, text_.compression.hashes, columns);
    return std::max(rates.least, clusters_of(*tokens, hashes).rate());
  }

  [[nodiscard]] std::optional<TokenVectors> vectors() const {
    if (text_.similarity) {
      return similar_tokens({.similarity = *text_.similarity,
                             .alike = text_.alike,
                             .sets = measured_sets(text_.alike),
                             .width = std::min(width_, widest_drawn)});
    }
    const std::string path = path_of(*text_.file).string();
    if (is_there(path)) return load_token_vectors(path, diagnostics_);
    diagnostics_.error(text_.file->position, fmt::format("there is no file {}", path));
    return std::nullopt;
  }

  const Value& value_;
  std::int64_t width_;
  Diagnostics& diagnostics_;
  CompressionText text_;
};

}  // namespace

const std::vector<KeyText>& compression_keys() {
  return compression_table().texts();
}

void read_compression(const Value& value, std::int64_t copy_columns, ExpertLayout& layout, Diagnostics& diagnostics) {
  if (value.is_scalar() && value.text == "none") return;
  const auto error = [&](const char* what, const char* help) { diagnostics.error(value.position, what, help); };
  if (!layout.division().has_groups()) {
    error("compression is of what travels to experts, and with ep: 1 nothing does",
          "write ep: 2 or more, or remove it");
  }
  if (layout.dispatch != ExpertDispatch::per_copy) {
    error("compression sends means of copies, and with this dispatch tokens travel once to each node",
          "write dispatch: per_copy");
  }
  if (layout.fp8_sent) error("compression with copies that travel in fp8 is not known", "remove 'fp8_sent'");
  layout.compression = CompressionReader(value, copy_columns, diagnostics).read();
}

}  // namespace hdpsim
