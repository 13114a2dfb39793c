#include "sim/base/check.h"

namespace hdpsim::detail {

void check_failed(const char* file, int line, std::string_view condition, const std::string& values) {
  throw CheckFailure(fmt::format("{}:{}: check failed: {}: {}", file, line, condition, values));
}

}  // namespace hdpsim::detail
