// Products whose activations travel equal those of whole activations, whatever regions hold them.
#include "executor/model/token_exchange.h"

#include <gtest/gtest.h>

#include "executor/comm/thread_communicator.h"

namespace tessera {
namespace {

using torch::Tensor;

/// Numbers that are alike on every rank.
Tensor numbers(std::int64_t rows, std::int64_t columns, double seed) {
  return torch::sin(torch::arange(rows * columns, torch::kFloat).mul(0.37).add(seed))
      .view({rows, columns});
}

void expect_close(const Tensor& got, const Tensor& want) {
  EXPECT_LE((got - want).abs().max().item<double>(), 1e-4 * want.abs().max().item<double>());
}

class TokenExchangeOn : public ::testing::TestWithParam<int> {};

TEST_P(TokenExchangeOn, MultipliesEverybodysRows) {
  run_ranks(GetParam(), [](Communicator& world) {
    const auto exchange = make_token_exchange(world, torch::kCPU);
    ASSERT_NE(exchange, nullptr);
    // Growing and shrinking shapes, more of them than regions.
    for (const std::int64_t rows : {3, 1, 40, 7, 2}) {
      const Tensor whole = numbers(rows * world.size(), 5, static_cast<double>(rows));
      const Tensor weight = numbers(5, 11, 0.5), bias = numbers(1, 11, 0.25).view(-1);
      const auto arriving = exchange->gather(whole.narrow(0, world.rank() * rows, rows));
      expect_close(exchange->product(arriving, weight, {}), whole.mm(weight));
      expect_close(exchange->product(arriving, weight, bias), whole.mm(weight) + bias);
      exchange->await(arriving);
      EXPECT_TRUE(torch::equal(arriving.all, whole));
    }
  });
}

TEST_P(TokenExchangeOn, SumsEverybodysProductsOfItsOwnRows) {
  run_ranks(GetParam(), [](Communicator& world) {
    const auto exchange = make_token_exchange(world, torch::kCPU);
    for (const std::int64_t rows : {2, 9, 1}) {
      Tensor want = torch::zeros({rows * world.size(), 7});
      for (int rank = 0; rank < world.size(); ++rank) {
        want += numbers(rows * world.size(), 4, rank).mm(numbers(4, 7, 10 + rank));
      }
      const Tensor mine = numbers(rows * world.size(), 4, world.rank());
      const auto pending = exchange->gather(mine);  // a gather may be on its way meanwhile
      const Tensor got = exchange->product_summed(mine, numbers(4, 7, 10 + world.rank()));
      expect_close(got, want.narrow(0, world.rank() * rows, rows));
      exchange->await(pending);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, TokenExchangeOn, ::testing::Values(1, 2, 3, 4));

TEST(TokenExchange, RefusesTokensThatRanksCannotShareEqually) {
  run_ranks(2, [](Communicator& world) {
    const auto exchange = make_token_exchange(world, torch::kCPU);
    EXPECT_THROW(exchange->product_summed(torch::zeros({3, 2}), torch::zeros({2, 2})), c10::Error);
  });
}

}  // namespace
}  // namespace tessera
