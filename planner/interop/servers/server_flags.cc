// Names: vLLM's EngineArgs.add_cli_args and openai/cli_args.py, SGLang's ServerArgs.add_cli_args.
#include "planner/interop/servers/server_flags.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

// clang-format off
constexpr auto kVllm = std::to_array<std::string_view>(
    {"additional-config", "aggregate-engine-logging", "all2all-backend", "allow-credentials",
     "allowed-headers", "allowed-local-media-path", "allowed-media-domains", "allowed-methods",
     "allowed-origins", "api-key", "api-server-count", "async-scheduling", "attention-backend",
     "attention-config", "block-size", "calculate-kv-scales", "chat-template",
     "chat-template-content-format", "code-revision", "collect-detailed-traces",
     "compilation-config", "config", "config-format", "convert", "cp-kv-cache-interleave-size",
     "cpu-offload-gb", "cudagraph-capture-sizes", "data-parallel-address", "data-parallel-backend",
     "data-parallel-external-lb", "data-parallel-hybrid-lb", "data-parallel-rank",
     "data-parallel-rpc-port", "data-parallel-size", "data-parallel-size-local",
     "data-parallel-start-rank", "dbo-decode-token-threshold", "dbo-prefill-token-threshold",
     "dcp-kv-cache-interleave-size", "decode-context-parallel-size", "default-mm-loras",
     "disable-async-output-proc", "disable-cascade-attn", "disable-chunked-mm-input",
     "disable-custom-all-reduce", "disable-fastapi-docs", "disable-frontend-multiprocessing",
     "disable-hybrid-kv-cache-manager", "disable-log-requests", "disable-log-stats",
     "disable-nccl-for-dp-synchronization", "disable-sliding-window", "disable-uvicorn-access-log",
     "distributed-executor-backend", "download-dir", "dtype", "ec-transfer-config",
     "enable-auto-tool-choice", "enable-chunked-prefill", "enable-dbo", "enable-eplb",
     "enable-expert-parallel", "enable-force-include-usage", "enable-layerwise-nvtx-tracing",
     "enable-log-outputs", "enable-log-requests", "enable-lora", "enable-lora-bias",
     "enable-mfu-metrics", "enable-prefix-caching", "enable-prompt-embeds",
     "enable-prompt-tokens-details", "enable-reasoning", "enable-request-id-headers",
     "enable-server-load-tracking", "enable-sleep-mode", "enable-ssl-refresh",
     "enable-tokenizer-info-endpoint", "enable-tower-connector-lora", "enforce-eager",
     "eplb-config", "exclude-tools-when-tool-choice-none", "expert-placement-strategy",
     "fail-on-environ-validation", "fully-sharded-loras", "generation-config",
     "gpu-memory-utilization", "guided-decoding-backend", "guided-decoding-disable-fallback",
     "h11-max-header-count", "h11-max-incomplete-event-size", "headless", "hf-config-path",
     "hf-overrides", "hf-token", "host", "ignore-patterns", "interleave-mm-strings",
     "io-processor-plugin", "kernel-config", "kv-cache-dtype", "kv-cache-memory-bytes",
     "kv-cache-metrics", "kv-events-config", "kv-offloading-backend", "kv-offloading-size",
     "kv-sharing-fast-prefill", "kv-transfer-config", "limit-mm-per-prompt", "load-format",
     "log-config-file", "logits-processor-pattern", "logits-processors",
     "long-prefill-token-threshold", "lora-dtype", "lora-extra-vocab-size", "lora-modules",
     "mamba-block-size", "mamba-cache-dtype", "mamba-ssm-cache-dtype", "master-addr", "master-port",
     "max-cpu-loras", "max-cudagraph-capture-size", "max-log-len", "max-logprobs",
     "max-long-partial-prefills", "max-lora-rank", "max-loras", "max-model-len",
     "max-num-batched-tokens", "max-num-partial-prefills", "max-num-seqs",
     "max-parallel-loading-workers", "max-seq-len-to-capture", "media-io-kwargs", "middleware",
     "mm-encoder-attn-backend", "mm-encoder-tp-mode", "mm-processor-cache-gb",
     "mm-processor-kwargs", "model", "model-impl", "model-loader-extra-config", "nnodes",
     "node-rank", "num-gpu-blocks-override", "num-lookahead-slots", "num-redundant-experts",
     "num-scheduler-steps", "optimization-level", "otlp-traces-endpoint",
     "override-generation-config", "override-pooler-config", "pipeline-parallel-size",
     "pooler-config", "port", "preemption-mode", "prefill-context-parallel-size",
     "prefix-caching-hash-algo", "profiler-config", "pt-load-map-location", "quantization",
     "ray-workers-use-nsight", "reasoning-parser", "reasoning-parser-plugin", "response-role",
     "return-tokens-as-token-ids", "revision", "root-path", "runner", "safetensors-load-strategy",
     "scheduler-cls", "scheduling-policy", "seed", "served-model-name",
     "show-hidden-metrics-for-version", "skip-mm-profiling", "skip-tokenizer-init",
     "speculative-config", "ssl-ca-certs", "ssl-cert-reqs", "ssl-certfile", "ssl-keyfile",
     "stream-interval", "structured-outputs-config", "swap-space", "task", "tensor-parallel-size",
     "tokenizer", "tokenizer-mode", "tokenizer-revision", "tool-call-parser", "tool-parser-plugin",
     "tool-server", "trust-remote-code", "ubatch-size", "uds", "use-tqdm-on-load",
     "use-v2-block-manager", "uvicorn-log-level", "video-pruning-rate", "weight-transfer-config",
     "worker-cls", "worker-extension-cls", "worker-use-ray"});

