#include "executor/model/router_losses.h"

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

struct Balance : torch::autograd::Function<Balance> {
  static Tensor forward(AutogradContext* context, const Tensor& probabilities,
                        const Tensor& all_choices, const Tensor& value, std::int64_t counted,
                        double slope) {
    context->save_for_backward({probabilities});
    context->saved_data["all_choices"] = all_choices;
    context->saved_data["value"] = value;
    context->saved_data["counted"] = counted;
    context->saved_data["slope"] = slope;
    return probabilities;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const std::int64_t counted = context->saved_data["counted"].toInt();
    const Tensor rows = context->get_saved_variables()[0].detach().narrow(0, 0, counted);
    const Tensor own =
        context->saved_data["all_choices"].toTensor() * context->saved_data["slope"].toDouble();
    context->saved_data["value"].toTensor().add_((rows.sum(0) * own).sum());
    Tensor whole = gradients[0].clone();
    whole.narrow(0, 0, counted).add_(own);
    return {whole, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

/// How many of so many rows of this rank count.
template <class Loss>
std::int64_t counted_rows(const Loss& loss, std::int64_t rows) {
  return std::clamp<std::int64_t>(loss.tokens - loss.first, 0, rows);
}

}  // namespace

RouterBalance RouterBalance::of_layer(std::int64_t index) const {
  RouterBalance layer = *this;
  if (choices.defined()) layer.choices = choices.select(0, index);
  return layer;
}

Tensor with_z_loss(const Tensor& logits, const RouterZLoss& loss) {
  if (loss.slope == 0 || !recording({&logits})) return logits;
  return ZLoss::apply(logits, loss.squares, counted_rows(loss, logits.size(0)), loss.slope);
}

Tensor with_balance(const Tensor& probabilities, const Tensor& chosen, const RouterBalance& loss) {
  if (!loss.choices.defined()) return probabilities;
  const std::int64_t counted = counted_rows(loss, probabilities.size(0));
  const Tensor picks = chosen.narrow(0, 0, counted).reshape({-1});
  Tensor choices = loss.choices;
  choices.zero_().scatter_add_(0, picks, torch::ones(picks.sizes(), choices.options()));
  if (!recording({&probabilities})) return probabilities;
  return Balance::apply(probabilities, loss.all_choices, loss.value, counted, loss.slope);
}

}  // namespace tessera
