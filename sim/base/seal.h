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

/// Seals what a file keeps for a later execution, so that damaged data is never taken for a result. A sealed line is a
/// JSON object whose last member, "checksum", is the fingerprint of its owner and of the rest of the object: a byte
/// that was changed, lost or added shows, and so does a line of another owner.
class Seal {
 public:
  /// `owner` identifies what the lines depend on.
  explicit Seal(std::string_view owner) : owner_(hdpsim::fingerprint(owner)) {}

  /// The sealed line, with checksum and line end. `object` is a JSON object of at least one member in one line.
  [[nodiscard]] std::string closed(std::string_view object) const;
  /// The object of a sealed line, which is given without its line end. Empty if the line is not what closed() makes for
  /// this owner.
  [[nodiscard]] std::optional<std::string> opened(std::string_view line) const;
  /// The checksum of a text that keeps it elsewhere.
  [[nodiscard]] std::uint64_t fingerprint(std::string_view text) const { return hdpsim::fingerprint(text, owner_); }

 private:
  std::uint64_t owner_;
};

/// Called for each part of a kept file that cannot be used, with its place and the problem.
using TellDamage = std::function<void(const Diagnostic&)>;
/// "file:line:column: message".
[[nodiscard]] std::string damage_text(const Diagnostic& part);

/// The text of a file that an execution has kept; empty if it is not a readable text file.
[[nodiscard]] std::string text_of_kept(const std::filesystem::path& path);

/// The lines of a text that have a line end, without it. Text behind the last line end was cut off while it was
/// written.
[[nodiscard]] std::vector<std::string_view> complete_lines(std::string_view text);

/// Opens the lines of a journal behind its header, the first line. `take(object, line)` uses a line or returns why it
/// cannot. Lines that it refuses and lines that do not open are reported to `tell` with their place in `file`. Returns
/// whether all lines are used.
[[nodiscard]] bool take_sealed(const std::string& file, const std::vector<std::string_view>& lines, const Seal& seal,
                               const std::function<std::string(const std::string&, std::string_view)>& take,
                               const TellDamage& tell);

}  // namespace hdpsim
