#include "tests/support/gpu/emulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <numeric>
#include <random>

#include "tests/support/gpu/fibers.h"

hdpsim::emulator::Index3 threadIdx;
hdpsim::emulator::Index3 blockIdx;
hdpsim::emulator::Index3 blockDim;
hdpsim::emulator::Index3 gridDim;

namespace hdpsim::emulator {

struct Group {
  unsigned first = 0;
  std::vector<void*> operand;
  unsigned arrived = 0;
  const char* instruction = nullptr;
  std::uint64_t generation = 0;
};

namespace {

constexpr unsigned char poison = 0xFF;  // as fp32, bf16 or a pair of them: NaN
constexpr std::size_t stack_bytes = std::size_t{128} * 1024;

struct AsyncCopy {
  unsigned char* to;
  const unsigned char* from;  // null: zeros
  std::size_t bytes;
};

struct Barrier {
  unsigned expected = 0;
  unsigned arrived = 0;
  std::uint64_t generation = 0;
};

struct Thread {
  Index3 index;
  bool ended = false;
  const char* waits_for = nullptr;  // null: can run
  bool (*ready)(const void*) = nullptr;
  const void* argument = nullptr;
  std::deque<std::vector<AsyncCopy>> groups;  // committed, oldest first
  std::vector<AsyncCopy> open_group;
  std::exception_ptr failure;
};

struct Block {
  std::vector<unsigned char> shared_storage;
  unsigned char* shared = nullptr;
  std::size_t shared_bytes = 0;
  std::vector<Thread> threads;
  std::vector<Group> warps;
  std::vector<Group> warpgroups;
  std::array<Barrier, 16> barriers;
  const std::function<void()>* kernel = nullptr;
  Statistics statistics;
};

Block* block = nullptr;
Thread* running = nullptr;

/// Stacks are kept between blocks and launches: making them is what costs.
std::vector<Fiber>& fibers() {
  static std::vector<Fiber> kept;
  return kept;
}

void run_thread(void* argument) {
  auto& thread = *static_cast<Thread*>(argument);
  try {
    (*block->kernel)();
    if (!thread.open_group.empty() || !thread.groups.empty()) {
      throw Failure("the thread ended with cp.async copies under way");
    }
  } catch (...) {
    thread.failure = std::current_exception();
  }
  thread.ended = true;
}

std::vector<Group> make_groups(unsigned threads, unsigned size) {
  std::vector<Group> groups(threads / size);
  for (unsigned i = 0; i < groups.size(); ++i) {
    groups[i].first = i * size;
    groups[i].operand.resize(size);
  }
  return groups;
}

std::string state_of_threads() {
  std::map<std::pair<unsigned, std::string>, std::vector<unsigned>> waiting;
  for (const Thread& thread : block->threads) {
    waiting[{thread.index.x / 32, thread.ended ? "ended" : thread.waits_for}].push_back(thread.index.x % 32);
  }
  std::string text;
  for (const auto& [where, lanes] : waiting) {
    text +=
        fmt::format("\n  warp {}, {} lanes from lane {}: {}", where.first, lanes.size(), lanes.front(), where.second);
  }
  return text;
}

[[noreturn]] void rethrow(const Thread& thread, Index3 at) {
  try {
    std::rethrow_exception(thread.failure);
  } catch (const std::exception& e) {
    throw Failure(fmt::format("block ({}, {}, {}), thread {}: {}", at.x, at.y, at.z, thread.index.x, e.what()));
  }
}

/// One turn of a thread that can run; false if it has to wait.
bool give_turn(Thread& thread) {
  if (thread.waits_for != nullptr && !thread.ready(thread.argument)) {
    return false;
  }
  thread.waits_for = nullptr;
  running = &thread;
  threadIdx = thread.index;
  fibers()[thread.index.x].resume();
  return true;
}

/// Threads in the order of their turns, in sets: all of a set take turns until none of them can go on, then comes the next
/// set.
using Turns = std::vector<std::vector<unsigned>>;

/// Gives each thread of the set a turn; false if none could take it.
bool give_turns(const std::vector<unsigned>& set, unsigned& alive) {
  bool moved = false;
  for (const unsigned i : set) {
    Thread& thread = block->threads[i];
    if (thread.ended || !give_turn(thread)) {
      continue;
    }
    moved = true;
    if (thread.failure) {
      rethrow(thread, blockIdx);
    }
    alive -= thread.ended ? 1U : 0U;
  }
  return moved;
}

void run_block(const Turns& turns) {
  unsigned alive = static_cast<unsigned>(block->threads.size());
  while (alive > 0) {
    bool moved = false;
    for (const std::vector<unsigned>& set : turns) {
      while (give_turns(set, alive)) {
        moved = true;
      }
    }
    if (alive > 0 && !moved) {
      throw Failure(
          fmt::format("block ({}, {}, {}) cannot go on:{}", blockIdx.x, blockIdx.y, blockIdx.z, state_of_threads()));
    }
  }
}

/// Seed 0: all threads side by side. Even seeds: the same, shuffled. Odd seeds: warps in a random order, each of which runs
/// ahead of the others until a barrier stops it.
Turns make_turns(unsigned threads, std::uint64_t seed) {
  std::vector<unsigned> order(threads);
  std::iota(order.begin(), order.end(), 0U);
  if (seed == 0) {
    return {order};
  }
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  if (seed % 2 == 0) {
    return {order};
  }
  Turns warps((threads + 31) / 32);
  for (const unsigned thread : order) {
    warps[thread / 32].push_back(thread);
  }
  std::shuffle(warps.begin(), warps.end(), random);
  return warps;
}

void prepare_block(Block& next, unsigned threads, std::size_t shared_bytes) {
  constexpr std::size_t alignment = 1024;
  next.shared_storage.assign(shared_bytes + alignment, poison);
  const auto address = reinterpret_cast<std::uintptr_t>(next.shared_storage.data());
  next.shared = next.shared_storage.data() + (alignment - address % alignment) % alignment;
  next.shared_bytes = shared_bytes;
  next.threads = std::vector<Thread>(threads);
  next.warps = make_groups(threads, 32);
  next.warpgroups = make_groups(threads, 128);
  next.barriers = {};
  for (unsigned i = 0; i < threads; ++i) {
    next.threads[i].index = {i, 0, 0};
    fibers()[i].start(run_thread, &next.threads[i]);
  }
}

}  // namespace

Statistics launch(Index3 grid, unsigned threads, std::size_t shared_bytes, const std::function<void()>& kernel,
                  std::uint64_t seed) {
  while (fibers().size() < threads) {
    fibers().emplace_back(stack_bytes);
  }
  const Turns turns = make_turns(threads, seed);
  Block now;
  now.kernel = &kernel;
  block = &now;
  gridDim = grid;
  blockDim = {threads, 1, 1};
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        prepare_block(now, threads, shared_bytes);
        run_block(turns);
      }
    }
  }
  return now.statistics;
}

