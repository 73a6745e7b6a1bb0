// Stands in for paged_kernels.cc where no CUDA compiler was found: fused::usable() says so.
#include "executor/model/paged_kernels.h"

namespace tessera::fused {

torch::Tensor rotate_and_store(const HeadColumns&, const torch::Tensor&, const torch::Tensor&,
                               const torch::Tensor&, const torch::Tensor&, const PagedCache&) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor attend_paged(const PagedRows&, const torch::Tensor&, const PagedCache&) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor attend_in_order(const PagedRows&, const torch::Tensor&, const PagedCache&,
                              std::int64_t) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor drawn_log_probs(double, const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}
Drawn draw_tokens(double, std::int64_t, const torch::Tensor&, const DrawRows&) {
  TORCH_CHECK(false, "built without kernels");
}
Drawn draw_over_columns(double, std::int64_t, const torch::Tensor&, std::int64_t, const DrawRows&,
                        Communicator&) {
  TORCH_CHECK(false, "built without kernels");
}

}  // namespace tessera::fused
