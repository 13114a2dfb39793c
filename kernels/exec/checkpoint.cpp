#include "kernels/exec/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/exec/impl/hash.h"
#include "kernels/spec/error.h"
#include "sim/base/check.h"

namespace hdpsim::kernels::exec {
namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 24> magic = {"hdpsim checkpoint 2\n"};

/// The title in the file's format.
struct Header {
  std::array<char, 24> start = magic;
  std::uint64_t shape;
  std::int64_t parameters, updates, next_step;
};

constexpr std::uint64_t tensors_begin = sizeof(Header);

std::uint64_t file_size(std::int64_t parameters) {
  return tensors_begin + checkpoint_tensors.size() * sizeof(float) * static_cast<std::uint64_t>(parameters) +
         sizeof(std::uint64_t);
}

Header header_of(const CheckpointTitle& title) {
  return {.shape = title.shape, .parameters = title.parameters, .updates = title.updates, .next_step = title.next_step};
}

CheckpointTitle title_of(const Header& header) {
  return {
      .shape = header.shape, .parameters = header.parameters, .updates = header.updates, .next_step = header.next_step};
}

// Continues `checksum` by four bytes at a time: all data of a checkpoint is a multiple of four bytes.
std::uint64_t extended(std::uint64_t checksum, const void* data, std::size_t bytes) {
  HDPSIM_CHECK(bytes % sizeof(std::uint32_t) == 0, "{} bytes of a checkpoint", bytes);
  const auto* at = static_cast<const std::byte*>(data);
  for (const std::byte* const end = at + bytes; at != end; at += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    checksum = mixed(checksum, word);
  }
  return checksum;
}

}  // namespace

// ---- Writing

CheckpointWriter::CheckpointWriter(fs::path path, const CheckpointTitle& title)
    : file_(std::move(path)), numbers_left_(static_cast<std::int64_t>(checkpoint_tensors.size()) * title.parameters) {
  const Header header = header_of(title);
  write_bytes(&header, sizeof(header));
}

void CheckpointWriter::write(std::span<const float> numbers) {
  numbers_left_ -= static_cast<std::int64_t>(numbers.size());
  HDPSIM_CHECK(numbers_left_ >= 0, "a checkpoint gets {} numbers too many", -numbers_left_);
  write_bytes(numbers.data(), numbers.size_bytes());
}

void CheckpointWriter::write_bytes(const void* data, std::size_t bytes) {
  checksum_ = extended(checksum_, data, bytes);
  file_.write({static_cast<const char*>(data), bytes});
}

void CheckpointWriter::finish() {
  HDPSIM_CHECK(numbers_left_ == 0, "a checkpoint lacks {} numbers", numbers_left_);
  const std::uint64_t checksum = checksum_;
  write_bytes(&checksum, sizeof(checksum));
  file_.commit(Durability::power);
}

// ---- Reading

CheckpointReader::CheckpointReader(fs::path path) : path_(std::move(path)), file_(path_, std::ios::binary) {
  std::error_code error;
  size_ = fs::file_size(path_, error);
  if (error || !file_) refuse("it cannot be read");
  Header header{};
  if (size_ < sizeof(header)) refuse("it is too short");
  read_bytes(0, &header, sizeof(header));
  if (header.start != magic) refuse("it does not begin as one");
  constexpr std::int64_t most_parameters = std::int64_t{1} << 50;
  if (header.parameters < 0 || header.parameters > most_parameters) refuse("its title is damaged");
  title_ = title_of(header);
  const std::uint64_t expected = file_size(header.parameters);
  if (size_ != expected) refuse(fmt::format("it has {} of {} bytes", size_, expected));
}

void CheckpointReader::verify() {
  std::vector<std::byte> part(std::size_t{1} << 20);
  std::uint64_t checksum = 0;
  const std::uint64_t end = size_ - sizeof(checksum);
  for (std::uint64_t at = 0; at < end; at += part.size()) {
    const std::size_t bytes = std::min<std::uint64_t>(part.size(), end - at);
    read_bytes(at, part.data(), bytes);
    checksum = extended(checksum, part.data(), bytes);
  }
  std::uint64_t stated = 0;
  read_bytes(end, &stated, sizeof(stated));
  if (checksum != stated) refuse("its checksum is wrong");
}

void CheckpointReader::read(std::size_t tensor, std::int64_t begin, std::span<float> numbers) {
  const std::int64_t there = std::clamp<std::int64_t>(title_.parameters - begin, 0, std::ssize(numbers));
  const auto first = tensor * static_cast<std::uint64_t>(title_.parameters) + static_cast<std::uint64_t>(begin);
  if (there > 0) {
    read_bytes(tensors_begin + first * sizeof(float), numbers.data(), static_cast<std::size_t>(there) * sizeof(float));
  }
  std::fill(numbers.begin() + there, numbers.end(), 0.0F);
}

void CheckpointReader::read_bytes(std::uint64_t offset, void* data, std::size_t bytes) {
  file_.seekg(static_cast<std::streamoff>(offset));
  file_.read(static_cast<char*>(data), static_cast<std::streamsize>(bytes));
  if (!file_) refuse("it cannot be read");
}

void CheckpointReader::refuse(const std::string& reason) const {
  throw UnsupportedInput(fmt::format("{} is no whole checkpoint: {}", path_.string(), reason));
}

}  // namespace hdpsim::kernels::exec
