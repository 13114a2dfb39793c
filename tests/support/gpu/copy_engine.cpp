#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>

#include "tests/support/gpu/hopper.h"
#include "tests/support/gpu/hopper_units.h"

namespace hdpsim::emulator {
namespace {

namespace ptx = kernels::cuda::ptx;
using kernels::cuda::hopper::TensorShape;

struct Box {
  TensorShape shape;
  int column;
  int row;
  std::uint32_t shared;

  [[nodiscard]] std::uint32_t bytes() const { return static_cast<std::uint32_t>(shape.box_rows) * 128U; }
  /// Chunk c of row r in global memory; null outside of the tensor.
  [[nodiscard]] unsigned char* chunk(int r, int c) const {
    const int at = column + c * static_cast<int>(chunk_bytes) / shape.element_bytes;
    if (row + r < 0 || row + r >= shape.rows || at < 0 || at >= shape.columns) {
      return nullptr;
    }
    const std::int64_t element = (row + r) * shape.row_stride + at;
    return static_cast<unsigned char*>(const_cast<void*>(shape.data)) + element * shape.element_bytes;
  }
};

struct Mbarrier {
  std::uint32_t arrivals = 0;
  std::uint32_t missing = 0;
  std::int64_t bytes_missing = 0;
  std::uint32_t parity = 0;  ///< Parity of the current phase.
  std::vector<Box> loads;
};

struct DeferredStore {
  std::uint32_t address;
  std::vector<unsigned char> bytes;
};

struct State {
  bool is_eager = false;
  std::map<std::uint32_t, Mbarrier> barriers;
  std::map<unsigned, std::vector<Box>> additions;           // by thread
  std::map<unsigned, std::vector<DeferredStore>> deferred;  // by thread
};
State state;

Mbarrier& barrier_at(std::uint32_t address) {
  (void)shared_memory(address, 8, 8);
  const auto found = state.barriers.find(address);
  if (found == state.barriers.end()) throw Failure(fmt::format("no barrier was made at shared address {}", address));
  return found->second;
}

void end_phase_if_complete(Mbarrier& barrier) {
  if (barrier.missing == 0 && barrier.bytes_missing == 0) {
    barrier.missing = barrier.arrivals;
    barrier.parity ^= 1U;
  }
}

void land(const Box& box) {
  for (int r = 0; r < box.shape.box_rows; ++r) {
    for (int c = 0; c < 8; ++c) {
      unsigned char* to = swizzled_chunk(box.shared + static_cast<std::uint32_t>(128 * r + 16 * c));
      if (const unsigned char* from = box.chunk(r, c)) {
        std::memcpy(to, from, chunk_bytes);
      } else {
        std::memset(to, 0, chunk_bytes);
      }
    }
  }
}

/// Called during a wait: missing parts of the phase may arrive now.
bool is_over(Mbarrier& barrier, std::uint32_t parity) {
  if (barrier.parity == parity && barrier.missing == 0) {
    for (const Box& box : barrier.loads) {
      land(box);
      barrier.bytes_missing -= box.bytes();
    }
    barrier.loads.clear();
    end_phase_if_complete(barrier);
  }
  return barrier.parity != parity;
}

Box box_of(const ptx::TensorMap& map, int column, int row, std::uint32_t shared) {
  Box box = {{}, column, row, shared};
  std::memcpy(static_cast<void*>(&box.shape), &map, sizeof box.shape);
  (void)shared_memory(shared, box.bytes(), 128);
  return box;
}

void add_now(const Box& box) {
  for (int r = 0; r < box.shape.box_rows; ++r) {
    for (int c = 0; c < 8; ++c) {
      auto* to = reinterpret_cast<float*>(box.chunk(r, c));
      std::array<float, 4> values = {};
      std::memcpy(values.data(), swizzled_chunk(box.shared + static_cast<std::uint32_t>(128 * r + 16 * c)),
                  chunk_bytes);
      for (std::size_t e = 0; to != nullptr && e < values.size(); ++e) to[e] += values.at(e);
    }
  }
}

void defer(std::uint32_t address, const void* data, std::size_t bytes) {
  (void)shared_memory(address, bytes, bytes);
  const auto* from = static_cast<const unsigned char*>(data);
  state.deferred[threadIdx.x].push_back({address, {from, from + bytes}});
}

}  // namespace

void copy_engine::begin_block(bool eager) {
  state = {};
  state.is_eager = eager;
}

void copy_engine::end_thread() {
  if (!state.additions[threadIdx.x].empty()) throw Failure("the thread ended while the copy engine read shared memory");
  if (!state.deferred[threadIdx.x].empty()) throw Failure("the thread ended without fence_async() after its stores");
}

void copy_engine::end_block() {
  for (const auto& [address, barrier] : state.barriers) {
    if (barrier.loads.empty()) continue;
    throw Failure(fmt::format("the block ended with loads under way to barrier {}", address));
  }
}

ptx::TensorMap tensor_map(const TensorShape& shape) {
  if (reinterpret_cast<std::uintptr_t>(shape.data) % 16 != 0 || shape.row_stride * shape.element_bytes % 16 != 0) {
    throw Failure("a tensor map of something that is not aligned to 16 bytes");
  }
  static_assert(sizeof shape <= sizeof(ptx::TensorMap));
  ptx::TensorMap map = {};
  std::memcpy(&map, &shape, sizeof shape);
  return map;
}

}  // namespace hdpsim::emulator

