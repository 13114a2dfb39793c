#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/compression.h"

namespace hdpsim {

/// Decompresses by a library that is given stored bytes as they come. A file may be several compressed streams, one
/// behind the other, as parallel compressors write them.
class StreamDecoder : public Decompressor {
 public:
  StreamDecoder(std::FILE* file, std::string name);

  std::size_t read(std::span<unsigned char> buffer) final;
  [[nodiscard]] double stored_bytes() const final { return stored_; }

 protected:
  /// What one call of the library took and made.
  struct Progress {
    std::size_t taken = 0;
    std::size_t made = 0;
    bool at_end = false;  ///< A stream has ended, of which all has been handed out.
  };
  /// `is_last`: nothing follows `stored`.
  virtual Progress decode(std::span<const unsigned char> stored, std::span<unsigned char> buffer, bool is_last) = 0;
  /// Throws the InputError for a damaged file.
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  void fill();

  std::FILE* file_;
  std::string name_;
  std::vector<unsigned char> block_;
  std::span<const unsigned char> rest_;  ///< Of the block.
  double stored_ = 0;
  bool is_last_ = false;  ///< The file has no more blocks.
  bool at_end_ = true;    ///< Between streams.
};

/// Those of libraries that a build may be without; null without them.
[[nodiscard]] std::unique_ptr<Decompressor> make_zstandard(std::FILE* file, const std::string& name);
[[nodiscard]] std::unique_ptr<Decompressor> make_bzip2(std::FILE* file, const std::string& name);
[[nodiscard]] std::unique_ptr<Decompressor> make_xz(std::FILE* file, const std::string& name);

/// Whether a build has the library.
[[nodiscard]] bool has_zstandard();
[[nodiscard]] bool has_bzip2();
[[nodiscard]] bool has_xz();

}  // namespace hdpsim
