#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hdpsim {

/// The lengths of the first and of the second half of a file, in its order.
struct Halves {
  double first_mean = 0;  ///< Tokens of a document, in the mean.
  double second_mean = 0;
  /// Whether they differ by more than chance: by half or more, in the arithmetic or in the geometric mean, and by four
  /// standard errors. Steps that read such a file in its order are not alike.
  bool differ = false;

  friend bool operator==(const Halves&, const Halves&) = default;
};

/// "the first half of the documents has 300 tokens each on average, the second half 12k".
[[nodiscard]] std::string halves_note(const Halves& halves);

/// Collects lengths one by one, in memory that does not grow with their number: their moments in at most 512 pieces of
/// equal numbers of documents, so that the border between the halves is right to a 256th of the file.
class HalvesTally {
 public:
  void add(std::int64_t tokens);
  /// Empty for fewer than 16 documents, of which nothing can be said.
  [[nodiscard]] std::optional<Halves> halves() const;

 private:
  /// Sums over documents.
  struct Moments {
    double count = 0;
    double sum = 0;
    double squares = 0;
    double logs = 0;
    double log_squares = 0;

    void add(const Moments& other);
  };
  /// The mean of what was summed, and the variance of that mean.
  struct Mean {
    double value = 0;
    double variance = 0;
  };
  [[nodiscard]] static Mean mean_of(double count, double sum, double squares);
  [[nodiscard]] static bool differ(const Mean& a, const Mean& b, double least);

  std::vector<Moments> pieces_;  // all but the last of `piece_` documents
  double piece_ = 1;
};

}  // namespace hdpsim
