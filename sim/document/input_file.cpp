#include "sim/document/input_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/input_files.h"
#include "sim/document/limits.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block = std::size_t{1} << 16;

std::string name_like(const fs::path& path) {
  std::error_code ignored;
  std::vector<std::string> names;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  const std::string best = closest(path.filename().string(), names);
  return best.empty() ? std::string{} : fmt::format("did you mean '{}'?", (path.parent_path() / best).string());
}

}  // namespace

InputFile::InputFile(const fs::path& path) : name_(path.string()) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found) {
    throw InputError(Position{name_, 0, 0}, "there is no such file", name_like(path));
  }
  if (status.type() == fs::file_type::directory) {
    throw InputError(Position{name_, 0, 0}, "is a directory", "name a file in it");
  }
  InputFiles::record(path);
  file_.reset(std::fopen(name_.c_str(), "rb"));
  if (!file_) refused();
  const std::uintmax_t bytes = fs::file_size(path, failure);  // a pipe has none
  stored_bytes_ = failure ? 0 : static_cast<double>(bytes);
  const Compression* compression = compression_of(path);
  if (compression == nullptr) return;
  refuse_unread_compression(path);
  compressed_ = make_decompressor(*compression, file_.get(), name_);
}

std::size_t InputFile::read(std::span<unsigned char> buffer) {
  if (compressed_) return compressed_->read(buffer);
  const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file_.get());
  if (count < buffer.size() && std::ferror(file_.get()) != 0) refused();
  return count;
}

void InputFile::seek(std::int64_t offset) {
  HDPSIM_CHECK(compressed_ == nullptr, "a place in {} is asked for", name_);
  if (fseeko(file_.get(), offset, SEEK_SET) != 0) refused();
}

std::int64_t InputFile::size() {
  HDPSIM_CHECK(compressed_ == nullptr, "the size of {} is asked for", name_);
  const off_t here = ftello(file_.get());
  if (here < 0 || fseeko(file_.get(), 0, SEEK_END) != 0) refused();
  const off_t size = ftello(file_.get());
  seek(here);
  return size;
}

double InputFile::share_read() const {
  const double read = compressed_ ? compressed_->stored_bytes() : static_cast<double>(ftello(file_.get()));
  return stored_bytes_ > 0 && read > 0 ? std::min(1.0, read / stored_bytes_) : 0;
}

void InputFile::refused() const {
  throw MachineError(fmt::format("cannot read {}: {}", name_, std::strerror(errno)));
}

LineReader::LineReader(const fs::path& path) : file_(path) {
  refill();
  if (buffer_.starts_with("\xFF\xFE") || buffer_.starts_with("\xFE\xFF")) {
    throw InputError(Position{file_.name(), 1, 1}, "this text is UTF-16", "save it as UTF-8");
  }
  at_ = mark_bytes(buffer_);
}

bool LineReader::refill() {
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t kept = buffer_.size();
  if (kept > longest_line) {
    throw InputError(Position{file_.name(), number_ + 1, 1},
                     fmt::format("the line is longer than {} MiB", longest_line >> 20), "is this a text file?");
  }
  buffer_.resize(kept + block);
  const std::size_t count = file_.read({reinterpret_cast<unsigned char*>(buffer_.data()) + kept, block});
  buffer_.resize(kept + count);
  return count > 0;
}

bool LineReader::next() {
  std::size_t searched = 0;
  std::size_t end = buffer_.find('\n', at_);
  while (end == std::string::npos) {
    searched = buffer_.size() - at_;
    if (!refill()) break;
    end = buffer_.find('\n', searched);
  }
  if (end == std::string::npos && at_ == buffer_.size()) return false;
  line_ = std::string_view(buffer_).substr(at_, end == std::string::npos ? end : end - at_);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  if (number_ == 0 && end == std::string::npos && line_.find('\r') != std::string_view::npos) {
    throw InputError(Position{file_.name(), 1, 1}, "the lines of this text end with CR alone",
                     "end them with LF, as tr '\\r' '\\n' does");
  }
  at_ = end == std::string::npos ? buffer_.size() : end + 1;
  if (number_ < std::numeric_limits<int>::max()) ++number_;
  return true;
}

bool LineReader::next_filled(char comment) {
  while (next()) {
    const std::size_t first = line_.find_first_not_of(blanks);
    if (first != std::string_view::npos && (comment == '\0' || line_[first] != comment)) return true;
    if (++empty_ > most_empty_lines) {
      throw InputError(Position{file_.name(), number_, 1},
                       fmt::format("more than {} lines hold nothing", most_empty_lines), "is it the right file?");
    }
  }
  return false;
}

std::uint64_t little_endian(std::span<const unsigned char> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) value = value << 8 | bytes[i - 1];
  return value;
}

}  // namespace hdpsim
