#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hdpsim {

/// A compression of files, told by the ending of their names.
struct Compression {
  std::string_view extension;
  std::string_view name;     ///< For people.
  std::string_view command;  ///< That decompresses a file.
  std::string_view package;  ///< With which hdpsim is built to read it; empty: no build does.
};

/// The compression of a file of this name; null if its ending is none's.
[[nodiscard]] const Compression* compression_of(const std::filesystem::path& path);
/// Whether this build reads it.
[[nodiscard]] bool is_read(const Compression& compression);
/// InputError for a name whose compression this build does not read, with what decompresses it.
void refuse_unread_compression(const std::filesystem::path& path);

/// Decompresses a file from its begin to its end.
class Decompressor {
 public:
  Decompressor() = default;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  virtual ~Decompressor() = default;

  /// Reads up to the size of `buffer` and returns the number of bytes; fewer mean the end of the file. InputError if
  /// the file is damaged or cut short, MachineError if it cannot be read.
  virtual std::size_t read(std::span<unsigned char> buffer) = 0;
  /// The stored bytes that have been read.
  [[nodiscard]] virtual double stored_bytes() const = 0;
};

/// That of the compression, which this build reads (checked), for a file that is open at its begin and stays so.
[[nodiscard]] std::unique_ptr<Decompressor> make_decompressor(const Compression& compression, std::FILE* file,
                                                              const std::string& name);

}  // namespace hdpsim
