#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// The layers of each chunk of a pipeline, in the order in which a micro-batch passes them, as Megatron-LM's
/// `--pipeline-model-parallel-layout` writes them: "Et*3|(tt|)*29m|L". A bar ends a chunk; `t` is a layer, `E` the
/// embedding, `L` head and loss, and `m` the one for multi-token prediction, the model's last; `*n` repeats the letter
/// or the parentheses before it.
struct LayerLayout {
  std::vector<std::int64_t> layers;  ///< By chunk; a chunk may have none.
  std::string problem;               ///< Why the text is no layout; empty if it is one.
};
/// O(chunks), of which there may be 65,536.
[[nodiscard]] LayerLayout read_layout(std::string_view text);

}  // namespace hdpsim
