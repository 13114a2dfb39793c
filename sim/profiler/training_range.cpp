#include "sim/profiler/training_range.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "sim/document/input_file.h"

namespace hdpsim {
namespace {

constexpr std::string_view range_prefix = "hdpsim:";

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::optional<TrainingRange> range_of_step(const std::vector<std::string_view>& parts) {
  const auto step = number_of(parts[0]);
  if (!step) return std::nullopt;
  if (parts.size() == 2 && parts[1] == "reduce")
    return TrainingRange{.kind = TrainingRange::Kind::reduce, .step = *step};
  if (parts.size() != 3) return std::nullopt;
  if (parts[1] == "rank") {
    const auto rank = number_of(parts[2]);
    if (!rank) return std::nullopt;
    return TrainingRange{.kind = TrainingRange::Kind::step, .step = *step, .rank = *rank};
  }
  const auto micro_batch = number_of(parts[1]);
  const bool is_forward = parts[2] == "forward";
  if (!micro_batch || (!is_forward && parts[2] != "backward")) return std::nullopt;
  return TrainingRange{.kind = is_forward ? TrainingRange::Kind::forward : TrainingRange::Kind::backward,
                       .step = *step,
                       .micro_batch = *micro_batch};
}

}  // namespace

std::optional<TrainingRange> training_range(std::string_view name) {
  if (name.starts_with("Optimizer.")) return TrainingRange{.kind = TrainingRange::Kind::optimizer};
  if (!name.starts_with(range_prefix)) return std::nullopt;
  name.remove_prefix(range_prefix.size());
  if (name == "exchange") return TrainingRange{.kind = TrainingRange::Kind::exchange};
  if (name == "attention/forward") return TrainingRange{.kind = TrainingRange::Kind::attention_forward};
  if (name == "attention/backward") return TrainingRange{.kind = TrainingRange::Kind::attention_backward};
  return range_of_step(parts_of(name));
}

bool has_training_ranges(const std::filesystem::path& file) {
  constexpr std::size_t block = std::size_t{1} << 20;
  InputFile input(file);
  std::string text;
  std::vector<unsigned char> buffer(block);
  for (std::size_t read = block; read == block;) {
    read = input.read(buffer);
    text.append(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(read));
    for (std::size_t at = text.find(range_prefix); at != std::string::npos; at = text.find(range_prefix, at + 1)) {
      const std::size_t digit = at + range_prefix.size();
      if (digit < text.size() && text[digit] >= '0' && text[digit] <= '9') return true;
    }
    text.erase(0, text.size() - std::min(text.size(), range_prefix.size()));  // a name may go on in the next block
  }
  return false;
}

}  // namespace hdpsim
