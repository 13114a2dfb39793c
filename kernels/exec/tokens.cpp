#include "kernels/exec/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>

#include "kernels/exec/impl/hash.h"
#include "kernels/spec/error.h"
#include "sim/base/input_files.h"

namespace hdpsim::kernels::exec {
namespace {

std::uint64_t key_of(std::uint64_t seed, std::int64_t step, std::int64_t sequence) {
  return mixed(mixed(seed, static_cast<std::uint64_t>(step)), static_cast<std::uint64_t>(sequence));
}

class SyntheticTokens final : public TokenSource {
 public:
  SyntheticTokens(std::int64_t vocabulary, std::uint64_t seed) : vocabulary_(vocabulary), seed_(seed) {}
  [[nodiscard]] std::int64_t vocabulary() const override { return vocabulary_; }
  void read(std::int64_t step, std::int64_t sequence, std::int64_t begin,
            std::span<std::int32_t> tokens) const override {
    const std::uint64_t key = key_of(seed_, step, sequence);
    auto position = static_cast<std::uint64_t>(begin);
    for (std::int32_t& token : tokens) {
      const double drawn = unit_hash(key, position++);
      token = static_cast<std::int32_t>(drawn * drawn * static_cast<double>(vocabulary_));
    }
  }

 private:
  std::int64_t vocabulary_;
  std::uint64_t seed_;
};

class TextTokens final : public TokenSource {
 public:
  TextTokens(std::string text, std::uint64_t seed) : text_(std::move(text)), seed_(seed) {}
  [[nodiscard]] std::int64_t vocabulary() const override { return 256; }
  void read(std::int64_t step, std::int64_t sequence, std::int64_t begin,
            std::span<std::int32_t> tokens) const override {
    std::size_t at = (key_of(seed_, step, sequence) % text_.size() + static_cast<std::size_t>(begin)) % text_.size();
    for (std::int32_t& token : tokens) {
      token = static_cast<unsigned char>(text_[at]);
      at = at + 1 == text_.size() ? 0 : at + 1;
    }
  }

 private:
  std::string text_;
  std::uint64_t seed_;
};

// Limited because every process holds the whole text. A pipe or a device does not tell its size.
constexpr std::uintmax_t largest_text = 1'000'000'000;
constexpr std::uintmax_t largest_stream = 64'000'000;

void append_text(const std::filesystem::path& path, std::string& text) {
  constexpr std::size_t chunk = 1 << 16;
  std::error_code endless;
  const std::uintmax_t size = std::filesystem::file_size(path, endless);
  const std::uintmax_t most = endless ? largest_stream : largest_text;
  if (!endless) text.reserve(std::min(text.size() + size, most) + chunk);
  std::ifstream file(path, std::ios::binary);
  while (file && text.size() <= most) {
    const std::size_t before = text.size();
    text.resize(before + chunk);
    file.read(text.data() + before, chunk);
    text.resize(before + static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) throw DeviceError(fmt::format("cannot read {}", path.string()));
  if (text.size() <= most) return;
  throw UnsupportedInput(fmt::format("{}: more than {} MB of text", path.string(), most / 1'000'000));
}

}  // namespace

std::unique_ptr<const TokenSource> make_synthetic_tokens(std::int64_t vocabulary, std::uint64_t seed) {
  return std::make_unique<SyntheticTokens>(vocabulary, seed);
}

std::unique_ptr<const TokenSource> make_text_tokens(const std::vector<std::filesystem::path>& files,
                                                    std::uint64_t seed) {
  std::string text;
  for (const auto& path : files) {
    InputFiles::record(path);
    append_text(path, text);
  }
  if (text.empty()) throw UnsupportedInput("there is no text to train on");
  return std::make_unique<TextTokens>(std::move(text), seed);
}

std::string read_training_text(const std::filesystem::path& file) {
  std::string text;
  InputFiles::record(file);
  append_text(file, text);
  if (text.empty()) throw UnsupportedInput(fmt::format("{}: there is no text to train on", file.string()));
  return text;
}

}  // namespace hdpsim::kernels::exec
