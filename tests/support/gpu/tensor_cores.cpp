#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "tests/support/gpu/hopper.h"
#include "tests/support/gpu/hopper_units.h"

namespace hdpsim::emulator {
namespace {

namespace ptx = kernels::cuda::ptx;
using ptx::Depth;

struct Product {
  WgmmaLane shared;  ///< What is the same in all lanes.
  std::array<float*, 32> d;
  std::array<const std::uint32_t*, 32> a;
  std::array<std::array<std::uint32_t, 4>, 32> a_at_issue;
  std::vector<float> d_at_issue;  ///< Empty if an earlier product writes them, too.
};

struct Warp {
  std::vector<Product> open;
  std::vector<std::vector<Product>> groups;
  bool fenced = false;
  std::size_t issued = 0;
};

struct State {
  std::map<unsigned, Warp> warps;
  std::map<unsigned, std::vector<WgmmaLane>> products_of_warpgroup;
};
State state;

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

void tensor_cores::begin_block() {
  state = {};
}

void tensor_cores::end_thread() {
  const Warp& warp = this_warp();
  if (!warp.open.empty() || !warp.groups.empty()) throw Failure("the thread ended with products under way");
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
