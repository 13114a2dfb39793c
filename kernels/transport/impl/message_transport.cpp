#include "kernels/transport/message_transport.h"

#include <algorithm>
#include <cstring>

namespace hdpsim::kernels {
namespace {

constexpr std::size_t parts_memory = (std::size_t{4} << 20) / sizeof(float);
constexpr std::size_t smallest_slice = 1024;

const std::byte* at(const void* data, std::size_t offset) {
  return static_cast<const std::byte*>(data) + offset;
}
std::byte* at(void* data, std::size_t offset) {
  return static_cast<std::byte*>(data) + offset;
}

}  // namespace

float* MessageTransport::reserve_parts(std::size_t count) {
  parts_.resize(std::max(parts_.size(), count));
  return parts_.data();
}

void MessageTransport::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
}

void MessageTransport::add(float* sum, const float* part, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += part[i];
}

void MessageTransport::exchange(const std::vector<Send>& sends, const std::vector<Receive>& receives) {
  wait(start(sends, receives));
}

void MessageTransport::sum_chunk(const float* all, const std::function<std::size_t(int)>& begin, float* sum) {
  const int ranks = size();
  const int mine = rank();
  std::size_t longest = 0;
  for (int chunk = 0; chunk < ranks; ++chunk) longest = std::max(longest, begin(chunk + 1) - begin(chunk));
  const std::size_t slice = std::max(smallest_slice, parts_memory / static_cast<std::size_t>(ranks));
  float* const parts = reserve_parts(std::min(slice, longest) * static_cast<std::size_t>(ranks));

  for (std::size_t done = 0; done < longest; done += slice) {
    const auto slice_begin = [&](int chunk) { return std::min(begin(chunk) + done, begin(chunk + 1)); };
    const auto slice_count = [&](int chunk) {
      return std::min(slice_begin(chunk) + slice, begin(chunk + 1)) - slice_begin(chunk);
    };
    const std::size_t count = slice_count(mine);
    const auto part = [&](int from) { return parts + static_cast<std::size_t>(from) * count; };
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == mine) continue;
      sends.push_back({peer, all + slice_begin(peer), slice_count(peer) * sizeof(float)});
      receives.push_back({peer, part(peer), count * sizeof(float)});
    }
    copy(part(mine), all + slice_begin(mine), count * sizeof(float));
    exchange(sends, receives);
    for (int from = 1; from < ranks; ++from) add(part(0), part(from), count);
    copy(sum + (slice_begin(mine) - begin(mine)), part(0), count * sizeof(float));
  }
}

void MessageTransport::all_reduce(float* data, std::size_t count) {
  const auto ranks = static_cast<std::size_t>(size());
  const auto begin = [&](int chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    return count / ranks * c + std::min(c, count % ranks);
  };
  const int mine = rank();
  sum_chunk(data, begin, data + begin(mine));

  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == mine) continue;
    sends.push_back({peer, data + begin(mine), (begin(mine + 1) - begin(mine)) * sizeof(float)});
    receives.push_back({peer, data + begin(peer), (begin(peer + 1) - begin(peer)) * sizeof(float)});
  }
  exchange(sends, receives);
}

void MessageTransport::all_gather(const void* mine, void* all, std::size_t bytes_per_rank) {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int peer = 0; peer < size(); ++peer) {
    std::byte* const place = at(all, static_cast<std::size_t>(peer) * bytes_per_rank);
    if (peer == rank()) {
      copy(place, mine, bytes_per_rank);
      continue;
    }
    sends.push_back({peer, mine, bytes_per_rank});
    receives.push_back({peer, place, bytes_per_rank});
  }
  exchange(sends, receives);
}

void MessageTransport::reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) {
  sum_chunk(
      all, [&](int chunk) { return static_cast<std::size_t>(chunk) * count_per_rank; }, mine);
}

void MessageTransport::all_to_all(const void* from, void* to, std::size_t bytes_per_rank) {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int peer = 0; peer < size(); ++peer) {
    const std::size_t offset = static_cast<std::size_t>(peer) * bytes_per_rank;
    sends.push_back({peer, at(from, offset), bytes_per_rank});
    receives.push_back({peer, at(to, offset), bytes_per_rank});
  }
  exchange(sends, receives);
}

void MessageTransport::barrier() {
  // After the round of distance d each rank has heard, directly or not, from the 2 d - 1 ranks before it.
  for (int distance = 1; distance < size(); distance *= 2) {
    const int next = (rank() + distance) % size();
    const int previous = (rank() - distance + size()) % size();
    exchange({{next, nullptr, 0}}, {{previous, nullptr, 0}});
  }
}

}  // namespace hdpsim::kernels
