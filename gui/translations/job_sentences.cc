// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/translations/sentences.h"

#include <QCoreApplication>
#include <array>

namespace tessera::gui {
namespace {

constexpr std::array kSentences{
    // What an exported job asks of its user (planner/interop).
    QT_TRANSLATE_NOOP(
        "Words",
        "Put %1 (verl's keys; what the plan does not fix) beside the plan; tessera-run "
        "must be on PATH of every node."),
    QT_TRANSLATE_NOOP("Words",
                      "With trainer.save_freq and trainer.resume_mode: auto in it a job that is "
                      "started again, after a failure, an eviction or its time limit, goes on from "
                      "its newest checkpoint."),
    QT_TRANSLATE_NOOP(
        "Words",
        "Before: %1, and a PersistentVolumeClaim %2-runs that several nodes may write "
        "(ReadWriteMany); %3 can lie on it, too, under %4."),
    QT_TRANSLATE_NOOP(
        "Words",
        "Before: %1, and a PersistentVolumeClaim %2-runs; %3 can lie on it, too, under "
        "%4."),
    QT_TRANSLATE_NOOP("Words", "models and data that run.yaml names"),
    QT_TRANSLATE_NOOP("Words", "models and data"),
    QT_TRANSLATE_NOOP(
        "Words",
        "Several nodes: give %1 the cluster's RDMA resource (its name depends on the "
        "device plugin: rdma/hca_shared_devices_a, say) beside nvidia.com/gpu, or NCCL "
        "falls back to TCP; and let the scheduler start all pods or none (the "
        "runtime's podGroupPolicy)."),
    QT_TRANSLATE_NOOP(
        "Words",
        "Several nodes: give %1 the cluster's RDMA resource (its name depends on the "
        "device plugin: rdma/hca_shared_devices_a, say) beside nvidia.com/gpu, or NCCL "
        "falls back to TCP."),
    QT_TRANSLATE_NOOP("Words", "the job"),
    QT_TRANSLATE_NOOP("Words", "the pods"),
    QT_TRANSLATE_NOOP(
        "Words",
        "Several nodes: set NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) where hosts "
        "have interfaces that do not reach each other (docker0, say), and NCCL_IB_HCA "
        "where some adapters are not for this traffic; on RoCE NCCL_IB_TC and "
        "NCCL_IB_GID_INDEX are the fabric's. Look for NET/IB in the log of "
        "NCCL_DEBUG=INFO once: NET/Socket is TCP."),
    QT_TRANSLATE_NOOP(
        "Words",
        "Several nodes: set NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) where hosts "
        "have interfaces that do not reach each other (docker0, say), and NCCL_IB_HCA "
        "where some adapters are not for this traffic. Look for NET/IB in the log of "
        "NCCL_DEBUG=INFO once: NET/Socket is TCP."),
    QT_TRANSLATE_NOOP("Words", "The plan is for several GPU types: %1; %2"),
    QT_TRANSLATE_NOOP(
        "Words",
        "Slurm hands out nodes in its own order: ask for each type by --constraint or "
        "--gres, and name the hosts in this order (SLURM_HOSTFILE with srun "
        "--distribution=arbitrary): %1."),
    QT_TRANSLATE_NOOP("Words", "start node ranks in this order: %1."),
    QT_TRANSLATE_NOOP("Words", "give the job a nodeSelector for %1."),
    QT_TRANSLATE_NOOP("Words", "start these on nodes of their type."),
    QT_TRANSLATE_NOOP("Words",
                      "The plan has %1 servers of %2 GPUs; start serve.sh once for each, with its "
                      "own port and CUDA_VISIBLE_DEVICES. Experts lie over tensor x data parallel "
                      "ranks of one server."),
    QT_TRANSLATE_NOOP("Words",
                      "The plan has %1 servers of %2 GPUs; start serve.sh once for each, with its "
                      "own port and CUDA_VISIBLE_DEVICES."),
    QT_TRANSLATE_NOOP(
        "Words",
        "A server spans %1 nodes: start serve.sh on each with --nnodes %2 --node-rank "
        "0 (1, ...) --dist-init-addr FIRST_NODE:PORT."),
    QT_TRANSLATE_NOOP("Words",
                      "A server spans %1 nodes: start serve.sh on the first with "
                      "--data-parallel-size-local %2 --data-parallel-address FIRST_NODE "
                      "--data-parallel-rpc-port PORT, and on the others with the same, --headless "
                      "and --data-parallel-start-rank."),
    QT_TRANSLATE_NOOP("Words",
                      "A server spans %1 nodes: start Ray on them and add "
                      "--distributed-executor-backend ray."),
    QT_TRANSLATE_NOOP("Words",
                      "Megatron-LM counts micro-batches in sequences: %1 of up to %2 tokens stand "
                      "for the %3's limit of %4 tokens."),
    QT_TRANSLATE_NOOP("Words",
                      "Megatron-LM trains one model: the rollout, the reshard and the other roles "
                      "are the caller's. Its ranks are in the order tp, cp, ep, dp, pp."),
    QT_TRANSLATE_NOOP("Words",
                      "Set the environment variable %1 to %2 (%3): the plan does not know it. "
                      "submit.sh stops with this sentence where it is missing."),
    QT_TRANSLATE_NOOP(
        "Words",
        "Set the environment variable %1 to %2 (%3): the plan does not know it. run.sh "
        "stops with this sentence where it is missing; verl.yaml reads it too."),
    QT_TRANSLATE_NOOP(
        "Words",
        "Set the environment variable %1 to %2 (%3): the plan does not know it. run.sh "
        "stops with this sentence where it is missing."),
    QT_TRANSLATE_NOOP("Words", "the parquet file of the prompts, or [several]"),
    QT_TRANSLATE_NOOP("Words", "the parquet file of the prompts for validation"),
    QT_TRANSLATE_NOOP("Words",
                      "a folder with the weights of %1 that is prepared for verl: `%2` makes it"),
    QT_TRANSLATE_NOOP("Words",
                      "a folder with the weights of %1, or its name on the Hugging Face hub"),
    QT_TRANSLATE_NOOP("Words", "the model"),
    QT_TRANSLATE_NOOP("Words", "the critic"),
    QT_TRANSLATE_NOOP("Words",
                      "The model's published weights are quantized, and verl's own example for it "
                      "(DeepSeek-V3) removes quantization_config from config.json and disables "
                      "multi-token prediction: %1 makes such a folder; every node reads it."),
    QT_TRANSLATE_NOOP(
        "Words",
        "Start Ray on every node before: `ray start --head` on the first, `ray start "
        "--address=HOST:6379` on the others. Ray's dashboard has no password: keep it "
        "on a trusted network (CVE-2023-48022)."),
    QT_TRANSLATE_NOOP("Words",
                      "verl, and Ray's command line, must be on PATH of every node (or in a "
                      "container that the three srun lines name)."),
    QT_TRANSLATE_NOOP(
        "Words",
        "The plan expects responses of %1 tokens on average (%2 before the limit cuts "
        "them, with a cv of %3); verl only knows the longest, %4."),
    QT_TRANSLATE_NOOP("Words",
                      "The plan expects responses of %1 tokens on average; verl only knows the "
                      "longest, %2."),
    QT_TRANSLATE_NOOP("Words",
                      "verl gathers every tensor whole to move weights into the rollout: %1 into "
                      "every GPU in each step, where the plan moves %2; expect a longer "
                      "update_weights than the plan's reshard."),
    QT_TRANSLATE_NOOP("Words",
                      "Megatron places the %1's pipeline stages far apart (tp, cp, dp, pp); the "
                      "plan's ranks are %2."),
    QT_TRANSLATE_NOOP("Words",
                      "verl moves the %1's gradients with its parameters; the plan treats them "
                      "apart."),
    QT_TRANSLATE_NOOP("Words",
                      "Servers tell no log-probs (rollout.calculate_log_probs=false), which one "
                      "process of Python for each would hand on: up to %1 more a step. With true "
                      "verl shows training/rollout_probs_diff_*, and "
                      "algorithm.rollout_correction.rollout_is and rollout_rs need it."),
    QT_TRANSLATE_NOOP(
        "Words",
        "Mixture of experts: routers of trainer and inference engine disagree on some "
        "tokens; watch training/rollout_probs_diff_* and consider "
        "actor.%1.router_replay.mode=R3 with "
        "rollout.enable_rollout_routing_replay=true, or algorithm.rollout_correction "
        "(verl issue 2953)."),
    QT_TRANSLATE_NOOP("Words",
                      "Mixture of experts: vLLM's sleep level is 1 with expert parallelism, so "
                      "weights go to host memory and need room there."),
    QT_TRANSLATE_NOOP(
        "Words",
        "Written for verl %1; it runs with vllm 0.24.0 or sglang 0.5.12, torch 2.11.0 "
        "and transformers 5.9.0. NCCL 2.28.3 to 2.28.7 cannot restart communicators "
        "in a process: use the torch wheel's 2.28.9."),
    QT_TRANSLATE_NOOP(
        "Words",
        "Written for verl %1; it runs with vllm 0.24.0 or sglang 0.5.12, torch 2.11.0 "
        "and transformers 5.9.0, %2. NCCL 2.28.3 to 2.28.7 cannot restart communicators "
        "in a process: use the torch wheel's 2.28.9."),
    QT_TRANSLATE_NOOP("Words", "%1 at commit %2 (%3; verl %4 does not run with later ones)"),
    QT_TRANSLATE_NOOP("Words",
                      "max_num_batched_tokens is raised from the plan's %1 prefill tokens to "
                      "max_num_seqs, which the engines ask for."),
    QT_TRANSLATE_NOOP("Words",
                      "verl resumes generation that a weight update interrupts (partial rollouts); "
                      "the plan counts whole responses, generated one step off."),
    QT_TRANSLATE_NOOP(
        "Words",
        "%1 is no multiple of the %2 ranks that verl multiplies a limit by; the limit "
        "per GPU is rounded up, so that a longest sequence fits."),
    QT_TRANSLATE_NOOP(
        "Words",
        "verl keeps a reference's parameters in host memory between its calls, "
        "whatever %1 says (workers/engine/*/transformer_impl.py); the plan keeps them "
        "on the GPU."),
    QT_TRANSLATE_NOOP("Words",
                      "verl's critic has one token limit for its update and for the values; the "
                      "smaller of the plan's two is written."),
    QT_TRANSLATE_NOOP(
        "Words",
        "verl 0.9.1 has no key for it and Ray fills its pools from any nodes: give the "
        "nodes of each type a resource of their own (ray start --resources) and its "
        "name to RayResourcePool's accelerator_type where the trainer makes its pools.")};

}  // namespace

std::span<const char* const> jobSentences() { return kSentences; }

}  // namespace tessera::gui
