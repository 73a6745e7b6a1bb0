#include "planner/plan/plan_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <utility>

#include "cost_models/spec/object_reader.h"
#include "cost_models/spec/spec_document.h"
#include "cost_models/spec/strict_json.h"

namespace tessera {
namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr Whole kDegree{.least = 1, .most = 1 << 20};
constexpr Whole kRank{.least = 0, .most = (1 << 24) - 1};
constexpr std::array kFloatTypes{DType::fp32, DType::bf16, DType::fp16};
constexpr std::array kRecomputes{Recompute::none, Recompute::selective, Recompute::full};
constexpr std::array kModes{ReshardMode::minimal, ReshardMode::full};
constexpr std::array kTransports{ReshardTransport::automatic, ReshardTransport::copy_engine,
                                 ReshardTransport::window,    ReshardTransport::all_gather,
                                 ReshardTransport::send_recv, ReshardTransport::host};
constexpr std::array kOrders{RankOrder::contiguous, RankOrder::megatron, RankOrder::strided};

std::string key_name(const std::string& key) { return key; }
std::string key_name(Phase phase) { return std::string(name_of(phase)); }
bool key_from(const std::string& name, std::string& key) {
  key = name;
  return !name.empty();
}
bool key_from(const std::string& name, Phase& phase) {
  const auto found = phase_from(name);
  phase = found.value_or(phase);
  return found.has_value();
}

// fields(visitor, value) names every member of a struct once, with its range; Writer and Reader
// below are the two visitors, so that what is written is what is read.

class Writer {
 public:
  Node node = map_node();

  template <class T, class... Range>
  void field(std::string_view key, T& value, const Range&...) {
    if constexpr (std::is_enum_v<T>) {
      add(node, key, node_of(name_of(value)));
    } else if constexpr (std::same_as<T, std::string>) {
      add(node, key, node_of(std::string_view(value)));
    } else {
      add(node, key, node_of(value));
    }
  }
  /// A member that is left out where it has its type's default.
  template <class T, class... Range>
  void stated(std::string_view key, T& value, const Range&... range) {
    if (value != T{}) field(key, value, range...);
  }
  template <class T>
  void object(std::string_view key, T& value) {
    add(node, key, written(value));
  }
  template <class T>
  void list(std::string_view key, std::vector<T>& values) {
    Node items = list_node();
    for (T& value : values) items.items.push_back(written(value));
    add(node, key, std::move(items));
  }
  void strings(std::string_view key, std::vector<std::string>& values) {
    Node items = list_node();
    for (const std::string& value : values) items.items.push_back(node_of(std::string_view(value)));
    add(node, key, std::move(items));
  }
  void stated_strings(std::string_view key, std::vector<std::string>& values) {
    if (!values.empty()) strings(key, values);
  }
  template <class Key, class T>
  void map(std::string_view key, std::map<Key, T>& values) {
    Node members = map_node();
    for (auto& [name, value] : values) add(members, key_name(name), written(value));
    add(node, key, std::move(members));
  }
  void phases(std::string_view key, std::vector<Phase>& values);
  void ranks(RolePlan& role);
  void stages(std::string_view key, std::vector<LayerRange>& values);

 private:
  static Node written(double value) { return node_of(value); }
  static Node written(ModelSpec& value) { return to_node(value); }
  static Node written(ClusterSpec& value) { return to_node(value); }
  static Node written(Workload& value) { return to_node(value); }
  template <class T>
  static Node written(T& value) {
    Writer inner;
    fields(inner, value);
    return std::move(inner.node);
  }
};

class Reader {
 public:
  Reader(ObjectReader& reader, Problems& problems) : reader_(reader), problems_(problems) {}

  template <class T, class... Range>
  void field(std::string_view key, T& value, const Range&... range) {
    if constexpr (std::same_as<T, std::string> && sizeof...(Range) == 0) {
      reader_.required(key, value, true);
    } else {
      reader_.required(key, value, range...);
    }
  }
  template <class T, class... Range>
  void stated(std::string_view key, T& value, const Range&... range) {
    reader_.optional(key, value, range...);
  }
  template <class T>
  void object(std::string_view key, T& value) {
    if (auto inner = reader_.object(key)) read(*inner, value);
  }
  template <class T>
  void list(std::string_view key, std::vector<T>& values) {
    for (ObjectReader& inner : reader_.objects(key)) read(inner, values.emplace_back());
  }
  void strings(std::string_view key, std::vector<std::string>& values) {
    reader_.list(key, values);
  }
  void stated_strings(std::string_view key, std::vector<std::string>& values) {
    if (reader_.has(key)) strings(key, values);
  }
  template <class Key, class T>
  void map(std::string_view key, std::map<Key, T>& values) {
    auto inner = reader_.object(key);
    if (!inner) return;
    const std::vector<std::string> names = inner->keys();
    for (const std::string& name : names) {
      Key typed{};
      if (!key_from(name, typed)) continue;  // reported as unknown below
      if constexpr (std::same_as<T, double>) {
        inner->required(name, values[typed], kFromZero);
      } else if (auto member = inner->object(name)) {
        read(*member, values[typed]);
      }
    }
    if constexpr (std::same_as<Key, Phase>) {
      for (const Phase phase : kEveryPhase) inner->find(name_of(phase));
    }
    inner->refuse_unknown_keys();
  }
  void phases(std::string_view key, std::vector<Phase>& values);
  void ranks(RolePlan& role);
  void stages(std::string_view key, std::vector<LayerRange>& values);

