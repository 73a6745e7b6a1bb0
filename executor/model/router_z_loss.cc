#include "executor/model/router_z_loss.h"

#include <algorithm>

#include "executor/tensor/gradient_products.h"

namespace tessera {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct ZLoss : torch::autograd::Function<ZLoss> {
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& squares,
                        std::int64_t counted, double slope) {
    context->save_for_backward({logits});
    context->saved_data["squares"] = squares;
    context->saved_data["counted"] = counted;
    context->saved_data["slope"] = slope;
    return logits;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const std::int64_t counted = context->saved_data["counted"].toInt();
    const double slope = context->saved_data["slope"].toDouble();
    const Tensor rows =
        context->get_saved_variables()[0].detach().narrow(0, 0, counted).to(at::kFloat);
    const Tensor sum = at::logsumexp(rows, {-1}, /*keepdim=*/true);
    context->saved_data["squares"].toTensor().add_(sum.square().sum());
    const Tensor own = at::softmax(rows, -1).mul_(sum * (2 * slope));
    Tensor whole = gradients[0].clone();
    whole.narrow(0, 0, counted).add_(own);
    return {whole, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor with_z_loss(const Tensor& logits, const RouterZLoss& loss) {
  if (loss.slope == 0 || !recording({&logits})) return logits;
  const std::int64_t counted =
      std::clamp<std::int64_t>(loss.tokens - loss.first, 0, logits.size(0));
  return ZLoss::apply(logits, loss.squares, counted, loss.slope);
}

}  // namespace tessera
