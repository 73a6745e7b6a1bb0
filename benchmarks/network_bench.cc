// Speed of flows over shared links: `network_bench`, JSON on standard output.
//
// Random pairs of GPUs on 32 nodes of 8 exchange messages of random sizes that begin at random
// times, over one card a GPU, one a node, or cards behind an oversubscribed uplink. Of every case
// the fastest of several runs, in CPU seconds of one thread; an event is a beginning or an end of a
// flow.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "cost_models/calibration.h"
#include "simulator/network/cluster_network.h"
#include "simulator/network/flows.h"

namespace {

using namespace tessera;

constexpr int kGpus = 256;

ClusterSpec cluster_of(std::int64_t cards, double oversubscription) {
  ClusterSpec cluster;
  cluster.gpus_per_node = 8;
  cluster.nodes = kGpus / 8;
  cluster.nics_per_node = cards;
  cluster.nic = gb_per_s(50);
  cluster.oversubscription = oversubscription;
  return cluster;
}

std::vector<Flow> random_flows(const ClusterNetwork& network, int count) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int> gpu(0, kGpus - 1);
  std::uniform_real_distribution<double> bytes(1e6, 1e9), start(0, 0.01);
  std::vector<Flow> flows;
  while (static_cast<int>(flows.size()) < count) {
    const int from = gpu(random), to = gpu(random);
    if (from / 8 != to / 8) flows.push_back({network.path(from, to), bytes(random), start(random)});
  }
  return flows;
}

/// Of this thread, so that others' work on the core does not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const ClusterNetwork& network, const std::vector<Flow>& flows,
                  std::int64_t& events) {
  double fastest = 1e9;
  for (int run = 0; run < 20; ++run) {
    const double start = cpu_seconds();
    finish_times(network.capacity, flows, &events);
    fastest = std::min(fastest, cpu_seconds() - start);
  }
  return fastest;
}

}  // namespace

int main() {
  struct Links {
    const char* name;
    std::int64_t cards;
    double oversubscription;
  };
  Calibration calibration;
  calibration.inter_efficiency.value = 1;
  std::string text = "{\n";
  for (const Links& links :
       {Links{"a card a GPU", 8, 1}, {"a card a node", 1, 1}, {"uplinks 4 to 1", 8, 4}}) {
    const ClusterNetwork network =
        cluster_network(cluster_of(links.cards, links.oversubscription), calibration, kGpus);
    for (const int count : {256, 1024}) {
      std::int64_t events = 0;
      const double took = seconds_of(network, random_flows(network, count), events);
      char line[160];
      std::snprintf(line, sizeof line,
                    "%s  \"%d flows, %s\": {\"events\": %lld, \"seconds\": %.6f, "
                    "\"events_per_s\": %.0f}",
                    text.size() > 2 ? ",\n" : "", count, links.name, static_cast<long long>(events),
                    took, static_cast<double>(events) / took);
      text += line;
    }
  }
  std::printf("%s\n}\n", text.c_str());
  return 0;
}
