#include "sim/import/shell_script.h"

#include <algorithm>

#include "sim/import/impl/shell_reader.h"

namespace hdpsim {

Position ShellScript::position(const std::string& file, std::uint32_t offset) const {
  const auto behind = std::upper_bound(lines.begin(), lines.end(), offset);
  if (behind == lines.begin()) return {file, 1, 1};
  return {file, static_cast<int>(behind - lines.begin()), static_cast<int>(offset - *(behind - 1)) + 1};
}

Position ShellScript::position(const std::string& file, const ShellText& word) const {
  return position(file, word.begin);
}

ShellScript read_shell_script(const std::string& file, const std::string& text,
                              const std::map<std::string, std::string>& variables, Diagnostics& diagnostics) {
  return ShellReader(file, text, diagnostics).read(variables);
}

}  // namespace hdpsim
