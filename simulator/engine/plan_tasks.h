// The tasks of iterations of a Plan: every phase of its schedule with what it really waits for.
//
// A call starts when the calls that it names and the earlier calls on any of its ranks have ended,
// as the executor runs them; calls on disjoint ranks overlap. Inside a call: the reshard as one
// copy per destination rank (bytes of the exact ReshardPlan), generation per replica, forward
// passes and (interleaved) 1F1B by micro-batch and chunk with blocking transfers between stages,
// FSDP's gathers and reductions beside them, then per mini-batch the gradients' reduction, the
// optimizer and the gathering of parameters. The ranks of a tensor and context parallel group
// act as one: what they and their expert parallel groups exchange is part of the operation; what of
// it crosses nodes is a flow at its end, what stays within one crosses their ports meanwhile, and
// so is what the ranks of a replica exchange while they generate. Integer nanoseconds; pure.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "cost_models/calibration.h"
#include "simulator/network/cluster_network.h"
#include "simulator/network/machine_settings.h"
#include "simulator/rollout/replica.h"
#include "simulator/tasks/task_graph.h"

namespace tessera {

struct Plan;
struct RolePlan;
struct ScheduledCall;

class PlanCosts;  // role_costs.h

struct SimulationOptions {
  std::uint64_t seed = 0;     // of the drawn response lengths
  std::int64_t steps = 1;     // iterations
  int rollout_segments = 64;  // at most about so many spans of a replica's generation
  MachineSettings machine;    // beside the cluster's own figures
  int load_windows = 256;     // of equal length, by which a link's load over time is told
  std::stop_token stop{};     // ends it by Stopped (cost_models/documents/stopped.h)
};

/// A micro-batch of a training call on one stage of one replica: its activations exist from the
/// start of `forward` to the end of `backward`.
struct InFlight {
  TaskId forward = 0, backward = 0;
  int stage = 0;
  std::int64_t layers = 0;  // of its chunk; 1 on a stage that has none
};

/// One call of one iteration.
struct CallTasks {
  Phase phase = Phase::gen;
  Role role = Role::actor;  // whose ranks run it
  int step = 0;
  std::vector<int> ranks;           // that take part, ascending
  TaskId start = 0, end = 0;        // tasks without ranks and duration; all others lie between
  std::vector<InFlight> in_flight;  // of a training call
};

/// What a stage's last backward pass hides of its gradients' reduction or of the gathering of its
/// parameters: it travels beside the pass, as layer after layer is done, and no task waits for it.
struct HiddenExchange {
  TaskId shown = 0;            // the task of what is not hidden, without duration where all is
  TaskId behind_pass = 0;      // the first task behind the pass
  std::int64_t hidden_ns = 0;  // of the collective's time
  std::int64_t beside_ns = 0;  // before the pass's end, in which all that it hides travels
  std::vector<int> ranks;
  Exchange exchange = Exchange::none;
  int pattern = -1;                                         // of TaskGraph::patterns
  double card_bytes = 0, port_bytes = 0, shared_bytes = 0;  // as Task, of the hidden part
};

/// A replica's generation, behind the task `before`.
struct ReplicaTasks {
  int call = 0, replica = 0;  // `call`: of IterationTasks
  TaskId before = 0;
  std::vector<int> ranks;
  std::vector<RolloutSegment> segments;  // each on its own, as the tasks need not be
};

struct IterationTasks {
  TaskGraph graph;
  ClusterNetwork network;
  bool shares_links = false;     // some of the network's links serve several GPUs
  std::vector<CallTasks> calls;  // step by step in the schedule's order
  std::vector<ReplicaTasks> replicas;
  std::vector<HiddenExchange> hidden;
};

/// The role that runs a scheduled call: the rollout generates, the actor stands in for a role
/// without ranks (rule rewards).
const RolePlan& runner_of(const Plan& plan, const ScheduledCall& call);

/// Precondition: the plan is valid.
IterationTasks build_iteration(const Plan& plan, const Calibration& calibration,
                               const SimulationOptions& options = {});
/// The same with costs that were made of the plan and its constants.
IterationTasks build_iteration(const Plan& plan, const Calibration& calibration,
                               const SimulationOptions& options, PlanCosts& costs);

/// The tasks in time: as flows over the network where links are shared, else by their durations.
NetworkRun run(const IterationTasks& tasks, const std::stop_token& stop = {});

}  // namespace tessera
