// Matrix products whose activations travel beside them (tensor with sequence parallelism).
//
// A product of every rank's tokens begins with this rank's while the others' are copied out of
// their memory; a product summed over ranks is computed block by block, and each block leaves while
// the next is computed (the decomposition of Wang et al., ASPLOS 2023). Copy engines move the bytes
// on a stream of their own. Only within a host. Collective over the tensor-parallel group, every
// function in the same order with the same shapes; without gradient; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/tensor/peer_memory.h"
#include "executor/tensor/side_stream.h"
#include "executor/tensor/torch.h"

namespace tessera {

class TokenExchange {
 public:
  /// `host`: the group on host memory; outlives this. `side` of the device; none on the CPU.
  /// Products of fewer than `fewest_tokens` of one rank would lose more than the copies take.
  TokenExchange(Communicator& host, SideStream side, std::int64_t fewest_tokens)
      : host_(host), side_(std::move(side)), fewest_tokens_(fewest_tokens) {}

  bool pays(std::int64_t own_tokens) const { return own_tokens >= fewest_tokens_; }

  /// Every rank's rows, on their way: own rows are there, others after their moment.
  struct Arriving {
    torch::Tensor all;                      // [ranks * rows, columns]
    std::vector<SideStream::Moment> ready;  // of rank + 1, rank + 2, ...
  };
  Arriving gather(const torch::Tensor& x);
  /// The current stream may read all rows. Between a gather and its await() at most one
  /// product_summed().
  void await(const Arriving& arriving) const;

  /// All rows times weight [columns, out], plus bias where defined; afterwards all rows are there.
  torch::Tensor product(const Arriving& arriving, const torch::Tensor& weight,
                        const torch::Tensor& bias) const;
  /// This rank's rows of the sum over ranks of x [ranks * rows, in] times weight [in, out]; added
  /// up in fp32 in the order of ranks.
  torch::Tensor product_summed(const torch::Tensor& x, const torch::Tensor& weight);

 private:
  torch::Tensor region(at::IntArrayRef shape, const torch::TensorOptions& options);
  void fetch(int rank, const torch::Tensor& sent, std::int64_t first, const torch::Tensor& to);
  int after(int steps) const { return (host_.rank() + steps) % host_.size(); }

  Communicator& host_;
  SideStream side_;
  std::int64_t fewest_tokens_;
  /// Regions that are used in turn.
  std::unique_ptr<PeerMemory> memory_;
  std::int64_t region_bytes_ = 0;
  int next_ = 0;
};

/// Collective over `host`. nullptr on all ranks unless all are on one host.
std::unique_ptr<TokenExchange> make_token_exchange(Communicator& host, torch::Device device);

}  // namespace tessera
