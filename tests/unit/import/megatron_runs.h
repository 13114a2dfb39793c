#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/argument.h"
#include "sim/import/frameworks.h"
#include "sim/model/model_config.h"
#include "tests/support/catch.h"

namespace hdpsim::test::megatron {

// A dense model without anything unusual. 12 layers of 1024, 16 heads.
inline constexpr char small[] =
    "torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 12 --hidden-size 1024 --num-attention-heads "
    "16 "
    "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --bf16 "
    "--hidden-dropout 0 --attention-dropout 0 ";
inline constexpr char llama[] =
    "--swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope "
    "--untie-embeddings-and-output-weights ";

/// A run with what was told of it.
struct Read {
  TrainingRun run;
  Diagnostics problems;

  [[nodiscard]] std::vector<std::string> notes(ImportNote::Kind kind) const {
    std::vector<std::string> texts;
    for (const ImportNote& note : run.notes) {
      if (note.kind == kind) texts.push_back(note.text);
    }
    std::sort(texts.begin(), texts.end());
    return texts;
  }
  [[nodiscard]] std::string mesh(std::string_view key) const { return text(run.mesh, key); }
  [[nodiscard]] std::string training(std::string_view key) const { return text(run.training, key); }
  static std::string text(const Value& map, std::string_view key) {
    const Value* value = map.find(key);
    if (value == nullptr) return "absent";
    if (!value->is_sequence()) return value->text;
    std::string all;
    for (const Value& item : value->items) all += (all.empty() ? "" : " ") + item.text;
    return all;
  }
};

inline Read read(const std::string& script, const ImportOptions& options = {}) {
  Read read;
  read.problems.add_source("run.sh", script);
  const ArgumentList list = arguments_of_script("run.sh", script, options.variables, options.command, read.problems);
  if (read.problems.empty()) read.run = read_megatron(list, "run.sh", options, read.problems);
  return read;
}

inline Read good(const std::string& script, const ImportOptions& options = {}) {
  Read result = read(script, options);
  INFO(result.problems.text());
  REQUIRE(result.problems.empty());
  return result;
}

inline Transformer model(const std::string& script, const ImportOptions& options = {}) {
  const Read result = good(script, options);
  Diagnostics problems;
  const auto described = read_model(result.run.configuration, "mine", problems);
  INFO(problems.text());
  REQUIRE(described.has_value());
  return *described;
}

inline std::vector<std::string> problems(const std::string& script, const ImportOptions& options = {}) {
  std::vector<std::string> told;
  for (const Diagnostic& each : read(script, options).problems.sorted()) {
    told.push_back(fmt::format("{}:{}: {}{}", each.position.line, each.position.column,
                               each.unsupported ? "unsupported: " : "", each.message));
  }
  return told;
}

}  // namespace hdpsim::test::megatron
