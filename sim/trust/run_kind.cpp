#include "sim/trust/run_kind.h"

#include "sim/base/text.h"

namespace hdpsim {

const std::vector<std::string>& workload_names() {
  static const std::vector<std::string> names = {"dense", "host-bound", "mixed lengths", "experts", "host memory"};
  return names;
}

std::string_view name_of(Workload workload) {
  return workload_names().at(static_cast<std::size_t>(workload));
}

const std::vector<std::string>& stack_names() {
  static const std::vector<std::string> names = {"nvidia", "pytorch", "other"};
  return names;
}

bool agree(const RunKind& one, const RunKind& other, int depth) {
  return (depth < 1 || one.workload == other.workload) && (depth < 2 || one.stack == other.stack) &&
         (depth < 3 || one.device == other.device);
}

std::string text_of(const RunKind& kind, int depth) {
  if (depth == 0) return "all runs";
  std::vector<std::string> words = {std::string(name_of(kind.workload)), kind.stack, kind.device};
  words.resize(static_cast<std::size_t>(depth));
  return joined(words, ", ");
}

}  // namespace hdpsim