constexpr auto kSglang = std::to_array<std::string_view>(
    {"admin-api-key", "allow-auto-truncate", "api-key", "attention-backend",
     "attention-context-parallel-size", "attn-cp-size", "base-gpu-id", "bucket-e2e-request-latency",
     "bucket-time-to-first-token", "chat-template", "chunked-prefill-size",
     "collect-tokens-histogram", "completion-template", "config",
     "constrained-json-whitespace-pattern", "context-length", "cpu-offload-gb", "crash-dump-folder",
     "cuda-graph-bs", "cuda-graph-max-bs", "custom-weight-loader", "data-parallel-size", "dcp-size",
     "decode-attention-backend", "decode-log-interval", "deepep-config", "deepep-mode",
     "delete-ckpt-after-loading", "device", "disable-chunked-prefix-cache", "disable-cuda-graph",
     "disable-cuda-graph-padding", "disable-custom-all-reduce", "disable-fast-image-processor",
     "disable-flashinfer-cutlass-moe-fp4-allgather", "disable-outlines-disk-cache",
     "disable-overlap-schedule", "disable-radix-cache", "disable-shared-experts-fusion",
     "disaggregation-bootstrap-port", "disaggregation-decode-dp", "disaggregation-decode-tp",
     "disaggregation-ib-device", "disaggregation-mode", "disaggregation-prefill-pp",
     "disaggregation-transfer-backend", "dist-init-addr", "dist-timeout", "download-dir", "dp-size",
     "ds-channel-config-path", "dtype", "dynamic-batch-tokenizer", "elastic-ep-backend",
     "enable-cache-report", "enable-cudagraph-gc", "enable-custom-logit-processor",
     "enable-deterministic-inference", "enable-double-sparsity", "enable-dp-attention",
     "enable-dp-lm-head", "enable-eplb", "enable-expert-distribution-metrics",
     "enable-flashinfer-allreduce-fusion", "enable-fp32-lm-head", "enable-hierarchical-cache",
     "enable-lmcache", "enable-lora", "enable-memory-saver", "enable-metrics",
     "enable-metrics-for-all-schedulers", "enable-mixed-chunk", "enable-mscclpp",
     "enable-multimodal", "enable-nan-detection", "enable-nccl-nvls", "enable-p2p-check",
     "enable-pdmux", "enable-piecewise-cuda-graph", "enable-priority-scheduling",
     "enable-profile-cuda-graph", "enable-request-time-stats-logging",
     "enable-return-hidden-states", "enable-single-batch-overlap", "enable-symm-mem",
     "enable-tokenizer-batch-encode", "enable-torch-compile", "enable-torch-symm-mem",
     "enable-trace", "enable-two-batch-overlap", "enable-weights-cpu-backup",
     "ep-dispatch-algorithm", "ep-num-redundant-experts", "ep-size", "eplb-algorithm",
     "eplb-min-rebalancing-utilization-threshold", "eplb-rebalance-layers-per-chunk",
     "eplb-rebalance-num-iterations", "expert-distribution-recorder-buffer-size",
     "expert-distribution-recorder-mode", "expert-parallel-size", "file-storage-path",
     "flashinfer-mla-disable-ragged", "flashinfer-mxfp4-moe-precision", "gpu-id-step",
     "grammar-backend", "grpc-mode", "hicache-io-backend", "hicache-mem-layout", "hicache-ratio",
     "hicache-size", "hicache-storage-backend", "hicache-storage-prefetch-policy",
     "hicache-write-policy", "host", "hybrid-kvcache-ratio", "init-expert-location", "is-embedding",
     "json-model-override-args", "keep-mm-feature-on-device", "kv-cache-dtype", "kv-events-config",
     "load-balance-method", "load-format", "log-level", "log-level-http", "log-requests",
     "log-requests-level", "lora-backend", "lora-eviction-policy", "lora-paths",
     "lora-target-modules", "mamba-full-memory-ratio", "mamba-ssm-dtype", "max-loaded-loras",
     "max-lora-chunk-size", "max-lora-rank", "max-loras-per-batch", "max-mamba-cache-size",
     "max-prefill-tokens", "max-queued-requests", "max-running-requests", "max-total-tokens",
     "mem-fraction-static", "mm-attention-backend", "model", "model-impl",
     "model-loader-extra-config", "model-path", "modelopt-quant", "moe-a2a-backend",
     "moe-dense-tp-size", "moe-dp-size", "moe-runner-backend", "nccl-port", "nnodes", "node-rank",
     "nsa-decode-backend", "nsa-prefill-backend", "num-continuous-decode-steps",
     "num-reserved-decode-tokens", "numa-node", "otlp-traces-endpoint", "page-size",
     "piecewise-cuda-graph-max-tokens", "pipeline-parallel-size", "port", "pp-async-batch-depth",
     "pp-max-micro-batch-size", "pp-size", "preferred-sampling-params", "prefill-attention-backend",
     "prefill-max-requests", "prefill-round-robin-balance",
     "priority-scheduling-preemption-threshold", "quantization", "quantization-param-path",
     "random-seed", "reasoning-parser", "revision", "sampling-backend", "sampling-defaults",
     "schedule-conservativeness", "schedule-low-priority-values-first", "schedule-policy",
     "scheduler-recv-interval", "served-model-name", "show-time-cost", "skip-server-warmup",
     "skip-tokenizer-init", "sleep-on-idle", "speculative-accept-threshold-acc",
     "speculative-accept-threshold-single", "speculative-algorithm", "speculative-attention-mode",
     "speculative-draft-model-path", "speculative-draft-model-revision", "speculative-eagle-topk",
     "speculative-num-draft-tokens", "speculative-num-steps", "speculative-token-map",
     "ssl-certfile", "ssl-keyfile", "stream-interval", "stream-output",
     "stream-response-default-include-usage", "swa-full-tokens-ratio",
     "tbo-token-distribution-threshold", "tensor-parallel-size", "tokenizer-mode", "tokenizer-path",
     "tokenizer-worker-num", "tool-call-parser", "tool-server", "torch-compile-max-bs",
     "torchao-config", "tp-size", "triton-attention-num-kv-splits",
     "triton-attention-reduce-in-fp32", "trust-remote-code", "warmups", "watchdog-timeout",
     "weight-loader-disable-mmap"});
