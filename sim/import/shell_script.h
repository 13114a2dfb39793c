#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/import/import_note.h"

namespace hdpsim {

/// A word of a script behind all expansions, with the place of each of its characters.
struct ShellText {
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  std::string text;
  std::vector<std::uint32_t> from;  ///< For each character, its offset in the script; nowhere: it is not from there.
  std::uint32_t begin = 0;          ///< The offset where the word begins.
  std::string unset;                ///< What of it is not known: `$DATA`, `$(nproc)`; empty: it is known as a whole.
};

struct ShellCommand {
  std::vector<ShellText> words;
};

/// What a shell script does as far as it can be known without running it: the commands that it runs, in order, with
/// the values of its variables put in.
struct ShellScript {
  std::vector<ShellCommand> commands;
  std::map<std::string, ShellText> variables;  ///< Those with one value, as they are at the end.
  std::vector<std::uint32_t> lines;            ///< The offset where each line begins.
  ImportNotes notes;                           ///< Variables that the script does not set, parts that are not followed.

  /// The words of a word that is a command for another shell: `text` split at blanks.
  [[nodiscard]] static std::vector<ShellText> split(const ShellText& text);
  [[nodiscard]] Position position(const std::string& file, std::uint32_t offset) const;
  [[nodiscard]] Position position(const std::string& file, const ShellText& word) const;
};

/// Reads a script of sh or bash. Known are assignments, arrays and `+=`, quotes, `$X`, `${X:-default}` and its kin,
/// `$((...))`, comments, here-documents, lists (`&&`, `||`), and `if` with comparisons of known texts and numbers. What
/// depends on the machine (files, output of commands) is not known: the parts of the script that hang on it are left
/// out, and so are loops, `case` and functions, which the notes say where something in them could matter. A name of
/// `variables` has its value there whatever the script assigns to it. Reported are texts that are not closed, and
/// scripts that ask for more than the limits of sim/document.
[[nodiscard]] ShellScript read_shell_script(const std::string& file, const std::string& text,
                                            const std::map<std::string, std::string>& variables,
                                            Diagnostics& diagnostics);

}  // namespace hdpsim
