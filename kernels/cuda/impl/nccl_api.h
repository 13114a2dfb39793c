#pragma once

#include <cuda_runtime_api.h>

#include <climits>
#include <cstddef>

#include "kernels/spec/shared_library.h"

/// The part of NCCL's C interface that is used, declared here because the library is opened at run time and its header
/// need not be installed. From nccl.h of NCCL 2.18, which later versions accept: a configuration says how long it is
/// and of which version.
namespace hdpsim::kernels::cuda::nccl {

struct Comm;
using CommHandle = Comm*;

enum class Result : int { success = 0, in_progress = 7 };
enum class DataType : int { int8 = 0, float32 = 7 };
enum class Reduction : int { sum = 0 };

inline constexpr std::size_t id_bytes = 128;
struct UniqueId {
  char bytes[id_bytes];
};

inline constexpr int undefined = INT_MIN;
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;  // 2.18.0
  int blocking = undefined;
  int cga_cluster_size = undefined;
  int min_ctas = undefined;
  int max_ctas = undefined;
  const char* net_name = nullptr;
  int split_share = undefined;
  int traffic_class = undefined;  // padding in 2.18; later versions copy it with the rest
};

/// NCCL on this machine. DeviceError if there is none or it is older than 2.18.
class Api {
 public:
  [[nodiscard]] static const Api& instance();

  Result (*version)(int*);
  Result (*unique_id)(UniqueId*);
  Result (*init_rank)(CommHandle*, int ranks, UniqueId, int rank, Config*);
  Result (*finalize)(CommHandle);
  Result (*destroy)(CommHandle);
  Result (*abort)(CommHandle);
  Result (*async_error)(CommHandle, Result*);
  const char* (*error_string)(Result);
  const char* (*last_error)(CommHandle);
  Result (*group_start)();
  Result (*group_end)();
  Result (*send)(const void*, std::size_t, DataType, int peer, CommHandle, cudaStream_t);
  Result (*receive)(void*, std::size_t, DataType, int peer, CommHandle, cudaStream_t);
  Result (*all_reduce)(const void*, void*, std::size_t, DataType, Reduction, CommHandle, cudaStream_t);
  Result (*all_gather)(const void*, void*, std::size_t, DataType, CommHandle, cudaStream_t);
  Result (*reduce_scatter)(const void*, void*, std::size_t, DataType, Reduction, CommHandle, cudaStream_t);

 private:
  Api();
  SharedLibrary library_;
};

}  // namespace hdpsim::kernels::cuda::nccl
