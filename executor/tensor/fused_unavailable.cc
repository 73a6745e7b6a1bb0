// The fused operators of a build without nvcc: nothing is usable, so nothing else is ever called.
#include "executor/tensor/fused.h"
#include "executor/tensor/placed_chunks.h"

namespace tessera::fused {

bool usable(const torch::Tensor&) { return false; }
bool attention_usable(torch::Device, at::ScalarType, std::int64_t) { return false; }
Normed rms_norm(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&, double) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor rms_norm_backward(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&,
                                const torch::Tensor&, const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor rotate(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&, bool) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor swiglu(const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}
GatePair swiglu_backward(const torch::Tensor&, const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}
VocabularySums vocabulary_sums(const torch::Tensor&, const torch::Tensor&, double) {
  TORCH_CHECK(false, "built without kernels");
}
void vocabulary_gradient_(torch::Tensor&, const torch::Tensor&, double, const torch::Tensor&,
                          const torch::Tensor&, const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}
AttentionBatch attention_batch(const std::vector<std::int64_t>&, torch::Device) {
  TORCH_CHECK(false, "built without kernels");
}
void set_keys(AttentionBatch&, const std::vector<std::int64_t>&, torch::Device) {
  TORCH_CHECK(false, "built without kernels");
}
Attended attend(const AttentionBatch&, const torch::Tensor&, const torch::Tensor&,
                const torch::Tensor&, std::int64_t) {
  TORCH_CHECK(false, "built without kernels");
}
HeadGradients attend_backward(const AttentionBatch&, const torch::Tensor&, const torch::Tensor&,
                              const torch::Tensor&, const torch::Tensor&, const torch::Tensor&,
                              const torch::Tensor&, std::int64_t) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor chunk_table(const std::vector<Chunk>&, torch::Device) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor placed_chunk_table(const std::vector<PlacedChunk>&, torch::Device, std::int64_t) {
  TORCH_CHECK(false, "built without kernels");
}
torch::Tensor sum_of_squares(const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}
void sum_parts(const torch::Tensor&, const std::vector<torch::Tensor>&, bool) {
  TORCH_CHECK(false, "built without kernels");
}
void adamw(const AdamWStep&, const torch::Tensor&, const torch::Tensor&, const torch::Tensor&,
           const torch::Tensor&, const torch::Tensor&, const torch::Tensor&, const torch::Tensor&) {
  TORCH_CHECK(false, "built without kernels");
}

}  // namespace tessera::fused
