#include "executor/storage/cuda_calls.h"
#include "executor/storage/staging_memory.h"

namespace tessera {

Pinning cuda_pinning() {
  int device = 0;
  check(cudaGetDevice(&device), "current device");
  return {.pin =
              [device](void* data, std::int64_t bytes) {
                // Of the thread that makes the memory; what fails is left to no later call.
                const bool pinned = cudaSetDevice(device) == cudaSuccess &&
                                    cudaHostRegister(data, static_cast<std::size_t>(bytes),
                                                     cudaHostRegisterDefault) == cudaSuccess;
                if (!pinned) cudaGetLastError();
                return pinned;
              },
          .unpin = [](void* data) { cudaHostUnregister(data); }};
}

}  // namespace tessera
