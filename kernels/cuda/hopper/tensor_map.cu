#include "kernels/cuda/hopper/tensor_map.h"

#include <cuda.h>

#include <cstring>
#include <string>

#include "kernels/cuda/hopper/hopper_launch.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels::cuda::hopper {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

/// Found in the loaded driver: no program here is linked to it, so that programs run on machines without one.
Encode driver_function() {
  static const Encode found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    constexpr unsigned first_version_with_it = 12000;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, first_version_with_it,
                                           cudaEnableDefault, &result),
          "cudaGetDriverEntryPointByVersion(cuTensorMapEncodeTiled)");
    if (result != cudaDriverEntryPointSuccess || function == nullptr) {
      throw DeviceError("the driver has no cuTensorMapEncodeTiled: attention on Hopper needs a driver for CUDA 12");
    }
    return reinterpret_cast<Encode>(function);
  }();
  return found;
}

}  // namespace

ptx::TensorMap encode(const TensorShape& shape) {
  const auto element = static_cast<cuuint64_t>(shape.element_bytes);
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(shape.columns), static_cast<cuuint64_t>(shape.rows)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(shape.row_stride) * element};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(shape.box_columns()), static_cast<cuuint32_t>(shape.box_rows)};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap made;
  const CUresult status = driver_function()(
      &made, shape.element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
      const_cast<void*>(shape.data), extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) {
    throw DeviceError("cuTensorMapEncodeTiled answered " + std::to_string(static_cast<int>(status)) + " for " +
                      std::to_string(shape.rows) + " rows of " + std::to_string(shape.columns) + " elements, " +
                      std::to_string(shape.row_stride) + " elements apart");
  }
  static_assert(sizeof made == sizeof(ptx::TensorMap));
  ptx::TensorMap map;
  std::memcpy(&map, &made, sizeof map);
  return map;
}

}  // namespace hdpsim::kernels::cuda::hopper
