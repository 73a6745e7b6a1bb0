// Small planning requests, built in code.
#pragma once

#include <string>

#include "cost_models/calibration.h"
#include "cost_models/documents/problem.h"
#include "planner/request/plan_request.h"
#include "planner/request/request.h"

namespace tessera {

inline ModelSpec tiny_model(std::int64_t layers = 2) {
  return {.family = ModelFamily::qwen2,
          .layers = layers,
          .hidden = 64,
          .query_heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .ffn = 176,
          .vocab = 16,
          .max_positions = 128,
          .tied_embeddings = true,
          .qkv_bias = true,
          .dtype = DType::fp32};
}

inline ModelSpec llama_8b() {
  return {.family = ModelFamily::llama,
          .layers = 32,
          .hidden = 4096,
          .query_heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .ffn = 14336,
          .vocab = 128256,
          .max_positions = 131072};
}

inline Workload workload_of(const std::string& algorithm, KlPlace kl, bool reward_model) {
  Workload workload;
  workload.algorithm = algorithm;
  workload.dataflow = preset_dataflow(algorithm, kl, reward_model);
  workload.kl = kl;
  workload.prompts_per_step = 8;
  workload.samples_per_prompt = 2;
  workload.prompt_tokens = 8;
  workload.response_tokens = {4, 0, 4};
  return workload;
}

inline ClusterSpec cluster_of(int gpus_per_node, int nodes, double memory_gib) {
  ClusterSpec cluster;
  cluster.name = "test";
  cluster.device = {"H100-SXM-80GB", from_gib(memory_gib), tflop_per_s(989), gb_per_s(3350)};
  cluster.gpus_per_node = gpus_per_node;
  cluster.nodes = nodes;
  cluster.intra_per_gpu = gb_per_s(450);
  cluster.nics_per_node = gpus_per_node;
  cluster.nic = gb_per_s(50);
  return cluster;
}

inline PlanRequest request_of(ModelSpec model, Workload workload, ClusterSpec cluster,
                              const std::string& calibration = "h100") {
  PlanRequest request;
  request.models["actor"] = {std::move(model), "test", ""};
  request.workload = std::move(workload);
  request.cluster = std::move(cluster);
  Problems problems;
  request.calibration = find_calibration(calibration, problems).value_or(Calibration{});
  request.created = "2026-01-01T00:00:00Z";
  return request;
}

}  // namespace tessera
