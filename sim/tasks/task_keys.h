#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/document/key_table.h"

namespace hdpsim {

// The maps of a file of tasks as they are written; what they mean together is task_file.h's.

/// An entry of `modules`.
struct ModuleText {
  const Value* model = nullptr;
  std::optional<std::int64_t> layers{};
  std::optional<std::int64_t> width{};
  std::optional<std::int64_t> heads{};
  std::optional<std::int64_t> inner{};
  std::optional<std::int64_t> vocabulary{};
  std::int64_t tp = 1;
  std::optional<bool> is_causal{};
};

/// An entry of `graph`.
struct NodeText {
  std::string module{};  ///< Empty: its own name.
  std::int64_t tokens = 0;
  std::optional<std::int64_t> batch{};
  const Value* after = nullptr;
};

/// An entry of `tasks`.
struct TaskText {
  std::optional<std::int64_t> batch{};
  const Value* graph = nullptr;
};

/// An entry of `cases`.
struct CaseText {
  std::string label{};
  const Value* set = nullptr;
  const Value* published = nullptr;
};

/// The whole file.
struct TaskFileText {
  std::string name{};
  std::int64_t zero = 1;
  std::optional<std::int64_t> batch{};
  const Value* modules = nullptr;
  const Value* tasks = nullptr;
  const Value* train = nullptr;
  const Value* cases = nullptr;
};

[[nodiscard]] const KeyTable<ModuleText>& task_module_keys();
[[nodiscard]] const KeyTable<NodeText>& task_node_keys();
[[nodiscard]] const KeyTable<TaskText>& task_keys();
[[nodiscard]] const KeyTable<CaseText>& task_case_keys();
[[nodiscard]] const KeyTable<TaskFileText>& task_file_table();

/// The sections that a file of tasks has as a study has them.
[[nodiscard]] const std::vector<std::string>& shared_sections();

}  // namespace hdpsim
