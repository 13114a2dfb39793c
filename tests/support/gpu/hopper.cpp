#include "tests/support/gpu/hopper.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>

namespace hdpsim::emulator {
namespace {

namespace ptx = kernels::cuda::ptx;
using kernels::cuda::hopper::TensorShape;
using ptx::Depth;

constexpr std::size_t chunk_bytes = 16;

/// The bits of an address that say which row of eight also move the chunk within its row.
std::uint32_t swizzled(std::uint32_t address) {
  return address ^ ((address >> 3U) & 0x70U);
}

unsigned char* swizzled_chunk(std::uint32_t address) {
  return shared_memory(swizzled(address), chunk_bytes, chunk_bytes);
}

// --- State of a block

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
  std::uint32_t parity = 0;  ///< Of the phase that goes on.
  std::vector<Box> loads;
};

struct Product {
  WgmmaLane shared;  ///< What is the same in all lanes.
  std::array<float*, 32> d;
  std::array<const std::uint32_t*, 32> a;
  std::array<std::array<std::uint32_t, 4>, 32> a_at_issue;
  std::vector<float> d_at_issue;  ///< Empty if an earlier product writes them, too.
};

struct Warp {
  std::uint64_t lingered = 0;  ///< Times that some lane might have.
  std::vector<Product> open;
  std::vector<std::vector<Product>> groups;
  bool fenced = false;
  std::size_t issued = 0;
};

struct DeferredStore {
  std::uint32_t address;
  std::vector<unsigned char> bytes;
};

struct HopperBlock {
  std::map<std::uint32_t, Mbarrier> barriers;
  std::map<unsigned, Warp> warps;
  std::map<unsigned, std::vector<WgmmaLane>> products_of_warpgroup;
  std::map<unsigned, std::vector<Box>> additions;           // by thread
  std::map<unsigned, std::vector<DeferredStore>> deferred;  // by thread
  std::uint64_t seed = 0;
  unsigned left = 0;
};
HopperBlock state;

void leave_kernel() {
  const unsigned thread = threadIdx.x;
  if (!state.additions[thread].empty()) throw Failure("the thread ended while the copy engine read shared memory");
  if (!state.deferred[thread].empty()) throw Failure("the thread ended without fence_async() after its stores");
  const Warp& warp = state.warps[thread / 32];
  if (!warp.open.empty() || !warp.groups.empty()) throw Failure("the thread ended with products under way");
  if (++state.left < blockDim.x) return;
  for (const auto& [address, barrier] : state.barriers) {
    if (!barrier.loads.empty())
      throw Failure(fmt::format("the block ended with loads under way to barrier {}", address));
  }
}

bool engine_is_eager() {
  return state.seed % 2 == 1;
}

/// Now and then, lets the other threads have many turns. Whether is the same for all lanes, unless they have diverged.
void linger() {
  if (state.seed == 0) return;
  const std::uint64_t warp = threadIdx.x / 32;
  const std::uint64_t times = state.warps[threadIdx.x / 32].lingered++ / 32;
  const std::uint64_t mixed = (state.seed * 0x9E3779B97F4A7C15U ^ (warp << 32U) ^ times) * 0xD6E8FEB86659FD93U;
  if ((mixed >> 40U) % 16 != 0) return;
  constexpr int turns = 100;
  for (int i = 0; i < turns; ++i)
    wait(
        "nothing", [](const void*) { return true; }, nullptr);
}

// --- Barriers and the copy engine

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

/// Somebody waits: what the phase still lacks may land now.
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

// --- Products

Warp& this_warp() {
  return state.warps[threadIdx.x / 32];
}

struct Descriptor {
  std::uint32_t start, leading, stride;
};

Descriptor decode(std::uint64_t bits) {
  if (bits >> 62U != 1) throw Failure("a matrix descriptor whose swizzle is not 128 bytes");
  if (((bits >> 49U) & 7U) != 0) throw Failure("a matrix descriptor with a base offset");
  const auto field = [bits](unsigned first) { return static_cast<std::uint32_t>((bits >> first) & 0x3FFFU) << 4U; };
  return {field(0), field(16), field(32)};
}

/// Rows [first, first + count) of an operand as float [count, 16], where a row is what is not summed over.
std::vector<float> fetch(std::uint64_t descriptor, Depth depth, unsigned first, unsigned count) {
  const Descriptor at = decode(descriptor);
  std::vector<float> values(std::size_t{count} * 16);
  const auto read = [](std::uint32_t address) {
    std::array<kernels::cuda::bf16, 8> chunk;
    std::memcpy(chunk.data(), swizzled_chunk(address), chunk_bytes);
    return chunk;
  };
  if (depth == Depth::along_rows) {
    for (unsigned row = 0; row < count; ++row) {
      const std::uint32_t address = at.start + (first + row) / 8 * at.stride + (first + row) % 8 * 128;
      for (unsigned half = 0; half < 2; ++half) {
        const auto chunk = read(address + 16 * half);
        for (unsigned e = 0; e < 8; ++e) values[row * 16 + 8 * half + e] = to_float(chunk.at(e));
      }
    }
    return values;
  }
  for (unsigned k = 0; k < 16; ++k) {
    for (unsigned row = 0; row < count; row += 8) {
      const unsigned mn = first + row;
      const auto chunk = read(at.start + mn / 64 * at.leading + mn % 64 * 2 + k / 8 * at.stride + k % 8 * 128);
      for (unsigned e = 0; e < 8; ++e) values[(row + e) * 16 + k] = to_float(chunk.at(e));
    }
  }
  return values;
}

/// The 16 rows of a that a warp multiplies: [16, 16].
std::vector<float> left_operand(const Product& product, unsigned warp) {
  if (product.shared.a_registers == nullptr) {
    return fetch(product.shared.a_descriptor, product.shared.a_depth, 16 * warp, 16);
  }
  std::vector<float> a(256);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned word = 0; word < 4; ++word) {
      const std::size_t at = (lane / 4 + word % 2 * 8) * 16 + lane % 4 * 2 + word / 2 * 8;
      a[at] = ptx::low_bf16(product.a_at_issue.at(lane).at(word));
      a[at + 1] = ptx::high_bf16(product.a_at_issue.at(lane).at(word));
    }
  }
  return a;
}

