#include "sim/base/random.h"

#include <bit>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/units.h"

namespace hdpsim {
namespace {

std::uint64_t splitmix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view consumer, std::uint64_t index) {
  std::uint64_t mixed = seed;
  mixed = splitmix(mixed) ^ fnv1a(consumer);
  mixed = splitmix(mixed) ^ index;
  for (auto& word : state_) word = splitmix(mixed);
}

std::uint64_t RandomStream::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double RandomStream::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  HDPSIM_CHECK(bound > 0, "an empty range has no random number");
  const std::uint64_t rejected = (0 - bound) % bound;  // 2^64 mod bound: the part that would bias the result
  std::uint64_t word = next();
  while (word < rejected) word = next();
  return word % bound;
}

double RandomStream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  double x = 0;
  double y = 0;
  double square = 0;
  do {
    x = 2 * uniform() - 1;
    y = 2 * uniform() - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  const double scale = std::sqrt(-2 * std::log(square) / square);
  spare_normal_ = y * scale;
  has_spare_ = true;
  return x * scale;
}

}  // namespace hdpsim