// clang-format on

// Short forms.
constexpr auto kVllmShort = std::to_array<std::string_view>(
    {"tp",  "pp",  "dp",  "ep",  "q",   "r",   "O",   "cc",  "sc",  "ac", "dcp", "pcp",
     "asc", "dpn", "dpr", "dpl", "dpa", "dpp", "dpb", "dph", "dpe", "n",  "h"});
constexpr auto kSglangShort = std::to_array<std::string_view>({"tp", "pp", "dp", "ep", "h"});

using Names = std::span<const std::string_view>;

bool contains(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "compilation-config.level" is a part of an argument, "no-enable-x" its negation.
std::string_view bare(std::string_view flag) {
  flag = flag.substr(0, flag.find('.'));
  if (flag.starts_with("no-")) flag.remove_prefix(3);
  return flag;
}

}  // namespace

Problems unknown_flags(const ConfigValues& config) {
  const bool vllm = config.syntax == ConfigSyntax::vllm;
  const Names known = vllm ? Names(kVllm) : Names(kSglang);
  const Names brief = vllm ? Names(kVllmShort) : Names(kSglangShort);
  const std::vector<std::string> suggested(known.begin(), known.end());
  Problems problems;
  for (const auto& [flag, value] : config.values) {
    const std::string_view name = bare(flag);
    if (contains(brief, name) || contains(known, name)) continue;
    const std::string hint = did_you_mean(name, suggested);
    problems.push_back({config.file, value.place, "--" + flag,
                        std::string("an argument of ") + (vllm ? "vLLM" : "SGLang"),
                        hint.empty() ? "--allow-unknown passes over it" : hint});
  }
  return problems;
}

}  // namespace tessera