void require_untouched(const Product& product) {
  const auto count = static_cast<std::size_t>(product.shared.n) / 2;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (product.shared.a_registers != nullptr &&
        std::memcmp(product.a.at(lane), product.a_at_issue.at(lane).data(), 16) != 0) {
      throw Failure("the left operand of a product was touched before the product was waited for");
    }
    if (!product.d_at_issue.empty() &&
        std::memcmp(product.d.at(lane), &product.d_at_issue[lane * count], count * sizeof(float)) != 0) {
      throw Failure("the result of a product was touched before the product was waited for");
    }
  }
}

/// The 16 rows of a b that a warp holds: [16, n].
std::vector<float> multiply(const std::vector<float>& a, const std::vector<float>& b, std::size_t n) {
  std::vector<float> result(16 * n);
  std::vector<float> slice(n);
  for (std::size_t k = 0; k < 16; ++k) {
    for (std::size_t j = 0; j < n; ++j) slice[j] = b[16 * j + k];
    for (std::size_t row = 0; row < 16; ++row) {
      for (std::size_t j = 0; j < n; ++j) result[row * n + j] += a[16 * row + k] * slice[j];
    }
  }
  return result;
}

void perform(const Product& product, unsigned warp) {
  const auto n = static_cast<unsigned>(product.shared.n);
  const std::vector<float> result =
      multiply(left_operand(product, warp), fetch(product.shared.b_descriptor, product.shared.b_depth, 0, n), n);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < n / 2; ++i) {
      const float now = result[(lane / 4 + i % 4 / 2 * 8) * n + i / 4 * 8 + lane % 4 * 2 + i % 2];
      float& d = product.d.at(lane)[i];
      d = product.shared.add ? d + now : now;
    }
  }
}

