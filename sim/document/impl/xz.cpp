#include "sim/document/impl/stream_decoder.h"

#ifdef HDPSIM_HAS_LZMA
#include <lzma.h>

#include <cstdint>
#include <string>
#include <utility>
#endif

namespace hdpsim {

#ifdef HDPSIM_HAS_LZMA
namespace {

class XzDecoder final : public StreamDecoder {
 public:
  XzDecoder(std::FILE* file, std::string name) : StreamDecoder(file, std::move(name)) {
    constexpr std::uint64_t any_memory = UINT64_MAX;
    if (lzma_stream_decoder(&stream_, any_memory, LZMA_CONCATENATED) != LZMA_OK) throw std::bad_alloc();
  }
  ~XzDecoder() override { lzma_end(&stream_); }
  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;

 private:
  Progress decode(std::span<const unsigned char> stored, std::span<unsigned char> buffer, bool is_last) override {
    stream_.next_in = stored.data();
    stream_.avail_in = stored.size();
    stream_.next_out = buffer.data();
    stream_.avail_out = buffer.size();
    const lzma_ret code = lzma_code(&stream_, is_last ? LZMA_FINISH : LZMA_RUN);
    const bool at_end = code == LZMA_STREAM_END;
    if (code == LZMA_FORMAT_ERROR) refuse("this is no xz");
    if (code != LZMA_OK && code != LZMA_BUF_ERROR && !at_end) refuse("wrong data");
    return {stored.size() - stream_.avail_in, buffer.size() - stream_.avail_out, at_end};
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
};

}  // namespace

std::unique_ptr<Decompressor> make_xz(std::FILE* file, const std::string& name) {
  return std::make_unique<XzDecoder>(file, name);
}
bool has_xz() {
  return true;
}
#else
std::unique_ptr<Decompressor> make_xz(std::FILE* /*file*/, const std::string& /*name*/) {
  return nullptr;
}
bool has_xz() {
  return false;
}
#endif

}  // namespace hdpsim
