#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hdpsim {

/// The numbers of a Python list such as `[0]*3+[1]*58` or `([1]*3+[0])*12`, by which Megatron-LM says which layers have
/// experts or windows. Empty if the text is something else, or has more than `most` numbers.
[[nodiscard]] std::optional<std::vector<std::int64_t>> layer_list(std::string_view text, std::size_t most);

}  // namespace hdpsim