Product make_product(std::span<void* const> lanes) {
  Product product = {
      .shared = *static_cast<const WgmmaLane*>(lanes[0]), .d = {}, .a = {}, .a_at_issue = {}, .d_at_issue = {}};
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& mine = *static_cast<const WgmmaLane*>(lanes[lane]);
    if (mine.a_descriptor != product.shared.a_descriptor || mine.b_descriptor != product.shared.b_descriptor) {
      throw Failure("lanes of a warp multiply different matrices");
    }
    product.d.at(lane) = mine.d;
    product.a.at(lane) = mine.a_registers;
    if (mine.a_registers != nullptr) std::memcpy(product.a_at_issue.at(lane).data(), mine.a_registers, 16);
  }
  return product;
}

/// The four warps of a warpgroup must say the same, each in its time.
void require_same_in_warpgroup(const WgmmaLane& now, std::size_t index) {
  std::vector<WgmmaLane>& products = state.products_of_warpgroup[threadIdx.x / 128];
  if (index == products.size()) products.push_back(now);
  const WgmmaLane& first = products.at(index);
  if (first.n != now.n || first.a_descriptor != now.a_descriptor || first.b_descriptor != now.b_descriptor ||
      first.add != now.add) {
    throw Failure("warps of a warpgroup multiply different matrices");
  }
}

void issue(std::span<void* const> lanes) {
  Warp& warp = this_warp();
  if (!warp.fenced) throw Failure("a product without wgmma_fence() since registers were waited for");
  Product product = make_product(lanes);
  require_same_in_warpgroup(product.shared, warp.issued++);
  const auto writes_same = [&](const Product& other) { return other.d[0] == product.d[0]; };
  bool written_before = std::any_of(warp.open.begin(), warp.open.end(), writes_same);
  for (const auto& group : warp.groups) {
    written_before = written_before || std::any_of(group.begin(), group.end(), writes_same);
  }
  if (!written_before) {
    for (const float* d : product.d) product.d_at_issue.insert(product.d_at_issue.end(), d, d + product.shared.n / 2);
  }
  warp.open.push_back(std::move(product));
}

void wait_in_warp(std::size_t pending) {
  Warp& warp = this_warp();
  if (!warp.open.empty()) throw Failure("a wait for products that were not committed");
  while (warp.groups.size() > pending) {
    for (const Product& product : warp.groups.front()) require_untouched(product);
    for (const Product& product : warp.groups.front()) perform(product, threadIdx.x / 32 % 4);
    warp.groups.erase(warp.groups.begin());
  }
  warp.fenced = false;
}

}  // namespace

Statistics launch_hopper(Index3 grid, unsigned threads, std::size_t shared_bytes, const std::function<void()>& kernel,
                         std::uint64_t seed) {
  state = {};
  state.seed = seed;
  const auto in_state = [&] {
    if (state.left == blockDim.x) {
      state = {};
      state.seed = seed;
    }
    kernel();
    leave_kernel();
  };
  return launch(grid, threads, shared_bytes, in_state, seed);
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

void wgmma(WgmmaLane lane) {
  together(warp(), "wgmma", lane, issue);
}

void wgmma_wait_for(int pending) {
  linger();
  int nothing = 0;
  together(warp(), "wgmma.wait_group", nothing, [pending](auto) { wait_in_warp(static_cast<std::size_t>(pending)); });
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
  if (engine_is_eager()) land(box);
}

void add_box(const TensorMap& map, int column, int row, std::uint32_t from) {
  state.additions[threadIdx.x].push_back(box_of(map, column, row, from));
}

void commit_boxes() {
  if (engine_is_eager()) wait_for_boxes_read();
}

void wait_for_boxes_read() {
  for (const Box& box : state.additions[threadIdx.x]) add_now(box);
  state.additions[threadIdx.x].clear();
}

void wait_for_boxes() {
  wait_for_boxes_read();
}

void fence_products() {
  int nothing = 0;
  together(warp(), "wgmma.fence", nothing, [](auto) { this_warp().fenced = true; });
}

void commit_products() {
  int nothing = 0;
  together(warp(), "wgmma.commit_group", nothing, [](auto) {
    this_warp().groups.push_back(std::move(this_warp().open));
    this_warp().open.clear();
  });
}

}  // namespace hdpsim::kernels::cuda::ptx
