#include "planner/plan/checks/environment_check.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "cost_models/documents/problem.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

// Of NCCL only names that stand here: others of its prefix load libraries (NCCL_NET_PLUGIN,
// NCCL_TUNER_PLUGIN, NCCL_PROFILER_PLUGIN), read or write files (NCCL_CONF_FILE, NCCL_TOPO_FILE,
// NCCL_GRAPH_DUMP_FILE, NCCL_DEBUG_FILE) or listen (NCCL_COMM_ID, NCCL_RAS_ADDR).
constexpr std::string_view kAllowed[] = {
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_CROSS_NIC",
    "NCCL_CUMEM_ENABLE",
    "NCCL_CUMEM_HOST_ENABLE",
    "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_IB_ADAPTIVE_ROUTING",
    "NCCL_IB_DISABLE",
    "NCCL_IB_GID_INDEX",
    "NCCL_IB_HCA",
    "NCCL_IB_PCI_RELAXED_ORDERING",
    "NCCL_IB_QPS_PER_CONNECTION",
    "NCCL_IB_RETRY_CNT",
    "NCCL_IB_SL",
    "NCCL_IB_SPLIT_DATA_ON_QPS",
    "NCCL_IB_TC",
    "NCCL_IB_TIMEOUT",
    "NCCL_LAUNCH_MODE",
    "NCCL_MAX_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_MNNVL_ENABLE",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NET_GDR_READ",
    "NCCL_NSOCKS_PERTHREAD",
    "NCCL_NTHREADS",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_P2P_NVL_CHUNKSIZE",
    "NCCL_PROTO",
    "NCCL_PXN_DISABLE",
    "NCCL_SHM_DISABLE",
    "NCCL_SOCKET_FAMILY",
    "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_NTHREADS",
    "OMPI_MCA_mpi_yield_when_idle",
    "OMP_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TOKENIZERS_PARALLELISM",
};

bool allowed(std::string_view name) {
  return std::find(std::begin(kAllowed), std::end(kAllowed), name) != std::end(kAllowed);
}

// Neither paths nor blanks nor what a shell reads.
bool plain(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-+.,:;=^[]").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

}  // namespace

void check_environment(const std::vector<EnvironmentVariable>& environment, const std::string& file,
                       Problems& problems) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < environment.size(); ++i) {
    const EnvironmentVariable& variable = environment[i];
    const std::string place = "/environment/" + std::to_string(i);
    if (!allowed(variable.name)) {
      problems.push_back({file, place + "/name", in_quotes(variable.name),
                          "a variable that Tessera writes, or a setting of NCCL that names no file",
                          "what a job needs besides is exported where it is started"});
    }
    if (!seen.insert(variable.name).second) {
      problems.push_back({file, place + "/name", in_quotes(variable.name) + " a second time",
                          "every variable once", ""});
    }
    if (!plain(variable.value)) {
      problems.push_back({file, place + "/value", in_quotes(variable.value),
                          "letters, digits and the signs _-+.,:;=^[]", ""});
    }
  }
}

}  // namespace tessera
