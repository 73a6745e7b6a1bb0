#include "executor/train/share_results.h"

#include <algorithm>
#include <string>

#include "executor/tensor/to_device.h"
#include "executor/weights/weights.h"

namespace tessera {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

torch::Tensor whole_values(const ParallelGroups& groups, const torch::Tensor& mine,
                           const std::vector<int>& owners) {
  if (groups.cp_size == 1) return mine;
  std::vector<std::int64_t> counts(index(groups.cp_size), 0), places;
  for (const int owner : owners) places.push_back(counts[index(owner)]++);
  const std::int64_t most = *std::max_element(counts.begin(), counts.end());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] += owners[i] * most;
  torch::Tensor block = torch::zeros({most}, mine.options().requires_grad(false));
  block.narrow(0, 0, mine.size(0)).copy_(mine.detach());
  torch::Tensor all = torch::empty({groups.cp_size * most}, block.options());
  groups.cp->all_gather(block.data_ptr(), all.data_ptr(), static_cast<std::size_t>(most),
                        dtype_of(block.scalar_type()));
  return all.index_select(0, to_device(torch::tensor(places, torch::kInt64), all.device()));
}

std::vector<float> share_results(const ParallelGroups& groups,
                                 const std::vector<torch::Tensor>& mine, std::int64_t largest,
                                 torch::Device device) {
  const auto options = torch::TensorOptions().dtype(torch::kFloat32).device(device);
  torch::Tensor block = torch::zeros({largest}, options);
  if (!mine.empty()) {
    const torch::Tensor values = torch::cat(mine);
    block.narrow(0, 0, values.numel()).copy_(values);
  }
  const std::size_t size = static_cast<std::size_t>(largest);
  if (groups.pp) groups.pp->broadcast(block.data_ptr(), size, DType::fp32, groups.pp_size - 1);
  torch::Tensor all = block;
  if (groups.dp) {
    all = torch::empty({groups.dp_size * largest}, options);
    groups.dp->all_gather(block.data_ptr(), all.data_ptr(), size, DType::fp32);
  }
  all = all.cpu();
  return {all.const_data_ptr<float>(), all.const_data_ptr<float>() + all.numel()};
}

LossParts share_parts(const ParallelGroups& groups, const LossParts& mine, torch::Device device) {
  if (!groups.role) return mine;
  const bool speaks = groups.last_stage && groups.coord.tp == 0 && groups.coord.cp == 0;
  const std::string bytes = speaks ? to_bytes(mine) : std::string();
  const auto on_device = torch::TensorOptions().device(device);
  const int ranks = groups.role->size();
  torch::Tensor sizes = torch::zeros({ranks}, torch::kInt64);
  torch::Tensor own =
      torch::full({1}, static_cast<std::int64_t>(bytes.size()), on_device.dtype(torch::kInt64));
  sizes = sizes.to(device);
  groups.role->all_gather(own.data_ptr(), sizes.data_ptr(), 1, DType::int64);
  sizes = sizes.cpu();
  const std::int64_t largest = sizes.max().item<std::int64_t>();
  torch::Tensor block = torch::zeros({largest}, torch::kUInt8);
  std::copy(bytes.begin(), bytes.end(), block.mutable_data_ptr<std::uint8_t>());
  block = block.to(device);
  torch::Tensor all = torch::empty({ranks * largest}, on_device.dtype(torch::kUInt8));
  groups.role->all_gather(block.data_ptr(), all.data_ptr(), static_cast<std::size_t>(largest),
                          DType::uint8);
  all = all.cpu();
  LossParts sum;
  for (int r = 0; r < ranks; ++r) {
    const std::int64_t size = sizes.const_data_ptr<std::int64_t>()[r];
    if (size == 0) continue;
    sum.add(loss_parts_from(
        {reinterpret_cast<const char*>(all.const_data_ptr<std::uint8_t>()) + r * largest,
         static_cast<std::size_t>(size)}));
  }
  return sum;
}

}  // namespace tessera
