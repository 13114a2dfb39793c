#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/document/document.h"

namespace hdpsim {

/// A file of a program whose files are not read, and the nearest way in.
struct ForeignFile {
  std::string name;   ///< Of the program: "LLaMA-Factory".
  Position position;  ///< Of the key, or of the word, by which it is recognised.
  std::string sign;   ///< That key or word.
  std::string way;    ///< What to do instead.
};

/// Whose file a document is, by keys that it has at any depth; empty if they are of no such program, or of
/// Megatron-LM.
[[nodiscard]] std::optional<ForeignFile> foreign_document(const Value& root);

/// Whose training a command starts, by one of its words (`llamafactory-cli`); empty if none is known. The position
/// is the caller's to set.
[[nodiscard]] std::optional<ForeignFile> foreign_command(std::string_view word);

}  // namespace hdpsim
