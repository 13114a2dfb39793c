#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// Collectives made of grouped messages, for transports without better ones. Every rank sends to and receives from
/// every other directly, so with n ranks and s bytes of data each rank sends, and receives as many bytes:
///   all_reduce      2 (n - 1) / n s, s the bytes of `data`
///   reduce_scatter  (n - 1) / n s, s the bytes of `all`
///   all_gather      (n - 1) s, s the bytes of `mine`
///   all_to_all      (n - 1) s, s the bytes of one part
///   barrier         nothing, in ceil(log2 n) rounds
/// Sums are added in the order of ranks: they have the same bits on every rank and on every transport that uses this.
/// Memory: up to 4 MiB (or 4 KiB per rank, if that is more) for the parts of a sum.
class MessageTransport : public Transport {
 public:
  void all_reduce(float* data, std::size_t count) final;
  void all_gather(const void* mine, void* all, std::size_t bytes_per_rank) final;
  void reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) final;
  void all_to_all(const void* from, void* to, std::size_t bytes_per_rank) final;
  void barrier() final;

 protected:
  // Operations on the memory of the messages: the host's, unless a transport overrides them.

  /// Memory of the transport for `count` elements; the same memory in every call that needs no more.
  [[nodiscard]] virtual float* reserve_parts(std::size_t count);
  /// Both pointers may be the same.
  virtual void copy(void* to, const void* from, std::size_t bytes);
  /// sum += part
  virtual void add(float* sum, const float* part, std::size_t count);

 private:
  void exchange(const std::vector<Send>& sends, const std::vector<Receive>& receives);
  /// Sums chunk rank() of `all` over ranks into `sum`, which may be that chunk. Chunk c begins at begin(c).
  void sum_chunk(const float* all, const std::function<std::size_t(int)>& begin, float* sum);

  std::vector<float> parts_;
};

}  // namespace hdpsim::kernels
