#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace hdpsim {

/// A broken invariant of the program itself: a bug, never the user's fault. The application ends with exit code 70.
class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// The machine refused: no memory, no space, no permission, no device. The application ends with exit code 3.
class MachineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, std::string_view condition, const std::string& values);
}  // namespace detail

}  // namespace hdpsim

/// A check that stays on in release builds too. The format arguments print the values that broke the invariant.
#define HDPSIM_CHECK(condition, ...)                                                              \
  do {                                                                                            \
    if (!(condition)) [[unlikely]]                                                                \
      ::hdpsim::detail::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
