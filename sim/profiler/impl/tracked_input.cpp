#include "sim/profiler/impl/tracked_input.h"

#include <fmt/format.h>

#include <limits>

#include "sim/document/limits.h"

namespace hdpsim {
namespace {

constexpr std::size_t block = std::size_t{1} << 20;

void count(int& number) {
  if (number < std::numeric_limits<int>::max()) ++number;
}

}  // namespace

TrackedInput::TrackedInput(const std::filesystem::path& path, const ReportShare& report)
    : file_(path), report_(report) {
  refill();
  at_ = mark_bytes({buffer_.data(), filled_});
}

void TrackedInput::advance() {
  if (++since_value_ > longest_line) {
    throw InputError(position(), fmt::format("no value ends within {} MiB", longest_line >> 20),
                     "is the file complete?");
  }
  if (buffer_[at_] == '\n') {
    count(line_);
    column_ = 1;
  } else {
    count(column_);
  }
  if (++at_ == filled_) refill();
}

void TrackedInput::refill() {
  buffer_.resize(block);
  at_ = 0;
  try {
    filled_ = file_.read({reinterpret_cast<unsigned char*>(buffer_.data()), block});
  } catch (const InputError& error) {
    const Diagnostic problem = error.diagnostics().sorted().front();
    throw InputError(position(), problem.message, problem.help);
  }
  report_(file_.share_read());
}

}  // namespace hdpsim
