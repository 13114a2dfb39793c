#include "kernels/exec/loaded_tokens.h"

#include <string>
#include <vector>

#include "kernels/spec/error.h"
#include "tests/support/catch.h"

namespace hdpsim::kernels::exec {
namespace {

std::string letters_in_lines(char letter, std::size_t lines) {
  std::string text;
  for (std::size_t i = 0; i < lines; ++i) text += std::string(1 + i % 7, letter) + "\n";
  return text;
}

std::string read_sequence(const LoadedTokens& tokens, std::int64_t step, std::int64_t sequence, std::int64_t count) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  tokens.read(step, sequence, 0, ids);
  return {ids.begin(), ids.end()};
}

// Even sequences from the first text, odd ones from the second.
LoadingRules rules_by_parity(SourceOptions options = {}) {
  return {.sources_of =
              [](std::int64_t, std::size_t sequences) {
                std::vector<std::size_t> sources;
                for (std::size_t i = 0; i < sequences; ++i) sources.push_back(i % 2);
                return sources;
              },
          .dies = [](std::int64_t step, std::size_t source) { return step == 2 && source == 1; },
          .options = options};
}

std::vector<LoadedSource> two_sources() {
  return {{"first", letters_in_lines('a', 30)}, {"second", letters_in_lines('b', 50)}};
}

TEST_CASE("each sequence has bytes of its source; a death and steps that are passed over change none", "[loading]") {
  const std::vector<std::int64_t> lengths = {10, 20, 3, 1};
  const auto all_of = [&](SourceOptions options, std::int64_t passed) {
    LoadedTokens tokens(two_sources(), rules_by_parity(options));
    std::vector<std::string> sequences;
    for (std::int64_t step = 0; step < 4; ++step) tokens.expect(step, lengths, step < passed);
    for (std::int64_t step = passed; step < 4; ++step) {
      for (std::int64_t i = 0; i < 4; ++i) {
        sequences.push_back(read_sequence(tokens, step, i, lengths[static_cast<std::size_t>(i)]));
        CHECK(sequences.back().find(i % 2 == 0 ? 'b' : 'a') == std::string::npos);
      }
      CHECK(tokens.take_delivered(step).size() == 4);
      CHECK(tokens.take_delivered(step).empty());
    }
    CHECK(tokens.deaths(0).empty());
    CHECK(tokens.deaths(1).size() == 1);
    return sequences;
  };
  const std::vector<std::string> sequences = all_of({}, 0);
  CHECK(all_of({.shadows = 1}, 0) == sequences);
  CHECK(all_of({.snapshot = 2}, 2) == std::vector(sequences.begin() + 8, sequences.end()));
}

TEST_CASE("a step that nobody announced, or that has two batches, is an error", "[loading]") {
  LoadedTokens tokens(two_sources(), rules_by_parity());
  tokens.expect(0, {5, 6});
  CHECK_NOTHROW(tokens.expect(0, {5, 6}));
  CHECK_THROWS_AS(tokens.expect(0, {6, 5}), UnsupportedInput);
  CHECK_THROWS_AS(read_sequence(tokens, 1, 0, 1), DeviceError);
}

}  // namespace
}  // namespace hdpsim::kernels::exec
