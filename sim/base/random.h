#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hdpsim {

/// A stream of random numbers that belongs to one consumer. Its name and index are part of the seed, so that a new
/// consumer never changes the numbers of another one, and step k can be drawn without the steps before it. xoshiro256**
/// (Blackman and Vigna, 2018) seeded through splitmix64. The distributions are our own because those of the standard
/// library differ between platforms.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view consumer, std::uint64_t index = 0);

  [[nodiscard]] std::uint64_t next();
  /// Uniform in [0, 1) with 53 random bits.
  [[nodiscard]] double uniform();
  /// Uniform in [0, bound), unbiased. Requires bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);
  /// Standard normal, by the polar method of Marsaglia.
  [[nodiscard]] double normal();

 private:
  std::array<std::uint64_t, 4> state_{};
  double spare_normal_ = 0;
  bool has_spare_ = false;
};

}  // namespace hdpsim
