#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "tests/support/gpu/emulator.h"

// What single instructions compute: loads and stores, matrices, numbers, shuffles. What makes threads wait for each
// other is in emulator.cpp.

namespace hdpsim::kernels::cuda::ptx {

using namespace emulator;

Vector16 load16(const void* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0) {
    throw Failure("a load of 16 bytes that is not aligned to 16 bytes");
  }
  Vector16 v = {};
  std::memcpy(&v, from, sizeof v);
  return v;
}

Vector16 load16_constant(const void* from) {
  return load16(from);
}

void store16(void* to, const Vector16& v) {
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0) {
    throw Failure("a store of 16 bytes that is not aligned to 16 bytes");
  }
  std::memcpy(to, &v, sizeof v);
}

Vector16 load16_shared(std::uint32_t address) {
  Vector16 v = {};
  std::memcpy(&v, shared_memory(address, sizeof v, 16), sizeof v);
  return v;
}

float load_float_shared(std::uint32_t address) {
  float value = 0;
  std::memcpy(&value, shared_memory(address, sizeof value, 4), sizeof value);
  return value;
}

void store16_shared(std::uint32_t address, const Vector16& v) {
  std::memcpy(shared_memory(address, sizeof v, 16), &v, sizeof v);
}

void store4_shared(std::uint32_t address, std::uint32_t word) {
  std::memcpy(shared_memory(address, sizeof word, 4), &word, sizeof word);
}

void add(float* to, float value) {
  *to += value;
}

void add2(float* to, float first, float second) {
  if (reinterpret_cast<std::uintptr_t>(to) % 8 != 0) {
    throw Failure("an addition of two floats that are not aligned to 8 bytes");
  }
  to[0] += first;
  to[1] += second;
}

int fetch_add(int* to, int value) {
  const int before = *to;
  *to += value;
  return before;
}

// --- Matrices

namespace {

struct LoadMatrix {
  std::uint32_t address;
  std::uint32_t* result;
};

using Matrix = std::array<std::array<std::uint16_t, 8>, 8>;

/// Rows are fetched eight at a time; two whose 16 bytes lie in the same banks take another pass.
void count_conflicts(std::span<void* const> lanes, unsigned first) {
  std::array<int, 8> rows_in_bank_group = {};
  for (unsigned row = 0; row < 8; ++row) {
    const auto address = static_cast<const LoadMatrix*>(lanes[first + row])->address;
    ++rows_in_bank_group.at(address / 16 % 8);
  }
  statistics().ldmatrix_conflicts += *std::max_element(rows_in_bank_group.begin(), rows_in_bank_group.end()) - 1;
}

void perform_load(std::span<void* const> lanes, bool transposed) {
  statistics().ldmatrix += 1;
  for (unsigned j = 0; j < 4; ++j) {
    Matrix matrix = {};
    for (unsigned row = 0; row < 8; ++row) {
      const auto address = static_cast<const LoadMatrix*>(lanes[8 * j + row])->address;
      std::memcpy(matrix.at(row).data(), shared_memory(address, 16, 16), 16);
    }
    count_conflicts(lanes, 8 * j);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned g = lane / 4;
      const unsigned t = 2 * (lane % 4);
      const std::uint32_t low = transposed ? matrix.at(t).at(g) : matrix.at(g).at(t);
      const std::uint32_t high = transposed ? matrix.at(t + 1).at(g) : matrix.at(g).at(t + 1);
      static_cast<const LoadMatrix*>(lanes[lane])->result[j] = low | (high << 16U);
    }
  }
}

struct Mma {
  float* d;
  const std::uint32_t* a;
  std::uint32_t b0;
  std::uint32_t b1;
};

struct MmaOperands {
  std::array<std::array<float, 16>, 16> a;
  std::array<std::array<float, 8>, 16> b;
};

