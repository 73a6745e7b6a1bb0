#include <algorithm>
#include <charconv>
#include <concepts>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/spec_document.h"
#include "planner/plan/plan_fields.h"
#include "planner/plan/plan_json.h"

namespace tessera {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr Whole kRank{.least = 0, .most = (1 << 24) - 1};

bool key_from(const std::string& name, std::string& key) {
  key = name;
  return !name.empty();
}
bool key_from(const std::string& name, Phase& phase) {
  const auto found = phase_from(name);
  phase = found.value_or(phase);
  return found.has_value();
}

class PlanReader {
 public:
  PlanReader(ObjectReader& reader, Problems& problems) : reader_(reader), problems_(problems) {}

  template <class Unit, class Number, class... Range>
  void field(std::string_view key, Quantity<Unit, Number>& value, const Range&... range) {
    reader_.required(key, value.value, range...);
  }
  template <class T, class... Range>
  void field(std::string_view key, T& value, const Range&... range) {
    if constexpr (std::same_as<T, std::string> && sizeof...(Range) == 0) {
      reader_.required(key, value, true);
    } else {
      reader_.required(key, value, range...);
    }
  }
  template <class Unit, class Number, class... Range>
  void stated(std::string_view key, Quantity<Unit, Number>& value, const Range&... range) {
    reader_.optional(key, value.value, range...);
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
  void stated_object(std::string_view key, T& value) {
    if (reader_.has(key)) object(key, value);
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
      if constexpr (std::same_as<T, Seconds>) {
        inner->required(name, values[typed].value, kFromZero);
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
  void calibrations(std::string_view key, std::vector<Calibration>& values);

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
    PlanReader reader(inner, problems_);
    fields(reader, value);
    inner.refuse_unknown_keys();
  }

  ObjectReader& reader_;
  Problems& problems_;
};

void PlanReader::phases(std::string_view key, std::vector<Phase>& values) {
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

void PlanReader::ranks(RolePlan& role) {
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

void PlanReader::stages(std::string_view key, std::vector<LayerRange>& values) {
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

// Each as a file of its own.
void PlanReader::calibrations(std::string_view key, std::vector<Calibration>& values) {
  if (!reader_.has(key)) return;
  const Node* const list = reader_.find(key);
  if (!list->is(Node::Kind::list) || list->items.empty()) {
    reader_.refuse(key, "a list of calibrations");
    return;
  }
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const std::string file = "calibration " + std::to_string(i + 1) + " of the plan";
    if (auto value = parse_calibration(json_text(list->items[i]), file, problems_)) {
      values.push_back(*std::move(value));
    }
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
  const bool numeric =
      version != nullptr && (version->is(Node::Kind::integer) || version->is(Node::Kind::number));
  if (numeric && version->number == kPlanVersion) return true;  // "1.0" is the same integer
  reader.refuse("tessera_plan",
                version == nullptr ? "no 'tessera_plan'" : "plan version " + describe(*version),
                "plan version " + std::to_string(kPlanVersion),
                version == nullptr ? "this is not a plan of tessera" : "");
  return false;
}

/// `before`: problems that there were before the document was parsed.
std::optional<Plan> read(const Document& document, std::size_t before, EngineRules engines,
                         Problems& problems) {
  const std::size_t told = problems.size();  // of single values, where they stand
  ObjectReader root(document, problems);
  if (problems.size() != told || !known_version(root)) return std::nullopt;
  Plan plan;
  PlanReader reader(root, problems);
  before_dataflow(reader, plan);
  plan.workload.dataflow = dataflow_from(root, "dataflow");
  after_dataflow(reader, plan);
  root.refuse_unknown_keys();
  if (problems.size() != before) return std::nullopt;
  validate(plan, document.file, engines, problems);
  for (std::size_t i = told; i < problems.size(); ++i) {
    problems[i].place = located(document.root, problems[i].place);
  }
  if (problems.size() != before) return std::nullopt;
  return plan;
}

}  // namespace

std::optional<Plan> parse_plan(std::string_view text, const std::string& file, EngineRules engines,
                               Problems& problems) {
  const std::size_t before = problems.size();
  const auto document = parse_json_as_far(text, file, problems, {.bytes = kMostBytes});
  return document ? read(*document, before, engines, problems) : std::nullopt;
}

std::optional<Plan> plan_from(const Document& document, EngineRules engines, Problems& problems) {
  return read(document, problems.size(), engines, problems);
}

std::optional<Plan> read_plan(const std::filesystem::path& file, EngineRules engines,
                              Problems& problems) {
  const auto text = read_text_file(file, kMostBytes, problems);
  return text ? parse_plan(*text, file.string(), engines, problems) : std::nullopt;
}

}  // namespace tessera
