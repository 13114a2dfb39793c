#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/trace/length_source.h"
#include "tests/support/brief.h"
#include "tests/support/file_text.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {

/// A folder of its own for one test, removed at its end.
class TraceFolder {
 public:
  [[nodiscard]] std::filesystem::path at(const std::string& name) const { return folder_.path() / name; }

  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::ofstream(at(name), std::ios::binary) << bytes;
    return at(name);
  }

  [[nodiscard]] std::string read(const std::string& name) const { return test::text_of(at(name)); }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    return names;
  }

  /// What an action tells the user, without the name of this folder, a line a problem: no line of the file is shown,
  /// and what stands below the caret follows behind "; ". Empty if it does not complain.
  template <class Action>
  [[nodiscard]] std::string complaint(Action action) const {
    std::string text;
    try {
      static_cast<void>(action());
    } catch (const InputError& error) {
      text = error.what();
    }
    const std::string folder = folder_.path().string() + "/";
    for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
      text.erase(at, folder.size());
    return test::brief(text);
  }

 private:
  test::TemporaryFolder folder_;
};

inline std::vector<std::int64_t> tokens_of(LengthSource& source) {
  std::vector<std::int64_t> tokens;
  while (const auto length = source.next()) tokens.push_back(length->tokens);
  return tokens;
}

/// `bytes` bytes of a number, the lowest first.
inline std::string little(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xff);
  return text;
}

/// Hands out lengths that are in memory.
class ListedLengths : public LengthSource {
 public:
  explicit ListedLengths(std::vector<Length> lengths) : lengths_(std::move(lengths)) {}
  [[nodiscard]] std::optional<Length> next() override {
    if (at_ == lengths_.size()) return std::nullopt;
    return lengths_[at_++];
  }

 private:
  std::vector<Length> lengths_;
  std::size_t at_ = 0;
};

}  // namespace hdpsim
