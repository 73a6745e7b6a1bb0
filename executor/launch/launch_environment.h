// Which rank of how many this process is, as its launcher says in the environment.
//
// A pure function of the variables. Families, innermost launcher first: torchrun and what speaks
// its language (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open MPI
// (OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK), Slurm (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID,
// SLURM_JOB_NODELIST, SLURM_JOB_ID), and one process per pod (PET_NODE_RANK, PET_NNODES).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "cost_models/documents/problem_list.h"

namespace tessera {

enum class Launcher { none, torchrun, mpirun, srun, pods };
std::string_view name_of(Launcher launcher);

struct LaunchEnvironment {
  Launcher launcher = Launcher::none;
  int rank = 0, world_size = 1;
  int local_rank = 0;
  int local_size = 0;       // ranks on this host; 0 = the launcher does not say
  std::string master_host;  // where ranks meet; empty = nowhere needed, or MPI itself
  int master_port = 0;
  bool agent_hosts_store = false;  // torchrun's agent serves the store: rank 0 is a client too
  std::string job;                 // distinguishes runs that share a store: job id and restart
  bool operator==(const LaunchEnvironment&) const = default;
};

using EnvironmentVariables = std::map<std::string, std::string>;

/// The first complete family wins; without any variable of any family, one rank alone. Appends a
/// Problem per variable that is missing (only when no family is complete) or contradicts the
/// others.
LaunchEnvironment read_launch_environment(const EnvironmentVariables& variables,
                                          Problems& problems);

/// First host of a Slurm node list, e.g. "gnode[10,20-22],login1" -> "gnode10"; empty when
/// malformed.
std::string first_host(std::string_view node_list);

/// Variables of this process.
EnvironmentVariables process_environment();

}  // namespace tessera
