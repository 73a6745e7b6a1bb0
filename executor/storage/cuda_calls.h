// Calls of the CUDA runtime and driver that fail with Error. Only for the files of
// tessera::storage_cuda.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

#include "cost_models/documents/out_of_memory.h"
#include "cost_models/documents/problem.h"

namespace tessera {

inline void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  const std::string message = std::string(what) + ": " + cudaGetErrorString(code);
  if (code == cudaErrorMemoryAllocation) throw OutOfMemory("the CUDA runtime", 0, message);
  throw Error(ExitCode::internal, message);
}

/// A driver function by name: the driver's library is never linked.
template <class Function>
Function driver(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult state{};
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &state);
  if (code != cudaSuccess || state != cudaDriverEntryPointSuccess || entry == nullptr) {
    throw Error(ExitCode::missing, std::string("the CUDA driver has no ") + name);
  }
  return reinterpret_cast<Function>(entry);
}

}  // namespace tessera
