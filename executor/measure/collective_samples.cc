#include <array>
#include <thread>

#include "executor/comm/stopwatch.h"
#include "executor/measure/sampler.h"

namespace tessera {
namespace {

void measure_collective(Sampler& sampler, Communicator& group,
                        std::vector<CalibrationSample>& samples) {
  const int n = group.size();
  const std::int64_t largest = sampler.small_sizes() ? 1 << 20 : 1 << 28;
  for (std::int64_t bytes = 256; bytes <= largest; bytes *= 8) {
    torch::Tensor whole = torch::zeros(
        {bytes * n}, torch::TensorOptions().dtype(torch::kUInt8).device(sampler.options().device));
    void* data = whole.data_ptr();
    auto* part = static_cast<std::byte*>(data) + group.rank() * bytes;
    const auto add = [&](Collective collective, double size, const std::function<void()>& body) {
      samples.push_back({.kind = SampleKind::collective,
                         .sizes = {size},
                         .seconds = Seconds{sampler.together(body)},
                         .collective = collective,
                         .ranks = n});
    };
    const auto all = static_cast<double>(bytes * n), one = static_cast<double>(bytes);
    const std::size_t floats = bytes / 4;
    add(Collective::all_reduce, one,
        [&] { group.all_reduce(data, floats, DType::fp32, ReduceOp::sum); });
    add(Collective::all_gather, all, [&] { group.all_gather(part, data, floats, DType::fp32); });
    add(Collective::reduce_scatter, all,
        [&] { group.reduce_scatter(data, part, floats, DType::fp32, ReduceOp::sum); });
    add(Collective::broadcast, one, [&] { group.broadcast(data, floats, DType::fp32, 0); });
    const SendBlock send{(group.rank() + 1) % n, data, static_cast<std::size_t>(bytes)};
    const ReceiveBlock receive{(group.rank() + n - 1) % n,
                               static_cast<std::byte*>(data) + (n - 1) * bytes,
                               static_cast<std::size_t>(bytes)};
    add(Collective::send_receive, one, [&] { group.exchange({&send, 1}, {&receive, 1}); });
  }
}

}  // namespace

void measure_collectives(Sampler& sampler, std::vector<CalibrationSample>& samples) {
  Communicator& world = sampler.world();
  if (world.size() < 2) return;
  std::vector<std::unique_ptr<Communicator>> pairs;
  Communicator* mine = nullptr;
  for (int first = 0; first + 1 < world.size(); first += 2) {
    const int members[] = {first, first + 1};
    pairs.push_back(world.split(members));
    if (pairs.back() != nullptr) mine = pairs.back().get();
  }
  if (mine != nullptr && world.size() % 2 == 0) measure_collective(sampler, *mine, samples);
  if (world.size() > 2) measure_collective(sampler, world, samples);
}

void measure_waiting(Sampler& sampler, std::vector<CalibrationSample>& samples) {
  Communicator& host = sampler.host();
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (sampler.options().device.is_cuda() || host.size() <= cores) return;
  const torch::Tensor x = torch::randn({256, 256}, sampler.tensor_options());
  host.barrier();
  std::array<float, 2> seconds{};  // that pass, that a core works; summed over the busy ranks
  if (host.rank() < cores) {
    const Stopwatch watch;
    const double used = core_seconds();
    while (watch.seconds() < 0.5) torch::mm(x, x);
    seconds = {static_cast<float>(watch.seconds()), static_cast<float>(core_seconds() - used)};
  }
  host.all_reduce(seconds.data(), 2, DType::fp32, ReduceOp::sum);
  samples.push_back(
      {.kind = SampleKind::waiting,
       .sizes = {static_cast<double>(cores), static_cast<double>(host.size() - cores), seconds[1]},
       .seconds = Seconds{seconds[0]}});
}

}  // namespace tessera
