#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/import/impl/megatron_arguments.h"

namespace hdpsim {

/// The letters that a layer can have, for people.
inline constexpr std::string_view hybrid_letters_known = "M (Mamba), * (attention), - (MLP), E (experts)";

/// Whether the arguments describe a hybrid model.
[[nodiscard]] bool is_hybrid(const MegatronArguments& arguments);

/// The layers of a hybrid model, a letter each: M Mamba-2, * attention, - MLP, E experts. They are those of a pattern
/// (--hybrid-layer-pattern, or its older name), or `count` that ratios of attention and MLPs make of, dealt as
/// Megatron-LM deals them (hybrid_layer_allocation.py, pattern_from_ratios). Other letters are for the reader of the
/// model to report.
[[nodiscard]] std::string hybrid_letters(const MegatronArguments& arguments, std::int64_t count);
/// The argument that states them: of a pattern, or of the ratio of attention.
[[nodiscard]] std::string_view hybrid_argument(const MegatronArguments& arguments);
/// Whether they state their number, too, so that --num-layers may be left out.
[[nodiscard]] bool states_layers(const MegatronArguments& arguments);
/// The parts into which bars cut the layers: all chunks of all stages. 1 without bars.
[[nodiscard]] std::int64_t hybrid_segments(const MegatronArguments& arguments);

/// Adds to a configuration of NemotronHForCausalLM the letters of its layers, and what arguments say of state spaces,
/// of experts and of the layers that predict further tokens. `ffn` is the inner width of an expert that none states.
/// Ratios that are wrong are reported.
void set_hybrid_layers(const MegatronArguments& arguments, const std::string& letters, std::int64_t hidden_size,
                       std::int64_t ffn, Value& config);

}  // namespace hdpsim