void wait(const char* what, bool (*ready)(const void*), const void* argument) {
  running->waits_for = what;
  running->ready = ready;
  running->argument = argument;
  Fiber::suspend();
}

Group& warp() {
  return block->warps.at(running->index.x / 32);
}

Group& warpgroup() {
  return block->warpgroups.at(running->index.x / 128);
}

unsigned index_in(const Group& group) {
  return running->index.x - group.first;
}

bool arrive(Group& group, const char* instruction, void* operand) {
  if (group.arrived > 0 && std::strcmp(group.instruction, instruction) != 0) {
    throw Failure(fmt::format("{} where other lanes of the group are at {}", instruction, group.instruction));
  }
  group.instruction = instruction;
  group.operand[index_in(group)] = operand;
  if (++group.arrived == group.operand.size()) {
    return true;
  }
  const std::uint64_t generation = group.generation;
  yield_until(instruction, [&group, generation] { return group.generation != generation; });
  return false;
}

std::span<void* const> operands(const Group& group) {
  return group.operand;
}

void leave(Group& group) {
  group.arrived = 0;
  ++group.generation;
}

unsigned char* shared_memory(std::uint32_t address, std::size_t bytes, std::size_t alignment) {
  if (address % alignment != 0) {
    throw Failure(fmt::format("shared address {} is not aligned to {} bytes", address, alignment));
  }
  if (address + bytes > block->shared_bytes) {
    throw Failure(
        fmt::format("shared address {} + {} bytes, where the launch has {}", address, bytes, block->shared_bytes));
  }
  return block->shared + address;
}