namespace hdpsim::kernels::cuda::ptx {

using namespace hdpsim::emulator;

void mbarrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  (void)shared_memory(barrier, 8, 8);
  state.barriers[barrier] = {.arrivals = arrivals, .missing = arrivals, .bytes_missing = 0, .parity = 0, .loads = {}};
}

void mbarrier_arrive(std::uint32_t barrier) {
  mbarrier_arrive_expecting(barrier, 0);
}

void mbarrier_arrive_expecting(std::uint32_t barrier, std::uint32_t bytes) {
  Mbarrier& at = barrier_at(barrier);
  if (at.missing == 0) throw Failure(fmt::format("one arrival too many at the barrier at {}", barrier));
  --at.missing;
  at.bytes_missing += bytes;
  end_phase_if_complete(at);
}

void mbarrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  Mbarrier& at = barrier_at(barrier);
  yield_until("mbarrier", [&at, parity] { return is_over(at, parity); });
  linger();
}

void fence_async() {
  for (const DeferredStore& store : state.deferred[threadIdx.x]) {
    std::memcpy(shared_memory(store.address, store.bytes.size(), 1), store.bytes.data(), store.bytes.size());
  }
  state.deferred[threadIdx.x].clear();
}

void store16_for_async(std::uint32_t address, const Vector16& v) {
  defer(address, &v, sizeof v);
}

void store8_for_async(std::uint32_t address, float first, float second) {
  const std::array<float, 2> values = {first, second};
  defer(address, values.data(), sizeof values);
}

void store_matrix_for_async(std::uint32_t address, const std::uint32_t (&r)[4]) {
  struct Lane {
    std::uint32_t address;
    std::array<std::uint32_t, 4> target;
  } mine = {address, {}};
  together(warp(), "stmatrix", mine, [](std::span<void* const> lanes) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned j = 0; j < 4; ++j) {
        const std::uint32_t row = static_cast<const Lane*>(lanes[8 * j + lane / 4])->address;
        (void)shared_memory(row, 16, 16);
        static_cast<Lane*>(lanes[lane])->target.at(j) = row + lane % 4 * 4;
      }
    }
  });
  for (unsigned j = 0; j < 4; ++j) defer(mine.target.at(j), &r[j], sizeof r[j]);
}

void load_box(std::uint32_t to, const TensorMap& map, int column, int row, std::uint32_t barrier) {
  Mbarrier& at = barrier_at(barrier);
  const Box box = box_of(map, column, row, to);
  std::memset(shared_memory(to, box.bytes(), 128), 0xFF, box.bytes());
  at.loads.push_back(box);
  if (state.is_eager) land(box);
}

void add_box(const TensorMap& map, int column, int row, std::uint32_t from) {
  state.additions[threadIdx.x].push_back(box_of(map, column, row, from));
}

void commit_boxes() {
  if (state.is_eager) wait_for_boxes_read();
}

void wait_for_boxes_read() {
  for (const Box& box : state.additions[threadIdx.x]) add_now(box);
  state.additions[threadIdx.x].clear();
}

void wait_for_boxes() {
  wait_for_boxes_read();
}

}  // namespace hdpsim::kernels::cuda::ptx
