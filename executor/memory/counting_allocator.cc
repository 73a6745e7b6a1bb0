#include "executor/memory/counting_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <utility>

namespace tessera {
namespace {

/// An allocation of torch's own allocator, counted while it lives.
class CountedBlock {
 public:
  CountedBlock(std::shared_ptr<CountedTensors> counted, std::int64_t bytes, c10::DataPtr block)
      : counted_(std::move(counted)), bytes_(bytes), block_(std::move(block)) {
    const std::lock_guard lock(counted_->mutex);
    counted_->bytes += bytes_;
    ++counted_->count_of[bytes_];
  }
  ~CountedBlock() {
    const std::lock_guard lock(counted_->mutex);
    counted_->bytes -= bytes_;
    const auto found = counted_->count_of.find(bytes_);
    if (--found->second == 0) counted_->count_of.erase(found);
  }
  CountedBlock(const CountedBlock&) = delete;

  void* data() const { return block_.get(); }
  static void end(void* block) { delete static_cast<CountedBlock*>(block); }

 private:
  std::shared_ptr<CountedTensors> counted_;
  std::int64_t bytes_;
  c10::DataPtr block_;
};

class CountingAllocator final : public c10::Allocator {
 public:
  CountingAllocator(std::shared_ptr<CountedTensors> counted,
                    std::function<void(std::int64_t)> admit)
      : counted_(std::move(counted)),
        admit_(std::move(admit)),
        own_(c10::GetDefaultCPUAllocator()) {}

  c10::DataPtr allocate(std::size_t size) override {
    const auto bytes = static_cast<std::int64_t>(size);
    if (bytes == 0) return own_->allocate(0);
    admit_(bytes);
    auto block = std::make_unique<CountedBlock>(counted_, bytes, own_->allocate(size));
    void* const data = block->data();
    return {data, block.release(), &CountedBlock::end, c10::Device(c10::kCPU)};
  }

  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  std::shared_ptr<CountedTensors> counted_;
  std::function<void(std::int64_t)> admit_;
  c10::Allocator* own_;  // torch's, for the process
};

}  // namespace

void install_counting_allocator(std::shared_ptr<CountedTensors> counted,
                                std::function<void(std::int64_t bytes)> admit) {
  // torch takes the pointer and never gives it back: tensors may outlive everything else.
  constexpr std::uint8_t kAboveTheDefault = 1;
  c10::SetCPUAllocator(
      std::make_unique<CountingAllocator>(std::move(counted), std::move(admit)).release(),
      kAboveTheDefault);
}

}  // namespace tessera
