#include "sim/document/impl/stream_decoder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"

namespace hdpsim {
namespace {

constexpr std::size_t stored_block = std::size_t{1} << 16;

}  // namespace

StreamDecoder::StreamDecoder(std::FILE* file, std::string name)
    : file_(file), name_(std::move(name)), block_(stored_block) {}

void StreamDecoder::fill() {
  const std::size_t count = std::fread(block_.data(), 1, block_.size(), file_);
  if (count < block_.size() && std::ferror(file_) != 0) {
    throw MachineError(fmt::format("cannot read {}: {}", name_, std::strerror(errno)));
  }
  rest_ = std::span<const unsigned char>(block_).first(count);
  stored_ += static_cast<double>(count);
  is_last_ = count < block_.size();
}

std::size_t StreamDecoder::read(std::span<unsigned char> buffer) {
  std::size_t made = 0;
  while (made < buffer.size()) {
    if (rest_.empty() && !is_last_) fill();
    if (rest_.empty() && is_last_ && at_end_) break;
    const Progress progress = decode(rest_, buffer.subspan(made), is_last_);
    rest_ = rest_.subspan(progress.taken);
    made += progress.made;
    at_end_ = progress.at_end;
    const bool is_stuck = progress.taken == 0 && progress.made == 0 && !at_end_;
    if (is_stuck && (is_last_ || !rest_.empty())) refuse("it ends too early");
  }
  return made;
}

void StreamDecoder::refuse(std::string_view why) const {
  throw InputError(Position{name_, 0, 0}, fmt::format("its compression is damaged: {}", why),
                   "compress or copy it again");
}

}  // namespace hdpsim
