#include "sim/document/compression.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/document/impl/stream_decoder.h"

namespace hdpsim {
namespace {

/// What zlib knows of a compressed file. One that is not compressed is read as it is.
class GzipDecoder final : public Decompressor {
 public:
  explicit GzipDecoder(const std::string& name) : name_(name), stream_(gzopen(name.c_str(), "rb")) {
    if (stream_ == nullptr) refuse();
  }
  ~GzipDecoder() override {
    if (stream_ != nullptr) static_cast<void>(gzclose_r(stream_));
  }
  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  std::size_t read(std::span<unsigned char> buffer) override {
    const int count = gzread(stream_, buffer.data(), static_cast<unsigned>(buffer.size()));
    int code = Z_OK;  // of a file that ends too early at its end
    const char* text = gzerror(stream_, &code);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_ERRNO) {
      throw InputError(Position{name_, 0, 0}, fmt::format("its compression is damaged: {}", text),
                       "compress or copy it again");
    }
    if (count < 0) refuse();
    return static_cast<std::size_t>(count);
  }
  [[nodiscard]] double stored_bytes() const override { return static_cast<double>(gzoffset(stream_)); }

 private:
  [[noreturn]] void refuse() const {
    throw MachineError(fmt::format("cannot read {}: {}", name_, std::strerror(errno)));
  }

  std::string name_;
  gzFile stream_;
};

std::unique_ptr<Decompressor> make_gzip(std::FILE* /*file*/, const std::string& name) {
  return std::make_unique<GzipDecoder>(name);
}
bool has_gzip() {
  return true;
}

/// A compression and what this build reads it with.
struct Reader {
  Compression compression;
  bool (*is_built)() = nullptr;  ///< Null: no build reads it.
  std::unique_ptr<Decompressor> (*make)(std::FILE*, const std::string&) = nullptr;
};

constexpr std::array readers{Reader{{".gz", "gzip", "gunzip", "zlib1g-dev"}, &has_gzip, &make_gzip},
                             Reader{{".zst", "Zstandard", "zstd -d", "libzstd-dev"}, &has_zstandard, &make_zstandard},
                             Reader{{".bz2", "bzip2", "bunzip2", "libbz2-dev"}, &has_bzip2, &make_bzip2},
                             Reader{{".xz", "xz", "unxz", "liblzma-dev"}, &has_xz, &make_xz},
                             Reader{{".lz4", "LZ4", "lz4 -d", ""}},
                             Reader{{".zip", "ZIP", "unzip", ""}},
                             Reader{{".7z", "7z", "7z x", ""}}};

const Reader* reader_of(std::string_view extension) {
  const auto found = std::find_if(readers.begin(), readers.end(),
                                  [&](const Reader& each) { return each.compression.extension == extension; });
  return found == readers.end() ? nullptr : &*found;
}

}  // namespace

const Compression* compression_of(const std::filesystem::path& path) {
  const Reader* reader = reader_of(path.extension().string());
  return reader == nullptr ? nullptr : &reader->compression;
}

bool is_read(const Compression& compression) {
  const Reader* reader = reader_of(compression.extension);
  return reader != nullptr && reader->is_built != nullptr && reader->is_built();
}

void refuse_unread_compression(const std::filesystem::path& path) {
  const Compression* compression = compression_of(path);
  if (compression == nullptr || is_read(*compression)) return;
  const std::string by_hand = fmt::format("decompress it: {} {}", compression->command, path.filename().string());
  if (compression->package.empty()) {
    throw InputError(Position{path.string(), 0, 0}, fmt::format("{} is not read", compression->name),
                     fmt::format("{}, or compress it with gzip", by_hand));
  }
  throw InputError(
      Position{path.string(), 0, 0}, fmt::format("this build does not read {}", compression->name),
      fmt::format("{}; or install {} and build hdpsim anew (scripts/build does both)", by_hand, compression->package));
}

std::unique_ptr<Decompressor> make_decompressor(const Compression& compression, std::FILE* file,
                                                const std::string& name) {
  HDPSIM_CHECK(is_read(compression), "{} of {} is not read", compression.name, name);
  return reader_of(compression.extension)->make(file, name);
}

}  // namespace hdpsim
