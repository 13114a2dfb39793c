#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/import/impl/shell_text.h"
#include "sim/import/import_note.h"

namespace hdpsim {

struct ShellCommand {
  std::vector<ShellText> words;
  std::map<std::string, ShellText> environment = {};  ///< Variables that are set in front of it, for it alone.
};

/// What a shell script does as far as it can be known without running it: the commands that it runs, in order, with
/// the values of its variables put in.
struct ShellScript {
  std::vector<ShellCommand> commands;           ///< Those of parts that may run, too.
  std::map<std::string, ShellText> variables;   ///< Those with one value, as they are at the end.
  std::map<std::string, ShellText> directives;  ///< Of Slurm (`#SBATCH --nodes=16`), by their long names.
  std::vector<std::uint32_t> lines;             ///< The offset where each line begins.
  ImportNotes notes;                            ///< Variables that the script does not set, parts that are ignored.

  [[nodiscard]] Position position(const std::string& file, std::uint32_t offset) const;
  [[nodiscard]] Position position(const std::string& file, const ShellText& word) const;
};

/// Reads a script of sh or bash. Followed are assignments, arrays and `+=`, quotes, `$X`, `${X:-default}` and its kin,
/// arithmetic, here-documents, lists, `if`, `case`, loops, functions, `eval`, and texts that other shells read (`bash
/// -c`, `sbatch <<EOF`). What depends on the machine (files, output of commands) is not known. Of parts that depend on
/// it each may run: a variable has the value that all of them leave, or none that is known; what they only add to it is
/// ignored, with a note. A name of `variables` has its value there whatever the script assigns to it; `1` is the
/// script's first argument. Reported are texts that are not closed, and scripts that ask for more than the limits of
/// sim/document, in text or in computing.
[[nodiscard]] ShellScript read_shell_script(const std::string& file, const std::string& text,
                                            const std::map<std::string, std::string>& variables,
                                            Diagnostics& diagnostics);

}  // namespace hdpsim