 private:
  void read(ObjectReader& inner, ModelSpec& value) { value = model_from(inner); }
  void read(ObjectReader& inner, ClusterSpec& value) {
    value = cluster_from(inner, Defaults::refused);
  }
  void read(ObjectReader& inner, Workload& value) {
    value = workload_from(inner, Defaults::refused);
  }
  template <class T>
  void read(ObjectReader& inner, T& value) {
    Reader reader(inner, problems_);
    fields(reader, value);
    inner.refuse_unknown_keys();
  }

  ObjectReader& reader_;
  Problems& problems_;
};

template <class V>
void fields(V& v, ModelSource& source) {
  v.object("spec", source.spec);
  v.field("path", source.path);
  v.field("config_sha256", source.config_sha256);
}

template <class V>
void fields(V& v, ParallelLayout& layout) {
  v.field("tp", layout.tp, kDegree);
  v.field("cp", layout.cp, kDegree);
  v.field("pp", layout.pp, kDegree);
  v.field("vpp", layout.vpp, kDegree);
  v.field("dp_replicate", layout.dp_replicate, kDegree);
  v.field("dp_shard", layout.dp_shard, kDegree);
  v.field("ep", layout.ep, kDegree);
  v.field("etp", layout.etp, kDegree);
  v.field("zero", layout.zero, Whole{.least = 0, .most = 3});
  v.field("sequence_parallel", layout.sequence_parallel);
  v.stated("ulysses", layout.ulysses);
  v.stages("stages", layout.stages);
}

template <class V>
void fields(V& v, RoleDTypes& types) {
  v.field("param", types.param, kFloatTypes);
  v.field("grad", types.grad, kFloatTypes);
  v.field("master", types.master, kFloatTypes);
  v.field("kv", types.kv, kFloatTypes);
  v.field("wire", types.wire, kFloatTypes);
}

struct TokensPerCall {
  Batching& batching;
};

template <class V>
void fields(V& v, TokensPerCall& tokens) {
  v.field("update", tokens.batching.update_tokens, kNotNegative);
  v.field("log_prob", tokens.batching.log_prob_tokens, kNotNegative);
  v.field("values", tokens.batching.values_tokens, kNotNegative);
  v.field("reward", tokens.batching.reward_tokens, kNotNegative);
  v.field("prefill", tokens.batching.prefill_tokens, kNotNegative);
}

template <class V>
void fields(V& v, Batching& batching) {
  TokensPerCall tokens{batching};
  v.field("mini_batch", batching.mini_batch, kNotNegative);
  v.object("tokens_per_call", tokens);
  v.field("max_sequences", batching.max_sequences, kNotNegative);
}

template <class V>
void fields(V& v, Offload& offload) {
  v.field("parameters", offload.parameters);
  v.field("gradients", offload.gradients);
  v.field("optimizer", offload.optimizer);
}

template <class V>
void fields(V& v, MemoryUse& use) {
  v.field("weights", use.weights, kNotNegative);
  v.field("gradients", use.gradients, kNotNegative);
  v.field("master_weights", use.master_weights, kNotNegative);
  v.field("optimizer", use.optimizer, kNotNegative);
  v.field("activations", use.activations, kNotNegative);
  v.field("logits", use.logits, kNotNegative);
  v.field("kv_cache", use.kv_cache, kNotNegative);
  v.field("communication", use.communication, kNotNegative);
  v.field("reshard", use.reshard, kNotNegative);
  v.field("workspace", use.workspace, kNotNegative);
  v.field("reserve", use.reserve, kNotNegative);
}

template <class V>
void fields(V& v, RolePlan& role) {
  v.field("role", role.role, kEveryRole);
  v.field("model", role.model);
  v.ranks(role);
  v.object("layout", role.layout);
  v.object("dtypes", role.dtypes);
  v.object("batching", role.batching);
  v.field("recompute", role.recompute, kRecomputes);
  v.object("offload", role.offload);
  v.map("memory", role.memory);
}

template <class V>
void fields(V& v, ScheduledCall& call) {
  v.field("call", call.phase, kEveryPhase);
  v.field("role", call.role, kEveryRole);
  v.phases("after", call.after);
}

template <class V>
void fields(V& v, PlannedReshard& pair) {
  v.field("from", pair.from, kEveryRole);
  v.field("to", pair.to, kEveryRole);
  v.field("mode", pair.mode, kModes);
  v.field("transport", pair.transport, kTransports);
  v.field("bucket_bytes", pair.bucket_bytes, kNotNegative);
  v.field("keep", pair.keep);
  v.field("digest", pair.digest);
  v.field("bytes_received", pair.bytes_received, kNotNegative);
  v.field("lower_bound_bytes", pair.lower_bound_bytes, kNotNegative);
  v.field("total_received_bytes", pair.total_received_bytes, kNotNegative);
  v.field("peak_bytes", pair.peak_bytes, kNotNegative);
}

template <class V>
void fields(V& v, EnvironmentVariable& variable) {
  v.field("name", variable.name, false);  // not empty
  v.field("value", variable.value);
  v.field("reason", variable.reason);
}

template <class V>
void fields(V& v, Prediction& prediction) {
  v.field("step_s", prediction.step_s, kFromZero);
  v.map("phases_s", prediction.phases_s);
  v.field("exposed_comm_s", prediction.exposed_comm_s, kFromZero);
  v.field("tokens_per_s_per_gpu", prediction.tokens_per_s_per_gpu, kFromZero);
  v.field("mfu", prediction.mfu, kFromZero);
  v.field("peak_bytes", prediction.peak_bytes, kNotNegative);
  v.field("step_error_s", prediction.step_error_s, kFromZero);
  v.strings("measured_constants", prediction.measured_constants);
  v.strings("assumed_constants", prediction.assumed_constants);
}

template <class V>
void fields(V& v, RunnerUp& runner_up) {
  v.field("placement", runner_up.placement);
  v.field("description", runner_up.description);
  v.field("step_s", runner_up.step_s, kFromZero);
  v.stated("gpus", runner_up.gpus, Whole{.least = 1, .most = 1 << 24});
  v.stated_strings("settings", runner_up.settings);
}

template <class V>
void fields(V& v, Certificate& certificate) {
  v.field("objective", certificate.objective);
  v.field("value", certificate.value);
  v.field("lower_bound", certificate.lower_bound);
  v.field("gap", certificate.gap);
  v.field("evaluated", certificate.evaluated, kNotNegative);
  v.field("pruned", certificate.pruned, kNotNegative);
  v.list("runner_up", certificate.runner_up);
  v.field("margin", certificate.margin);
  v.stated("margin_deviations", certificate.margin_deviations, kFromZero);
}

template <class V>
void fields(V& v, Provenance& provenance) {
  v.field("tessera_version", provenance.tessera_version);
  v.field("calibration", provenance.calibration);
  v.field("created", provenance.created);
}

/// The whole plan but for its version and its dataflow, which the two sides treat themselves.
template <class V>
void before_dataflow(V& v, Plan& plan) {
  v.map("models", plan.models);
  v.field("engine", plan.engine, false);
  v.object("cluster", plan.cluster);
  v.object("workload", plan.workload);
}

template <class V>
void after_dataflow(V& v, Plan& plan) {
  v.list("schedule", plan.schedule);
  v.list("roles", plan.roles);
  v.list("reshard", plan.reshard);
  v.list("environment", plan.environment);
  v.object("prediction", plan.prediction);
  v.object("certificate", plan.certificate);
  v.object("provenance", plan.provenance);
}

void Writer::phases(std::string_view key, std::vector<Phase>& values) {
  Node items = list_node();
  for (const Phase phase : values) items.items.push_back(node_of(name_of(phase)));
  add(node, key, std::move(items));
}

void Reader::phases(std::string_view key, std::vector<Phase>& values) {
  std::vector<std::string> known, names;
  for (const Phase phase : kEveryPhase) known.emplace_back(name_of(phase));
  reader_.list(key, names);
  for (const std::string& name : names) {
    if (const auto phase = phase_from(name)) {
      values.push_back(*phase);
    } else {
      reader_.refuse(key, '"' + name + '"', "phases", did_you_mean(name, known));
    }
  }
}

Node rank_list(const std::vector<int>& ranks) {
  Node items = list_node();
  for (const int rank : ranks) items.items.push_back(node_of(rank));
  return items;
}

void Writer::ranks(RolePlan& role) {
  std::vector<int> ascending = role.ranks;
  const bool list = role.rank_order == RankOrder::list;
  if (list) std::sort(ascending.begin(), ascending.end());
  add(node, "ranks", rank_list(ascending));
  add(node, "rank_map", list ? rank_list(role.ranks) : node_of(name_of(role.rank_order)));
}

void Reader::ranks(RolePlan& role) {
  std::vector<std::int64_t> ranks;
  reader_.list("ranks", ranks, kRank);
  role.ranks.assign(ranks.begin(), ranks.end());
  const Node* const map = reader_.find("rank_map");
  if (map == nullptr || !map->is(Node::Kind::list)) {
    reader_.required("rank_map", role.rank_order, kOrders);
    return;
  }
  std::vector<std::int64_t> order;
  reader_.list("rank_map", order, kRank);
  if (!std::is_permutation(order.begin(), order.end(), ranks.begin(), ranks.end())) {
    reader_.refuse("rank_map", "the role's ranks in another order");
  }
  role.rank_order = RankOrder::list;
  role.ranks.assign(order.begin(), order.end());
}

void Writer::stages(std::string_view key, std::vector<LayerRange>& values) {
  Node items = list_node();
  for (const LayerRange& range : values) {
    Node pair = list_node();
    pair.items = {node_of(range.first), node_of(range.last)};
    items.items.push_back(std::move(pair));
  }
  add(node, key, std::move(items));
}

void Reader::stages(std::string_view key, std::vector<LayerRange>& values) {
  const Node* const list = reader_.find(key);
  const auto pair = [](const Node& item) {
    return item.is(Node::Kind::list) && item.items.size() == 2 &&
           item.items[0].is(Node::Kind::integer) && item.items[1].is(Node::Kind::integer);
  };
  if (list == nullptr || !list->is(Node::Kind::list) ||
      !std::all_of(list->items.begin(), list->items.end(), pair)) {
    reader_.refuse(key, "a list of [first, last) pairs of layers");
    return;
  }
  for (const Node& item : list->items) {
    values.push_back({item.items[0].integer, item.items[1].integer});
  }
}

/// Line:column in front of a pointer into the document, of the nearest value that exists.
std::string located(const Node& root, const std::string& pointer) {
  const Node* node = &root;
  for (std::size_t begin = 1; begin <= pointer.size() && !pointer.empty();) {
    const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
    const std::string step = pointer.substr(begin, end - begin);
    const Node* next = node->is(Node::Kind::map) ? node->find(step) : nullptr;
    std::size_t index = 0;
    if (node->is(Node::Kind::list) &&
        std::from_chars(step.data(), step.data() + step.size(), index).ec == std::errc{} &&
        index < node->items.size()) {
      next = &node->items[index];
    }
    if (next == nullptr) break;
    node = next;
    begin = end + 1;
  }
  return std::to_string(node->line) + ":" + std::to_string(node->column) + " (" + pointer + ")";
}

bool known_version(ObjectReader& reader) {
  const Node* const version = reader.find("tessera_plan");
  if (version != nullptr && version->is(Node::Kind::integer) && version->integer == kPlanVersion) {
    return true;
  }
  reader.refuse("tessera_plan",
                version == nullptr ? "no 'tessera_plan'" : "plan version " + describe(*version),
                "plan version " + std::to_string(kPlanVersion),
                version == nullptr ? "this is not a plan of tessera" : "");
  return false;
}

}  // namespace