MmaOperands gather(std::span<void* const> lanes) {
  MmaOperands m = {};
  for (unsigned lane = 0; lane < 32; ++lane) {
    const Mma& mine = *static_cast<const Mma*>(lanes[lane]);
    const unsigned g = lane / 4;
    const unsigned t = 2 * (lane % 4);
    for (unsigned i = 0; i < 4; ++i) {
      m.a.at(g + 8 * (i % 2)).at(t + 8 * (i / 2)) = low_bf16(mine.a[i]);
      m.a.at(g + 8 * (i % 2)).at(t + 1 + 8 * (i / 2)) = high_bf16(mine.a[i]);
    }
    m.b.at(t).at(g) = low_bf16(mine.b0);
    m.b.at(t + 1).at(g) = high_bf16(mine.b0);
    m.b.at(t + 8).at(g) = low_bf16(mine.b1);
    m.b.at(t + 9).at(g) = high_bf16(mine.b1);
  }
  return m;
}

void perform_mma(std::span<void* const> lanes) {
  statistics().mma += 1;
  const MmaOperands m = gather(lanes);
  for (unsigned lane = 0; lane < 32; ++lane) {
    float* d = static_cast<const Mma*>(lanes[lane])->d;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + 8 * (i / 2);
      const unsigned column = 2 * (lane % 4) + i % 2;
      float sum = d[i];
      for (unsigned k = 0; k < 16; ++k) {
        sum += m.a[row][k] * m.b[k][column];
      }
      d[i] = sum;
    }
  }
}

}  // namespace

void ldmatrix_x4(std::uint32_t (&r)[4], std::uint32_t address) {
  LoadMatrix mine = {address, r};
  together(warp(), "ldmatrix", mine, [](std::span<void* const> lanes) { perform_load(lanes, false); });
}

void ldmatrix_x4_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  LoadMatrix mine = {address, r};
  together(warp(), "ldmatrix.trans", mine, [](std::span<void* const> lanes) { perform_load(lanes, true); });
}

void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  Mma mine = {d, a, b0, b1};
  together(warp(), "mma", mine, perform_mma);
}

// --- Numbers

std::uint32_t pack_bf16(float low, float high) {
  return to_bf16(low).bits | (static_cast<std::uint32_t>(to_bf16(high).bits) << 16U);
}
float low_bf16(std::uint32_t word) {
  return to_float(bf16{static_cast<std::uint16_t>(word & 0xFFFFU)});
}
float high_bf16(std::uint32_t word) {
  return to_float(bf16{static_cast<std::uint16_t>(word >> 16U)});
}
float exp2(float x) {
  return std::exp2(x);
}
float log2(float x) {
  return std::log2(x);
}
float reciprocal_sqrt(float x) {
  return 1.0F / std::sqrt(x);
}
float sqrt(float x) {
  return std::sqrt(x);
}
void sin_cos(float x, float& sine, float& cosine) {
  sine = std::sin(x);
  cosine = std::cos(x);
}

// --- Lanes and threads

namespace {

template <class T>
struct Shuffle {
  T value;
  unsigned source;
  T result;
};

template <class T>
T exchange(const char* instruction, T value, unsigned source) {
  Shuffle<T> mine = {value, source, value};
  together(warp(), instruction, mine, [](std::span<void* const> lanes) {
    for (void* lane : lanes) {
      auto& to = *static_cast<Shuffle<T>*>(lane);
      to.result = static_cast<const Shuffle<T>*>(lanes[to.source % 32])->value;
    }
  });
  return mine.result;
}

}  // namespace

float shuffle_xor(float value, int mask) {
  return exchange("shuffle_xor", value, index_in(warp()) ^ static_cast<unsigned>(mask));
}
std::uint32_t shuffle_xor(std::uint32_t value, int mask) {
  return exchange("shuffle_xor", value, index_in(warp()) ^ static_cast<unsigned>(mask));
}
float shuffle(float value, int lane) {
  return exchange("shuffle", value, static_cast<unsigned>(lane));
}
int shuffle(int value, int lane) {
  return exchange("shuffle", value, static_cast<unsigned>(lane));
}

bool any(bool condition) {
  struct Vote {
    bool mine;
    bool result;
  } vote = {condition, false};
  together(warp(), "any", vote, [](std::span<void* const> lanes) {
    const bool result =
        std::any_of(lanes.begin(), lanes.end(), [](void* lane) { return static_cast<const Vote*>(lane)->mine; });
    for (void* lane : lanes) {
      static_cast<Vote*>(lane)->result = result;
    }
  });
  return vote.result;
}

}  // namespace hdpsim::kernels::cuda::ptx
