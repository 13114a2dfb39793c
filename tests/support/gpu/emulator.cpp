#include "tests/support/gpu/emulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

/// Stacks are kept between blocks and launches, because making them is expensive.
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

/// Threads in the order of their turns, in sets: all threads of a set take turns until none of them can continue, then
/// comes the next set.
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

/// Seed 0: all threads in parallel. Even seeds: the same, shuffled. Odd seeds: warps in a random order, each of which
/// runs ahead of the others until a barrier stops it.
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

void barrier_sync(int id, int threads) {
  wait_at_barrier(block->barriers.at(static_cast<std::size_t>(id)), static_cast<unsigned>(threads), "bar.sync", true);
}
void barrier_arrive(int id, int threads) {
  wait_at_barrier(block->barriers.at(static_cast<std::size_t>(id)), static_cast<unsigned>(threads), "bar.arrive",
                  false);
}

}  // namespace hdpsim::kernels::cuda::ptx
