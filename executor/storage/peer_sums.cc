#include "executor/storage/peer_sums.h"

#include <string>
#include <utility>

#include "executor/comm/group_name.h"
#include "executor/kernels/peer_sums.h"
#include "executor/storage/cuda_calls.h"
#include "executor/storage/peer_blocks.h"

namespace tessera {
namespace {

constexpr std::int64_t kRegionBytes = kMostPeerSumBytes;
constexpr std::int64_t kNumbers = kernels::kPeerSumBlocks * std::int64_t{sizeof(std::uint32_t)};

/// A rank's block: two regions, arrivals of every rank, calls.
std::int64_t block_bytes(int ranks) { return 2 * kRegionBytes + (ranks + 1) * kNumbers; }

/// A word of host memory that kernels look at.
class GivenUp {
 public:
  GivenUp() {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, sizeof(*word_), cudaHostAllocMapped), "cudaHostAlloc");
    word_ = static_cast<volatile std::uint32_t*>(memory);
    *word_ = 0;
  }
  ~GivenUp() { cudaFreeHost(const_cast<std::uint32_t*>(word_)); }
  GivenUp(const GivenUp&) = delete;

  void set() { *word_ = 1; }
  bool is_set() const { return *word_ != 0; }
  const volatile std::uint32_t* word() const { return word_; }

 private:
  volatile std::uint32_t* word_ = nullptr;
};

class PeerSummedGroup final : public Communicator, public NamedGroup {
 public:
  PeerSummedGroup(std::unique_ptr<Communicator> inner, std::unique_ptr<SharedBlock> mine,
                  PeerBlocks peers, void* stream)
      : inner_(std::move(inner)),
        mine_(std::move(mine)),
        peers_(std::move(peers)),
        stream_(stream) {
    memory_.rank = inner_->rank();
    memory_.ranks = inner_->size();
    memory_.region_bytes = kRegionBytes;
    for (int rank = 0; rank < memory_.ranks; ++rank) {
      std::byte* const block =
          rank == memory_.rank ? static_cast<std::byte*>(mine_->data()) : peers_.at(rank);
      memory_.regions[rank] = block;
      memory_.arrivals[rank] = reinterpret_cast<std::uint32_t*>(block + 2 * kRegionBytes);
    }
    memory_.calls = memory_.arrivals[memory_.rank] +
                    static_cast<std::ptrdiff_t>(memory_.ranks) * kernels::kPeerSumBlocks;
    memory_.given_up = given_up_.word();
  }
  /// Peers' kernels may still read this rank's part.
  ~PeerSummedGroup() override { cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)); }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void all_reduce(void* data, std::size_t count, DType type, ReduceOp op) override {
    const bool real = type == DType::bf16 || type == DType::fp32;
    const std::size_t bytes = count * static_cast<std::size_t>(size_of(type));
    if (!real || op != ReduceOp::sum || bytes > kMostPeerSumBytes || given_up_.is_set()) {
      return inner_->all_reduce(data, count, type, op);
    }
    if (count == 0) return;
    kernels::sum_over_peers(type == DType::bf16 ? kernels::Real::bf16 : kernels::Real::fp32,
                            memory_, data, static_cast<std::int64_t>(count), stream_);
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType type) override {
    inner_->all_gather(send, receive, count, type);
  }
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType type,
                      ReduceOp op) override {
    inner_->reduce_scatter(send, receive, count, type, op);
  }
  void all_gather_batch(std::span<const GatherBlock> blocks) override {
    inner_->all_gather_batch(blocks);
  }
  void broadcast(void* data, std::size_t count, DType type, int root) override {
    inner_->broadcast(data, count, type, root);
  }
  void all_to_all(const void* send, void* receive, std::size_t count, DType type) override {
    inner_->all_to_all(send, receive, count, type);
  }
  void exchange(std::span<const SendBlock> sends, std::span<const ReceiveBlock> receives) override {
    inner_->exchange(sends, receives);
  }
  void barrier() override { inner_->barrier(); }
  void abort() override {
    given_up_.set();
    inner_->abort();
  }
  void name_group(const std::string& name) override { tessera::name_group(*inner_, name); }
  std::unique_ptr<Communicator> split(std::span<const int> members) override {
    return inner_->split(members);
  }

 private:
  std::unique_ptr<Communicator> inner_;
  std::unique_ptr<SharedBlock> mine_;
  PeerBlocks peers_;
  GivenUp given_up_;
  kernels::PeerSumMemory memory_;
  void* stream_;
};

}  // namespace

std::unique_ptr<Communicator> with_peer_sums(std::unique_ptr<Communicator> inner,
                                             Communicator& host, int device, void* stream) {
  if (inner == nullptr || inner->size() > kernels::kMostSummedPeers) return inner;
  std::unique_ptr<SharedBlock> mine = make_device_block(block_bytes(inner->size()), device);
  PeerBlocks peers(host, mine.get());
  if (!peers.all_on_one_host()) return inner;
  return std::make_unique<PeerSummedGroup>(std::move(inner), std::move(mine), std::move(peers),
                                           stream);
}

}  // namespace tessera
