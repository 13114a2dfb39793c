#include "sim/base/text.h"

#include <iterator>

namespace hdpsim {

void append_formatted(std::string& text, fmt::string_view format, fmt::format_args arguments) {
  fmt::vformat_to(std::back_inserter(text), format, arguments);
}

}  // namespace hdpsim
