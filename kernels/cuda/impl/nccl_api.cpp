#include "kernels/cuda/impl/nccl_api.h"

#include <fmt/format.h>

#include "kernels/spec/error.h"

#if __has_include(<nccl.h>)
#include <nccl.h>
// If NCCL's own header is installed, the declarations here are checked against it.
namespace hdpsim::kernels::cuda::nccl {
static_assert(id_bytes == NCCL_UNIQUE_ID_BYTES);
static_assert(static_cast<int>(Result::in_progress) == ncclInProgress);
static_assert(static_cast<int>(DataType::int8) == ncclInt8);
static_assert(static_cast<int>(DataType::float32) == ncclFloat32);
static_assert(static_cast<int>(Reduction::sum) == ncclSum);
static_assert(undefined == NCCL_CONFIG_UNDEF_INT);
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(Config, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(Config, split_share) == offsetof(ncclConfig_t, splitShare));
static_assert(sizeof(Config) <= sizeof(ncclConfig_t));
}  // namespace hdpsim::kernels::cuda::nccl
#endif

namespace hdpsim::kernels::cuda::nccl {
namespace {

constexpr int least_version = 21800;

template <class Function>
void load(const SharedLibrary& library, const char* symbol, Function& function) {
  function = library.function<Function>(symbol);
}

}  // namespace

const Api& Api::instance() {
  static const Api api;
  return api;
}

Api::Api() : library_("messages between GPUs need NCCL", {"libnccl.so.2", "libnccl.so"}) {
  load(library_, "ncclGetVersion", version);
  int found = 0;
  version(&found);
  if (found < least_version) {
    throw DeviceError(
        fmt::format("NCCL is of version {}.{}: at least 2.18 is needed", found / 10000, found / 100 % 100));
  }
  load(library_, "ncclGetUniqueId", unique_id);
  load(library_, "ncclCommInitRankConfig", init_rank);
  load(library_, "ncclCommFinalize", finalize);
  load(library_, "ncclCommDestroy", destroy);
  load(library_, "ncclCommAbort", abort);
  load(library_, "ncclCommGetAsyncError", async_error);
  load(library_, "ncclGetErrorString", error_string);
  load(library_, "ncclGetLastError", last_error);
  load(library_, "ncclGroupStart", group_start);
  load(library_, "ncclGroupEnd", group_end);
  load(library_, "ncclSend", send);
  load(library_, "ncclRecv", receive);
  load(library_, "ncclAllReduce", all_reduce);
  load(library_, "ncclAllGather", all_gather);
  load(library_, "ncclReduceScatter", reduce_scatter);
}

}  // namespace hdpsim::kernels::cuda::nccl
