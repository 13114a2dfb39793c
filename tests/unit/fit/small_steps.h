#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "sim/fit/impl/step_model.h"
#include "sim/fit/step_fitting.h"
#include "tests/support/catch.h"
#include "tests/support/study_file.h"

namespace hdpsim::test {

// Small GPTs on a node of 8 GPUs, which a moment simulates: products, host and messages all matter somewhere.
inline constexpr char small_rows[] = R"(name: steps
about: a test
source: a log
study:
  cluster: {preset: dgx-a100-superpod}
  model: {preset: gpt-1.7b, n_head: 16, n_positions: 1024}
  profile: a100-sxm-published
  framework: {preset: megatron-lm-2021}
  plans: [static]
columns: [model.n_layer, model.n_embd, model.n_inner, gpus_per_node, tp, dp, micro_batch, global_batch, sequence, step_time_s]
rows:
  - [2, 1024, 4096, 2, 1, 2, 1, 4, 1Ki, 1]
  - [4, 1024, 4096, 2, 1, 2, 1, 4, 1Ki, 1]
  - [2, 1024, 4096, 2, 2, 1, 2, 4, 1Ki, 1]
  - [2, 4096, 16384, 2, 1, 2, 4, 8, 1Ki, 1]
  - [2, 4096, 16384, 2, 1, 2, 8, 32, 1Ki, 1]
  - [4, 4096, 16384, 2, 1, 2, 8, 16, 1Ki, 1]
  - [2, 4096, 16384, 2, 2, 1, 8, 16, 1Ki, 1]
  - [2, 4096, 16384, 4, 4, 1, 8, 16, 1Ki, 1]
)";

inline ValidationSet set_of(const std::string& text, FigureUse use = FigureUse::published) {
  const StudyFile file(text);
  Diagnostics problems;
  auto set = load_validation_set(file.path(), problems, use);
  problems.throw_if_any();
  return std::move(*set);
}

inline FitRequest request_of(ValidationSet set, std::vector<std::string> parameters) {
  return {.sets = {{std::move(set), "steps.yaml"}},
          .data_folder = HDPSIM_SOURCE_DIR,
          .changes = {},
          .parameters = std::move(parameters),
          .rows = {},
          .tried_key = {},
          .tried_values = {},
          .version = {}};
}

/// A parameter and its hidden value.
struct Hidden {
  std::string name;
  double value;
};

// The set with the steps that a machine with these values takes, and noise.
inline ValidationSet measured(ValidationSet set, const std::vector<Hidden>& hidden, double noise, std::uint64_t seed) {
  const StepModel model(
      {.sets = {{set, "steps.yaml"}}, .data_folder = HDPSIM_SOURCE_DIR, .changes = {}, .running = {}});
  std::vector<const PhysicalParameter*> parameters;
  std::vector<double> values;
  for (const auto& [name, value] : hidden) {
    parameters.push_back(&fit_parameter(name));
    values.push_back(value);
  }
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < model.figures().size(); ++i) all.push_back(i);
  const std::vector<double> steps = model.predicted(parameters, values, all);
  RandomStream random(seed, "test.steps");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    set.cases[model.figures()[i].row].published.front().value = steps[i] * std::exp(noise * random.normal());
  }
  return set;
}

inline const FittedParameter& parameter_of(const FitResult& result, const std::string& name) {
  const auto& all = result.profile.provenance.fit->parameters;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace hdpsim::test
