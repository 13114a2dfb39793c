#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hdpsim::fuzz {

/// One kind of input that users hand in. `name` is also the folder of its corpus.
struct Target {
  std::string_view name;
  std::string_view extension;  ///< Of the file that the reader is given.
};

/// Takes the target that an argument names: --target=NAME. Returns whether there is one; before, nothing can be read.
[[nodiscard]] bool choose_target(const char* const* begin, const char* const* end);

/// The target that was chosen.
[[nodiscard]] Target target();

/// Reads the input as a user's command would. Whatever the bytes are, the reader takes them or says what is wrong:
/// every exception but InputError and MachineError ends the program.
void read(std::string_view input);

}  // namespace hdpsim::fuzz
