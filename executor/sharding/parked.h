// Memory of tensors that leaves its device between uses and comes back.
//
// Works on storages: every tensor over one keeps its place, and has no data while it is away. On a
// GPU the bytes wait in pinned host memory, on the CPU in a buffer of their own, so that the same
// code runs on both. Blocks the calling thread until copies are done.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/tensor/torch.h"

namespace tessera {

class Parked {
 public:
  /// A storage that owns its memory; one that is here already is not added again.
  void add(const torch::Tensor& tensor);
  /// The device's memory is given back. `keep`: the bytes return with it, otherwise what returns is
  /// undefined. With `unchanged` bytes that the host has from before are not copied again.
  void leave(bool keep, bool unchanged = false);
  /// Memory as it was before leave(). Nothing where nothing is away.
  void come_back();
  bool away() const { return away_; }
  /// Bytes of device memory that leave() frees.
  std::int64_t bytes() const;

 private:
  struct Entry {
    c10::Storage storage;
    torch::Tensor host;    // bytes; undefined until they are first kept
    bool kept = false;     // the host's bytes return
    bool current = false;  // and equal the device's unless those were written
  };
  std::vector<Entry> entries_;
  bool away_ = false;
};

}  // namespace tessera
