#include "sim/document/impl/stream_decoder.h"

#ifdef HDPSIM_HAS_ZSTD
#include <zstd.h>

#include <string>
#include <utility>
#endif

namespace hdpsim {

#ifdef HDPSIM_HAS_ZSTD
namespace {

class ZstandardDecoder final : public StreamDecoder {
 public:
  ZstandardDecoder(std::FILE* file, std::string name)
      : StreamDecoder(file, std::move(name)), stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {
    // Of `zstd --long=31`, the farthest reach that the format has.
    static_cast<void>(ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, 31));
  }

 private:
  Progress decode(std::span<const unsigned char> stored, std::span<unsigned char> buffer, bool /*is_last*/) override {
    ZSTD_inBuffer in{stored.data(), stored.size(), 0};
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    const std::size_t left = ZSTD_decompressStream(stream_.get(), &out, &in);
    if (ZSTD_isError(left) != 0) refuse(ZSTD_getErrorName(left));
    return {in.pos, out.pos, left == 0};
  }

  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream_;
};

}  // namespace

std::unique_ptr<Decompressor> make_zstandard(std::FILE* file, const std::string& name) {
  return std::make_unique<ZstandardDecoder>(file, name);
}
bool has_zstandard() {
  return true;
}
#else
std::unique_ptr<Decompressor> make_zstandard(std::FILE* /*file*/, const std::string& /*name*/) {
  return nullptr;
}
bool has_zstandard() {
  return false;
}
#endif

}  // namespace hdpsim
