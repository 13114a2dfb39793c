#include "sim/study/memory_options.h"

#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

constexpr Between<Bytes> reserve_range{Bytes(0), limits::memory.most};

void read_reserve(const Value& value, Recipe& recipe, Diagnostics& diagnostics) {
  if (value.text == "auto") return;
  recipe.reserve = read_in<Bytes>(value, "'reserve'", reserve_range, diagnostics);
}

const KeyTable<Recipe>& memory_table() {
  static const auto made = [] {
    KeyTable<Recipe> memory("the memory");
    memory.word(
        "loss", "way to compute the loss", {{"fused", true}, {"fp32", false}}, at(&Recipe::fused_loss),
        "`fused`: a fused cross-entropy that turns bf16 logits into their gradient in place; `fp32`: unfused, kernel "
        "by kernel on an fp32 copy, as Megatron-LM without fusion; it changes time and memory",
        {.written = always_written});
    memory.number("fragmentation", {0, 1}, at(&Recipe::fragmentation),
                  "gaps of the allocator, as a share of what is allocated", {.written = always_written});
    KeyShape amount = shape_of(KeyShape::Kind::bytes);
    amount.limits = range_text(reserve_range);
    memory.add({"reserve",
                either_shape({word_shape({"auto"}), amount}),
                "auto",
                "device memory outside of the allocator; `auto`: 426 MiB for the CUDA context and 688 MiB for a "
                "communicator each of the tensor-parallel group and the pool",
                {.written = always_written}},
               read_reserve);
    return memory;
  }();
  return made;
}

}  // namespace

const std::vector<KeyText>& memory_keys() {
  return memory_table().texts();
}

void read_memory(const Value& value, Recipe& recipe, Diagnostics& diagnostics) {
  (void)memory_table().read(value, recipe, diagnostics);
}

}  // namespace hdpsim
