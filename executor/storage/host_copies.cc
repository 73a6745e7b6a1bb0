#include <cstring>

#include "executor/storage/block_copies.h"
#include "executor/storage/stream_copies.h"

namespace tessera {
namespace {

void copy(std::span<const CopyBatch> batches) {
  for (const CopyBatch& batch : batches) {
    for (std::size_t i = 0; i < batch.to.size(); ++i) {
      std::memcpy(batch.to[i], batch.from[i], batch.bytes[i]);
    }
  }
}

class HostCopies final : public BlockCopies {
 public:
  void await_producer() override {}
  int mark_producer() override { return 0; }  // what was written before is there
  void await_mark(int) override {}
  void start(std::span<const CopyBatch> batches) override { copy(batches); }
  void wait() override {}
};

class HostStreamCopies final : public StreamCopies {
 public:
  void run(std::span<const CopyBatch> batches, void*) override { copy(batches); }
};

}  // namespace

std::unique_ptr<BlockCopies> make_host_copies() { return std::make_unique<HostCopies>(); }
std::unique_ptr<StreamCopies> make_host_stream_copies() {
  return std::make_unique<HostStreamCopies>();
}

}  // namespace tessera
