#include "executor/tensor/recompute.h"

#include <utility>

namespace tessera {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A function that autograd's context keeps.
template <typename Function>
struct Kept : torch::CustomClassHolder {
  explicit Kept(Function f) : function(std::move(f)) {}
  Function function;
};

template <typename Function>
void keep(AutogradContext* context, Function function) {
  context->saved_data["function"] =
      c10::IValue::make_capsule(c10::make_intrusive<Kept<Function>>(std::move(function)));
}

template <typename Function>
Function kept(AutogradContext* context) {
  const auto capsule = context->saved_data["function"].toCapsule();
  return static_cast<Kept<Function>*>(capsule.get())->function;
}

using Piece = std::function<Tensor(const Tensor&)>;
using Call = std::function<void()>;

struct Recomputed : torch::autograd::Function<Recomputed> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Piece& fn) {
    context->save_for_backward({x});
    keep(context, fn);
    return fn(x);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    const at::AutoGradMode recording(true);
    const Tensor y = kept<Piece>(context)(x);
    torch::autograd::backward({y}, {gradients[0]});
    return {x.grad(), Tensor()};
  }
};

struct OnBackward : torch::autograd::Function<OnBackward> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Call& call) {
    keep(context, call);
    return x;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    kept<Call>(context)();
    return {gradients[0], Tensor()};
  }
};

bool recording(const Tensor& x) { return at::GradMode::is_enabled() && x.requires_grad(); }

}  // namespace

Tensor recomputed(const Tensor& x, Piece fn) {
  return recording(x) ? Recomputed::apply(x, fn) : fn(x);
}

Tensor on_backward(const Tensor& x, Call call) {
  return recording(x) ? OnBackward::apply(x, call) : x;
}

}  // namespace tessera
