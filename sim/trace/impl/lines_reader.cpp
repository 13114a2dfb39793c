#include "sim/document/input_file.h"
#include "sim/trace/impl/file_source.h"
#include "sim/trace/impl/readers.h"

namespace hdpsim {
namespace {

class LinesSource : public FileSource {
 public:
  explicit LinesSource(const std::filesystem::path& path) : FileSource(path.string()), lines_(path) {}

 private:
  std::optional<Length> read() override {
    while (lines_.next_filled('#')) {
      const std::string_view line = lines_.text();
      const std::size_t first = line.find_first_not_of(blanks);
      const Parsed<std::int64_t> length = parse_length(line.substr(first, line.find_last_not_of(blanks) + 1 - first));
      if (length.value) return Length{*length.value, {}};
      problems().add({line, lines_.number(), static_cast<int>(first) + 1}, length.error, length.help);
    }
    return std::nullopt;
  }

  LineReader lines_;
};

}  // namespace

bool begins_with_length(const std::filesystem::path& path) {
  LineReader lines(path);
  if (!lines.next_filled('#')) return true;
  const std::string_view line = lines.text();
  const std::size_t first = line.find_first_not_of(blanks);
  const std::string_view text = line.substr(first, line.find_last_not_of(blanks) + 1 - first);
  const bool begins = std::string_view("0123456789.+-").find(text.front()) != std::string_view::npos;
  const bool are_several = text.find_first_of(",;| \t") != std::string_view::npos &&
                           text.find_first_not_of("0123456789.+-,;| \t") == std::string_view::npos;
  return begins && !are_several;
}

std::unique_ptr<LengthSource> open_lines(const std::filesystem::path& path) {
  return std::make_unique<LinesSource>(path);
}

}  // namespace hdpsim
