// Activations that leave a GPU and come back.

#include <cstddef>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/offload.h"
#include "kernels/spec/error.h"
#include "tests/gpu/sizes.h"
#include "tests/support/catch.h"

namespace hdpsim::kernels {
namespace {

using Catch::Matchers::Contains;

// Writes what names the layer, as forward kernels would; the last byte tells that all of it came back.
void forward(Backend& backend, ActivationOffload& offload, int layer, std::size_t bytes) {
  backend.fill_bytes(offload.begin_forward(), layer + 1, bytes);
  offload.end_forward();
}

// Keeps a copy of what came back, then spoils it, as backward kernels may.
void backward(Backend& backend, ActivationOffload& offload, void* kept, std::size_t bytes) {
  void* const memory = offload.begin_backward();
  backend.copy(kept, memory, bytes);
  backend.fill_bytes(memory, 0xEE, bytes);
  offload.end_backward();
}

void pass(Backend& backend, ActivationOffload& offload, int layers, std::size_t bytes) {
  const DeviceMemory kept = backend.allocate(static_cast<std::size_t>(layers) * bytes);
  auto* const begin = static_cast<std::byte*>(kept.get());
  offload.begin(layers, bytes);
  for (int layer = 0; layer < layers; ++layer) forward(backend, offload, layer, bytes);
  for (int layer = layers - 1; layer >= 0; --layer) {
    backward(backend, offload, begin + static_cast<std::size_t>(layer) * bytes, bytes);
  }
  std::vector<std::byte> host(static_cast<std::size_t>(layers) * bytes);
  backend.download(host.data(), begin, host.size());
  for (std::size_t i = 0; i < host.size(); ++i) {
    const std::size_t layer = i / bytes;
    if (host[i] == static_cast<std::byte>(layer + 1)) continue;
    CAPTURE(layers, bytes, layer, i % bytes);
    REQUIRE(host[i] == static_cast<std::byte>(layer + 1));
  }
}

TEST_CASE("activations come back from the host as they left, pass after pass", "[gpu][offload]") {
  const auto backend = make_cuda_backend();
  HostActivations host(*backend, 400 * mebibyte, 4 * mebibyte);
  for (const int prefetch_depth : {0, 1, 2, 3}) {
    ActivationOffload offload(host, 20 * mebibyte, prefetch_depth);
    pass(*backend, offload, 16, 20 * mebibyte);
    pass(*backend, offload, 1, 20 * mebibyte);
    pass(*backend, offload, 7, 13 * mebibyte + 5);
    pass(*backend, offload, 30, 1);
  }
  REQUIRE(host.free_bytes() == 400 * mebibyte);
}

TEST_CASE("passes of two micro-batches share streams and host memory", "[gpu][offload]") {
  const auto backend = make_cuda_backend();
  HostActivations host(*backend, 256 * mebibyte, 4 * mebibyte);
  ActivationOffload first(host, 8 * mebibyte);
  ActivationOffload second(host, 8 * mebibyte);
  constexpr int layers = 10;
  const DeviceMemory kept = backend->allocate(mebibyte * 2 * 8 * layers);
  auto* const begin = static_cast<std::byte*>(kept.get());
  first.begin(layers, 8 * mebibyte);
  second.begin(layers, 8 * mebibyte);
  for (int layer = 0; layer < layers; ++layer) {
    forward(*backend, first, layer, 8 * mebibyte);
    forward(*backend, second, 100 + layer, 8 * mebibyte);
  }
  for (int layer = layers - 1; layer >= 0; --layer) {
    const auto offset = static_cast<std::size_t>(layer) * 8 * mebibyte;
    backward(*backend, first, begin + offset, 8 * mebibyte);
    backward(*backend, second, begin + mebibyte * 8 * layers + offset, 8 * mebibyte);
  }
  std::vector<unsigned char> last_bytes;
  for (int copy = 0; copy < 2 * layers; ++copy) {
    unsigned char last = 0;
    backend->download(&last, begin + static_cast<std::size_t>(copy + 1) * 8 * mebibyte - 1, 1);
    last_bytes.push_back(last);
  }
  std::vector<unsigned char> expected(2 * layers);
  std::iota(expected.begin(), expected.begin() + layers, static_cast<unsigned char>(1));
  std::iota(expected.begin() + layers, expected.end(), static_cast<unsigned char>(101));
  REQUIRE(last_bytes == expected);
}

TEST_CASE("a pass beyond the budget of host memory is refused with both sizes", "[gpu][offload]") {
  const auto backend = make_cuda_backend();
  HostActivations host(*backend, 32 * mebibyte, 4 * mebibyte);
  ActivationOffload offload(host, 8 * mebibyte);
  REQUIRE_THROWS_AS(offload.begin(8, 8 * mebibyte), DeviceError);
  REQUIRE_THROWS_WITH(offload.begin(8, 8 * mebibyte), Contains("need 10 slabs") && Contains("8 of 8 are free"));
  pass(*backend, offload, 7, 8 * mebibyte);
  REQUIRE_THROWS_AS(HostActivations(*backend, mebibyte, 4 * mebibyte), UnsupportedInput);
}

}  // namespace
}  // namespace hdpsim::kernels
