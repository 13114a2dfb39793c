#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/fingerprint.h"

namespace hdpsim {

/// Seals what is kept in a file for a later execution, so that nothing damaged is taken for a result. A sealed line is a
/// JSON object whose last member, "checksum", is the fingerprint of its owner and of the rest of the object: a byte that
/// was changed, lost or added shows, and so does the line of another owner.
class Seal {
 public:
  /// `owner` is what the lines depend on.
  explicit Seal(std::string_view owner) : owner_(hdpsim::fingerprint(owner)) {}

  /// `object` is a JSON object of at least one member in one line. With its checksum and a line end.
  [[nodiscard]] std::string closed(std::string_view object) const;
  /// The object of a line, which comes without its end. Nothing if it is not what closed() has made for this owner.
  [[nodiscard]] std::optional<std::string> opened(std::string_view line) const;
  /// The checksum of a text that keeps it elsewhere.
  [[nodiscard]] std::uint64_t fingerprint(std::string_view text) const { return hdpsim::fingerprint(text, owner_); }

 private:
  std::uint64_t owner_;
};

/// Is told of each part of a kept file that cannot be used: its place, and what is wrong with it.
using TellDamage = std::function<void(const Diagnostic&)>;
/// "file:line:column: message".
[[nodiscard]] std::string damage_text(const Diagnostic& part);

/// The text of a file that an execution has kept; empty if it is no file of text that can be read.
[[nodiscard]] std::string text_of_kept(const std::filesystem::path& path);

/// The lines of a text that have their end, without it. What follows the last one was cut off while it was written.
[[nodiscard]] std::vector<std::string_view> complete_lines(std::string_view text);

/// Opens the lines of a journal behind the first one, its header. `take(object, line)` uses a line, or says why it
/// cannot; it and whatever does not open is told, with the place in `file`. Returns whether all lines are used.
[[nodiscard]] bool take_sealed(const std::string& file, const std::vector<std::string_view>& lines, const Seal& seal,
                               const std::function<std::string(const std::string&, std::string_view)>& take,
                               const TellDamage& tell);

}  // namespace hdpsim
