#include "executor/model/router_replay.h"

#include <tuple>

namespace tessera {
namespace {

using torch::Tensor;

/// Rows whose experts are other ones, in whatever order both name them.
Tensor different_rows(const Tensor& a, const Tensor& b) {
  return std::get<0>(a.sort(-1)).ne(std::get<0>(b.sort(-1))).any(-1);
}

}  // namespace

RouterReplay RouterReplay::of_layer(std::int64_t index) const {
  const auto layer = [&](const Tensor& x) { return x.defined() ? x.select(0, index) : x; };
  return {layer(replayed), layer(noted), compared};
}

RouterReplay RouterReplay::of_rows(std::int64_t first, std::int64_t count) const {
  const auto rows = [&](const Tensor& x) { return x.defined() ? x.narrow(0, first, count) : x; };
  return {rows(replayed), rows(noted), compared};
}

Tensor replayed_choice(const Tensor& own, const RouterReplay& replay) {
  Tensor chosen = own;
  if (replay.replayed.defined()) {
    const Tensor given = replay.replayed.select(1, 0).ge(0);
    chosen = at::where(given.unsqueeze(1), replay.replayed.to(own.scalar_type()), own);
    if (replay.compared.defined()) {
      Tensor counts = replay.compared;
      counts.add_(at::stack({given.sum(), different_rows(chosen, own).sum()}));
    }
  }
  if (replay.noted.defined()) {
    Tensor noted = replay.noted;
    noted.copy_(chosen);
  }
  return chosen;
}

}  // namespace tessera
