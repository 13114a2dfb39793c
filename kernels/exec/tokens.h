#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hdpsim::kernels::exec {

/// The tokens of the training data. Every rank reads what it needs itself: a token is a pure function of its place, so
/// that any thread may read in any order.
class TokenSource {
 public:
  TokenSource() = default;
  TokenSource(const TokenSource&) = delete;
  TokenSource& operator=(const TokenSource&) = delete;
  virtual ~TokenSource() = default;

  /// Ids are below this.
  [[nodiscard]] virtual std::int64_t vocabulary() const = 0;
  /// Reads tokens [begin, begin + tokens.size()) of a sequence of a step's batch.
  virtual void read(std::int64_t step, std::int64_t sequence, std::int64_t begin,
                    std::span<std::int32_t> tokens) const = 0;
};

/// Independent draws in which small ids are frequent: id v of V has the share sqrt((v + 1) / V) - sqrt(v / V), so that
/// there is something to learn.
[[nodiscard]] std::unique_ptr<const TokenSource> make_synthetic_tokens(std::int64_t vocabulary, std::uint64_t seed);

/// The bytes of text files, one after another: a sequence begins at a place drawn for its step and number, and wraps
/// around at the end. Vocabulary 256. DeviceError for a file that cannot be read; UnsupportedInput if the files are
/// empty, or have more than 1 GB, or more than 64 MB in a pipe or a device.
[[nodiscard]] std::unique_ptr<const TokenSource> make_text_tokens(const std::vector<std::filesystem::path>& files,
                                                                  std::uint64_t seed);

/// The text of a file. Errors as above.
[[nodiscard]] std::string read_training_text(const std::filesystem::path& file);

}  // namespace hdpsim::kernels::exec
