#include "sim/document/impl/stream_decoder.h"

#ifdef HDPSIM_HAS_BZ2
#include <bzlib.h>

#include <string>
#include <utility>
#endif

namespace hdpsim {

#ifdef HDPSIM_HAS_BZ2
namespace {

class Bzip2Decoder final : public StreamDecoder {
 public:
  Bzip2Decoder(std::FILE* file, std::string name) : StreamDecoder(file, std::move(name)) { begin(); }
  ~Bzip2Decoder() override { BZ2_bzDecompressEnd(&stream_); }
  Bzip2Decoder(const Bzip2Decoder&) = delete;
  Bzip2Decoder& operator=(const Bzip2Decoder&) = delete;

 private:
  void begin() {
    stream_ = {};
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) throw std::bad_alloc();
  }

  Progress decode(std::span<const unsigned char> stored, std::span<unsigned char> buffer, bool /*is_last*/) override {
    // The library declares what it reads as something that it may write.
    stream_.next_in = const_cast<char*>(reinterpret_cast<const char*>(stored.data()));
    stream_.avail_in = static_cast<unsigned>(stored.size());
    stream_.next_out = reinterpret_cast<char*>(buffer.data());
    stream_.avail_out = static_cast<unsigned>(buffer.size());
    const int code = BZ2_bzDecompress(&stream_);
    const bool at_end = code == BZ_STREAM_END;
    if (code != BZ_OK && !at_end) refuse(code == BZ_DATA_ERROR_MAGIC ? "this is no bzip2" : "wrong data");
    const Progress progress{stored.size() - stream_.avail_in, buffer.size() - stream_.avail_out, at_end};
    if (at_end) {
      BZ2_bzDecompressEnd(&stream_);
      begin();
    }
    return progress;
  }

  bz_stream stream_{};
};

}  // namespace

std::unique_ptr<Decompressor> make_bzip2(std::FILE* file, const std::string& name) {
  return std::make_unique<Bzip2Decoder>(file, name);
}
bool has_bzip2() {
  return true;
}
#else
std::unique_ptr<Decompressor> make_bzip2(std::FILE* /*file*/, const std::string& /*name*/) {
  return nullptr;
}
bool has_bzip2() {
  return false;
}
#endif

}  // namespace hdpsim
