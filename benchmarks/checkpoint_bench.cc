// Speed of a rank's checkpoint beside plain writers: `checkpoint_bench FOLDER [GB [ROUNDS]]`, JSON
// on standard output.
//
// A state in the proportions of a 1.5B (an embedding of 15 %, 28 layers, three fp32 states) and
// random bits goes into FOLDER by write_state(), and the same bytes by as many plain writers of one
// write(2) each, by turns. Of each round the seconds, and the processor seconds of all threads, a
// GB: what others do on the machine lengthens the first more than the second.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/state_file.h"
#include "executor/threads/shared_work.h"

namespace {

using namespace tessera;
namespace fs = std::filesystem;

constexpr std::int64_t kMatrices = std::int64_t{28} * 7;  // layers, and of each

struct Cost {
  double seconds = 0, processor_seconds = 0;  // a GB
};

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

std::vector<StateTensor> cut(const std::vector<std::uint64_t>& memory) {
  const auto numbers = static_cast<std::int64_t>(memory.size() * 2);
  const std::int64_t embedding = numbers / 20, matrix = (numbers / 3 - embedding) / kMatrices;
  std::vector<StateTensor> tensors;
  const auto* at = reinterpret_cast<const std::byte*>(memory.data());
  const auto add = [&](std::string_view state, std::int64_t count) {
    const Box box{.dims = {Interval{0, count}}, .rank = 1};
    const std::string name =
        std::string(state) + "/" + std::to_string(tensors.size()) + ".up_proj.weight";
    tensors.push_back({{piece_name(name, box), DType::fp32, {count}}, at});
    at += tensors.back().spec.bytes();
  };
  for (const char* state : {"actor.master", "actor.exp_avg", "actor.exp_avg_sq"}) {
    add(state, embedding);
    for (std::int64_t i = 0; i < kMatrices; ++i) add(state, matrix);
  }
  return tensors;
}

void fail(const std::string& what) {
  std::fprintf(stderr, "checkpoint_bench: %s\n", what.c_str());
  std::exit(1);
}

void write_plainly(const fs::path& folder, const std::vector<std::uint64_t>& memory) {
  const std::size_t bytes = memory.size() * sizeof memory[0] / kMostParts;
  share_work(kMostParts, 1, kMostParts, [&](std::int64_t part, std::int64_t /*end*/) {
    const fs::path file = folder / std::to_string(part);
    const int descriptor = ::open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
    const auto* at = reinterpret_cast<const char*>(memory.data()) + bytes * std::size_t(part);
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t wrote = ::write(descriptor, at + done, bytes - done);
      if (wrote <= 0) fail(file.string() + " cannot be written");
      done += static_cast<std::size_t>(wrote);
    }
    ::fsync(descriptor);
    ::close(descriptor);
  });
}

Cost cost_of(const fs::path& folder, double gb, const std::function<void()>& write) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  const auto start = std::chrono::steady_clock::now();
  const double processor = processor_seconds();
  write();
  const double used = processor_seconds() - processor;
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fs::remove_all(folder);
  return {took / gb, used / gb};
}

Cost median(std::vector<Cost> costs) {
  const auto middle = [&](double Cost::*field) {
    std::ranges::sort(costs, {}, field);
    return (costs[(costs.size() - 1) / 2].*field + costs[costs.size() / 2].*field) / 2;
  };
  return {middle(&Cost::seconds), middle(&Cost::processor_seconds)};
}

void print(const char* name, const std::vector<Cost>& costs) {
  const Cost middle = median(costs);
  std::printf("  \"%s\": {\"gbps\": %.3f, \"processor_s_per_gb\": %.4f, \"rounds\": [", name,
              1 / middle.seconds, middle.processor_seconds);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    std::printf("%s[%.3f, %.4f]", i > 0 ? ", " : "", 1 / costs[i].seconds,
                costs[i].processor_seconds);
  }
  std::printf("]},\n");
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) fail("checkpoint_bench FOLDER [GB [ROUNDS]]");
  const fs::path folder = fs::path(words[1]) / "checkpoint_bench";
  const double gb = count > 2 ? std::atof(words[2]) : 2;
  const int rounds = count > 3 ? std::atoi(words[3]) : 5;
  std::vector<std::uint64_t> memory(static_cast<std::size_t>(gb * 1e9 / sizeof(std::uint64_t)));
  std::mt19937_64 random(1);
  for (std::uint64_t& each : memory) each = random();
  const std::vector<StateTensor> tensors = cut(memory);
  std::vector<Cost> plain, state;
  for (int round = 0; round < rounds; ++round) {
    plain.push_back(cost_of(folder, gb, [&] { write_plainly(folder, memory); }));
    state.push_back(cost_of(folder, gb, [&] {
      Problems problems;
      const auto least = static_cast<std::int64_t>(gb * 1e9 / 8);  // four parts of any size
      if (!write_state(folder, 0, tensors, least, problems)) fail(to_string(problems.front()));
    }));
  }
  std::printf("{\n");
  print("plain writers", plain);
  print("write_state", state);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    ratios.push_back(plain[i].seconds / state[i].seconds);
  }
  std::ranges::sort(ratios);
  std::printf("  \"of the plain writers' rate\": %.3f\n}\n",
              (ratios[(ratios.size() - 1) / 2] + ratios[ratios.size() / 2]) / 2);
  return 0;
}
