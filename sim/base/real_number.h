#pragma once

#include <system_error>

namespace hdpsim {

/// Where a number ends, and what is wrong with it, as std::from_chars() says.
struct RealNumberEnd {
  const char* ptr;
  std::errc ec;
};

/// std::from_chars() of a double in its general form, also where the standard library has none for floating-point
/// numbers (libc++ before 20).
[[nodiscard]] RealNumberEnd read_real_number(const char* begin, const char* end, double& number);

/// The same by std::strtod(), which is correctly rounded, too, in the locale "C".
[[nodiscard]] RealNumberEnd real_number_by_strtod(const char* begin, const char* end, double& number);

}  // namespace hdpsim