std::string to_json(const Plan& plan) {
  Plan copy = plan;  // the visitors take members they could change
  Writer writer;
  add(writer.node, "tessera_plan", node_of(kPlanVersion));
  before_dataflow(writer, copy);
  add(writer.node, "dataflow", to_node(plan.workload.dataflow));
  after_dataflow(writer, copy);
  return json_text(writer.node);
}

std::optional<Plan> parse_plan(std::string_view text, const std::string& file, Problems& problems) {
  const std::size_t before = problems.size();
  const auto document = parse_json(text, file, problems, {.bytes = kMostBytes});
  if (!document) return std::nullopt;
  ObjectReader root(*document, problems);
  if (problems.size() != before || !known_version(root)) return std::nullopt;
  Plan plan;
  Reader reader(root, problems);
  before_dataflow(reader, plan);
  plan.workload.dataflow = dataflow_from(root, "dataflow");
  after_dataflow(reader, plan);
  root.refuse_unknown_keys();
  if (problems.size() != before) return std::nullopt;
  validate(plan, file, problems);
  for (std::size_t i = before; i < problems.size(); ++i) {
    problems[i].place = located(document->root, problems[i].place);
  }
  if (problems.size() != before) return std::nullopt;
  return plan;
}

std::optional<Plan> read_plan(const std::filesystem::path& file, Problems& problems) {
  const auto text = read_text_file(file, kMostBytes, problems);
  return text ? parse_plan(*text, file.string(), problems) : std::nullopt;
}

void write_plan(const Plan& plan, const std::filesystem::path& file) {
  write_text_file(file, to_json(plan));
}

}  // namespace tessera
