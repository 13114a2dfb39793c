#include "sim/study/catalog.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

Value parsed(const std::string& file, const std::string& text) {
  Diagnostics problems;
  Value value = parse_document(file, text, problems);
  problems.throw_if_any();
  return value;
}

TEST_CASE("the same kernels of the same profile are one profile: points that choose them share it", "[catalog]") {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  Diagnostics problems;
  const auto profile = catalog.profile(parsed("study", "bytescale-implied"), problems);
  const auto with = [&](const char* kernels) {
    return catalog.profile_with_kernels(parsed("study", kernels), profile, problems);
  };
  CHECK(with("{attention: unfused}") == with("{attention: unfused}"));
  CHECK(with("{attention: unfused}") != with("{attention: flash}"));
  CHECK(problems.empty());
}

TEST_CASE("a profile of slower kernels is one profile, and that of equal ones the profile itself", "[catalog]") {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  Diagnostics problems;
  const auto profile = catalog.profile(parsed("study", "bytescale-implied"), problems);
  FamilyFactors slower;
  slower[CostFamily::gemm] = 1.02;
  CHECK(catalog.profile_slowed(profile, {}) == profile);
  CHECK(catalog.profile_slowed(profile, slower) == catalog.profile_slowed(profile, slower));
  CHECK(catalog.profile_slowed(profile, slower)->factors == slower);
}

TEST_CASE("what has a problem has it every time it is asked for, at the place of who asks", "[catalog]") {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  Diagnostics problems;
  for (const int line : {1, 2, 3}) {
    const std::string text = std::string(static_cast<std::size_t>(line - 1), '\n') + "{preset: no-such-model}";
    CHECK_FALSE(catalog.model(parsed("study", text), problems));
    CHECK(problems.sorted().size() == static_cast<std::size_t>(line));
    CHECK(problems.sorted().back().position.line == line);
  }
}

TEST_CASE("a model is not taken for one that differs in a key, or by text that looks the same", "[catalog]") {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  Diagnostics problems;
  const auto layers = [&](const char* model) { return catalog.model(parsed("study", model), problems)->layers; };
  CHECK(layers("{preset: llama-7b, num_hidden_layers: 12}") == 12);
  CHECK(layers("{preset: llama-7b, num_hidden_layers: 13}") == 13);
  CHECK(layers("{preset: llama-7b}") == 32);
  CHECK(problems.empty());
  CHECK_FALSE(catalog.model(parsed("study", "{preset: \"llama-7b, num_hidden_layers: 12\"}"), problems));
}

}  // namespace
}  // namespace hdpsim