Statistics& statistics() {
  return block->statistics;
}

}  // namespace hdpsim::emulator

namespace {

using namespace hdpsim::emulator;

void wait_at_barrier(Barrier& barrier, unsigned threads, const char* what, bool stay) {
  if (barrier.arrived > 0 && barrier.expected != threads) {
    throw Failure(fmt::format("{} of {} threads, where others wait for {}", what, threads, barrier.expected));
  }
  barrier.expected = threads;
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    ++barrier.generation;
  } else if (stay) {
    const std::uint64_t generation = barrier.generation;
    yield_until(what, [&barrier, generation] { return barrier.generation != generation; });
  }
}

}  // namespace

void __syncthreads() {
  wait_at_barrier(block->barriers[0], blockDim.x, "__syncthreads", true);
}

void __syncwarp() {
  int nothing = 0;
  together(warp(), "__syncwarp", nothing, [](auto) {});
}

namespace hdpsim::kernels::cuda::ptx {

// --- Memory

unsigned char* dynamic_shared() {
  return block->shared;
}

std::uint32_t shared_address(const void* pointer) {
  const auto* byte = static_cast<const unsigned char*>(pointer);
  if (byte < block->shared || byte > block->shared + block->shared_bytes) {
    throw Failure("the address of something that is not in shared memory");
  }
  return static_cast<std::uint32_t>(byte - block->shared);
}

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

static void start_copy(std::uint32_t to, const void* from, bool valid, std::size_t bytes) {
  if (valid && reinterpret_cast<std::uintptr_t>(from) % bytes != 0) {
    throw Failure(fmt::format("cp.async from an address that is not aligned to {} bytes", bytes));
  }
  unsigned char* target = shared_memory(to, bytes, bytes);
  std::memset(target, poison, bytes);
  running->open_group.push_back({target, valid ? static_cast<const unsigned char*>(from) : nullptr, bytes});
}

void cp_async_16(std::uint32_t to, const void* from, bool valid) {
  start_copy(to, from, valid, 16);
}

void cp_async_4(std::uint32_t to, const void* from, bool valid) {
  start_copy(to, from, valid, 4);
}

void cp_async_commit() {
  running->groups.push_back(std::move(running->open_group));
  running->open_group.clear();
}

void cp_async_wait_for(int pending) {
  while (running->groups.size() > static_cast<std::size_t>(pending)) {
    for (const AsyncCopy& copy : running->groups.front()) {
      if (copy.from == nullptr) {
        std::memset(copy.to, 0, copy.bytes);
      } else {
        std::memcpy(copy.to, copy.from, copy.bytes);
      }
    }
    running->groups.pop_front();
  }
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

void barrier_sync(int id, int threads) {
  wait_at_barrier(block->barriers.at(static_cast<std::size_t>(id)), static_cast<unsigned>(threads), "bar.sync", true);
}
void barrier_arrive(int id, int threads) {
  wait_at_barrier(block->barriers.at(static_cast<std::size_t>(id)), static_cast<unsigned>(threads), "bar.arrive",
                  false);
}

}  // namespace hdpsim::kernels::cuda::ptx
