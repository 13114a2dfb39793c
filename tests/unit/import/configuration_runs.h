#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/import/configuration.h"
#include "sim/import/impl/hub_models.h"
#include "sim/study/catalog.h"
#include "tests/support/catch.h"

namespace hdpsim::test::configuration {

using Kind = ImportNote::Kind;

/// A training that was read, and what is to be said of it.
struct ReadTraining {
  TrainingRun run;
  Diagnostics problems;

  static std::string text(const Value& map, std::string_view key) {
    const Value* value = map.find(key);
    return value == nullptr ? "absent" : value->text;
  }
  [[nodiscard]] std::string mesh(std::string_view key) const { return text(run.mesh, key); }
  [[nodiscard]] std::string training(std::string_view key) const { return text(run.training, key); }
  [[nodiscard]] std::string kernels(std::string_view key) const { return text(run.kernels, key); }
  [[nodiscard]] std::string plan(std::string_view key) const { return text(run.plan_options, key); }
  [[nodiscard]] std::string lora(std::string_view key) const {
    const Value* lora = run.training.find("lora");
    return lora == nullptr ? "absent" : text(*lora, key);
  }
  [[nodiscard]] std::string host(std::string_view key) const {
    const Value* host = run.training.find("host");
    return host == nullptr ? "absent" : text(*host, key);
  }
  /// The first note of a kind that holds a text; empty if there is none.
  [[nodiscard]] std::string note(Kind kind, std::string_view part) const {
    for (const ImportNote& each : run.notes) {
      if (each.kind == kind && each.text.find(part) != std::string::npos) return each.text;
    }
    return {};
  }
};

using Files = std::vector<ConfigText>;

inline ImportOptions with_hub(ImportOptions options, const std::map<std::string, std::string>& beside) {
  options.model_of_hub = [](const std::string& name) { return hub_model(name, Catalog(HDPSIM_SOURCE_DIR)); };
  options.file_beside = [beside](const std::string& path, const std::string&) -> std::optional<ConfigText> {
    const auto found = beside.find(path);
    return found == beside.end() ? std::nullopt : std::optional(ConfigText{found->first, found->second});
  };
  return options;
}

inline ReadTraining read(const Files& files, const ImportOptions& options = {},
                         const std::map<std::string, std::string>& beside = {}) {
  ReadTraining made;
  made.run = read_configuration(files, with_hub(options, beside), made.problems);
  return made;
}

inline ReadTraining good(ReadTraining made) {
  INFO(made.problems.text());
  REQUIRE(made.problems.empty());
  return made;
}

inline ReadTraining launched(const std::string& script, const ImportOptions& options = {},
                             const std::map<std::string, std::string>& beside = {}) {
  ReadTraining made;
  auto run = read_launched_configuration({"run.sh", script}, {}, with_hub(options, beside), made.problems);
  if (run) made.run = std::move(*run);
  if (!run && made.problems.empty()) made.problems.error({"run.sh", 0, 0}, "no command trains");
  return made;
}

}  // namespace hdpsim::test::configuration
