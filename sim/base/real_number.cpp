#include "sim/base/real_number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

namespace hdpsim {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

const char* after_digits(const char* at, const char* end) {
  while (at != end && is_digit(*at)) ++at;
  return at;
}

// The end of the longest decimal number at `begin`, which is `begin` where there is none.
const char* end_of_decimal(const char* begin, const char* end) {
  const char* const first = begin != end && *begin == '-' ? begin + 1 : begin;
  const char* at = after_digits(first, end);
  auto digits = at - first;
  if (at != end && *at == '.') {
    const char* const fraction = at + 1;
    at = after_digits(fraction, end);
    digits += at - fraction;
  }
  if (digits == 0) return begin;
  if (at == end || (*at != 'e' && *at != 'E')) return at;
  const char* exponent = at + 1;
  if (exponent != end && (*exponent == '+' || *exponent == '-')) ++exponent;
  const char* const behind = after_digits(exponent, end);
  return behind == exponent ? at : behind;
}

// Infinities and NaNs, of which both take the same.
bool is_word(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::string_view("iInN").find(text.front()) != std::string_view::npos;
}

}  // namespace

// strtod() would also take blanks, a plus and hexadecimal numbers, hence the search for the end.
RealNumberEnd real_number_by_strtod(const char* begin, const char* end, double& number) {
  const bool is_named = is_word({begin, static_cast<std::size_t>(end - begin)});
  const std::string text(begin, is_named ? end : end_of_decimal(begin, end));
  char* stop = nullptr;
  const double read = std::strtod(text.c_str(), &stop);
  if (stop == text.c_str()) return {begin, std::errc::invalid_argument};
  const char* const behind = begin + (stop - text.c_str());
  const bool is_too_small = read == 0 && text.find_first_of("123456789") < text.find_first_of("eE");
  if (is_too_small || (std::isinf(read) && !is_named)) return {behind, std::errc::result_out_of_range};
  number = read;
  return {behind, std::errc{}};
}

RealNumberEnd read_real_number(const char* begin, const char* end, double& number) {
#ifdef __cpp_lib_to_chars
  const auto [ptr, ec] = std::from_chars(begin, end, number);
  return {ptr, ec};
#else
  return real_number_by_strtod(begin, end, number);
#endif
}

}  // namespace hdpsim
