#include "tests/planner/malformed_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "cost_models/calibration.h"
#include "cost_models/documents/csv.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/documents/strict_yaml.h"
#include "executor/config/run_config.h"
#include "planner/engines/read_plan.h"
#include "planner/interop/import.h"
#include "planner/plan/plan_json.h"
#include "planner/request/settings.h"
#include "planner/sweep/sweep_row.h"
#include "simulator/rules/rules.h"
#include "simulator/timeline/metrics.h"
#include "tests/planner/plan/sample_plan.h"

namespace tessera {
namespace {

const Reader kPlan = [](const std::string& text, Problems& problems) {
  parse_plan(text, "input", problems);
};
const Reader kModel = [](const std::string& text, Problems& problems) {
  parse_model_spec(text, "input", problems);
};
const Reader kCluster = [](const std::string& text, Problems& problems) {
  parse_cluster_spec(text, "input", problems);
};
const Reader kWorkload = [](const std::string& text, Problems& problems) {
  parse_workload(text, "input", problems);
};
const Reader kCalibration = [](const std::string& text, Problems& problems) {
  parse_calibration(text, "input", problems);
};
const Reader kRules = [](const std::string& text, Problems& problems) {
  parse_rules(text, "input", problems);
};
const Reader kMetrics = [](const std::string& text, Problems& problems) {
  parse_metrics_line(text, "input", 1, problems);
};
const Reader kRun = [](const std::string& text, Problems& problems) {
  static const Plan plan = sample_plan();
  parse_run_config(text, "input", plan, problems);
};
const Reader kSweep = [](const std::string& text, Problems& problems) {
  if (const auto table = parse_csv(text, "input", problems)) read_sweep_rows(*table, problems);
};
const Reader kSettings = [](const std::string& text, Problems& problems) {
  const std::vector<std::string> words{text};
  parse_settings(words, problems);
};
Reader import_as(const char* file) {
  return [file](const std::string& text, Problems& problems) {
    Problems none;
    import_config(text, file, {.cluster = *read_cluster_spec("h800-64", none)}, problems);
  };
}
const Reader kVerlYaml = import_as("input.yaml"), kOverrides = import_as("input.txt"),
             kScript = import_as("input.sh");

std::string file_text(const std::string& path) {
  Problems none;
  return *read_text_file(std::string(TESSERA_SOURCE_DIR) + "/" + path, 1 << 20, none);
}

// Where a mutation happens: the keys and indices down to a value.
struct Leaf {
  std::string pointer, key;
  std::vector<std::size_t> path;
  Node::Kind kind;
};

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto where = text.find(what);
  if (where != text.npos) text.replace(where, what.size(), with);
  return text;
}

// A key in a JSON pointer.
std::string escaped(std::string key) {
  for (auto at = key.find('/'); at != key.npos; at = key.find('/', at)) key.replace(at, 1, "~1");
  return key;
}

void collect(const Node& node, const std::string& pointer, const std::string& key,
             std::vector<std::size_t>& path, std::vector<Leaf>& leaves) {
  if (!path.empty()) leaves.push_back({pointer, key, path, node.kind});
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const bool map = node.is(Node::Kind::map);
    const std::string name = map ? node.keys[i] : std::to_string(i);
    path.push_back(i);
    collect(node.items[i], pointer + "/" + escaped(name), name, path, leaves);
    path.pop_back();
  }
}

Node& at(Node& root, const std::vector<std::size_t>& path) {
  Node* node = &root;
  for (const std::size_t index : path) node = &node->items[index];
  return *node;
}

// Of a list's element the place is the list, of a list in a list the outer one.
std::string outermost_list(std::string pointer) {
  const auto is_element = [&](std::size_t slash) {
    return std::isdigit(static_cast<unsigned char>(pointer[slash + 1])) != 0;
  };
  for (std::size_t slash = pointer.rfind('/'); is_element(slash); slash = pointer.rfind('/')) {
    pointer.resize(slash);
  }
  return pointer;
}

// Values of a type that the key does not have.
void json_cases(const std::string& name, const Reader& reader, const std::string& base, int stride,
                bool strict_keys, std::vector<Case>& cases) {
  Problems none;
  const auto document = parse_json(base, "base", none);
  ASSERT_TRUE(document.has_value());
  std::vector<Leaf> leaves;
  std::vector<std::size_t> path;
  collect(document->root, "", "", path, leaves);
  const std::int64_t marker = 987654321987;
  for (std::size_t i = 0; i < leaves.size(); i += static_cast<std::size_t>(stride)) {
    const Leaf& leaf = leaves[i];
    if (leaf.kind == Node::Kind::null) continue;
    Node root = document->root;
    Node& value = at(root, leaf.path);
    const bool text = leaf.kind == Node::Kind::string;
    value = text ? node_of(17) : node_of(std::string_view("seventeen"));
    const std::string place = outermost_list(leaf.pointer);
    cases.push_back({name + " " + leaf.pointer + ": a value of another type", &reader,
                     json_text(root), place, ""});
    root = document->root;
    at(root, leaf.path) = node_of(marker);
    const std::string marked = json_text(root);
    static constexpr const char* kNumbers[] = {"9223372036854775808", "NaN", "1e999", "-Infinity"};
    const char* number = kNumbers[(i / static_cast<std::size_t>(stride)) % 4];
    cases.push_back({name + " " + leaf.pointer + " = " + number, &reader,
                     replaced(marked, std::to_string(marker), number), ":", ""});
    if (!std::isalpha(static_cast<unsigned char>(leaf.key[0]))) continue;
    root = document->root;
    std::vector<std::size_t> parent(leaf.path.begin(), leaf.path.end() - 1);
    Node& map = at(root, parent);
    if (!map.is(Node::Kind::map)) continue;
    const std::string once = json_text(document->root);
    const std::string quoted = '"' + leaf.key + '"';
    if (strict_keys && leaf.key.size() > 4 && leaf.pointer.rfind("/models/", 0) != 0) {
      map.keys[leaf.path.back()] = leaf.key + "z";
      cases.push_back({name + " " + leaf.pointer + "z: an unknown key", &reader, json_text(root),
                       leaf.key, "'" + leaf.key + "'"});
    }
    root = document->root;
    Node& again = at(root, parent);
    again.keys.push_back(leaf.key);
    again.items.push_back(again.items[leaf.path.back()]);
    cases.push_back(
        {name + " " + leaf.pointer + ": a key twice", &reader, json_text(root), leaf.key, ""});
  }
}

// Every `key: value` line of a flat YAML file, made wrong.
void yaml_cases(const std::string& name, const Reader& reader, const std::string& base,
                std::vector<Case>& cases) {
  std::size_t begin = 0;
  int line = 0;
  while (begin < base.size()) {
    const std::size_t end = std::min(base.find('\n', begin), base.size());
    ++line;
    const std::string text = base.substr(begin, end - begin);
    const std::size_t colon = text.find(": ");
    const auto start = text.find_first_not_of(' ');
    if (colon != text.npos && text[start] != '#') {
      const std::string key = text.substr(start, colon - start), indent = text.substr(0, start);
      const std::string before = base.substr(0, begin), after = base.substr(end);
      const auto add = [&](const std::string& what, const std::string& with,
                           const std::string& place, const std::string& reason) {
        cases.push_back({name + " line " + std::to_string(line) + " " + key + ": " + what, &reader,
                         before + with + after, place, reason});
      };
      const std::string here = std::to_string(line) + ":";
      add("a list", indent + key + ": [1, [2]]", here, "");
      add("key twice", text + "\n" + text, std::to_string(line + 1) + ":", key);
      add("an alias", indent + key + ": *x", std::to_string(line), "");
      add("an anchor", indent + key + ": &x 1", here, "");
      add("a tag", indent + key + ": !!python/object 1", here, "");
      add("not a number", indent + key + ": .nan", here, "");
      if (key.size() > 4 && key != "version") {
        add("unknown", indent + key + "z: " + text.substr(colon + 2), here, "'" + key + "'");
      }
    }
    begin = end + 1;
  }
}

std::string deep(const std::string& open, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += open;
  return text;
}

void hostile_cases(std::vector<Case>& cases) {
  const int million = 1'000'000;
  for (const Reader* reader : {&kPlan, &kModel, &kCalibration}) {
    cases.push_back({"a million lists", reader, deep("[", million), "", "64"});
    cases.push_back({"a million maps", reader, deep("{\"a\":", million), "", "64"});
    cases.push_back({"nothing", reader, "", "", ""});
    cases.push_back({"a byte-order mark", reader, "\xef\xbb\xbf{}", "", ""});
    cases.push_back({"no UTF-8", reader, "{\"a\": \"\xff\xfe\"}", "", "UTF-8"});
    cases.push_back({"an overlong NUL", reader, "{\"a\": \"\xc0\x80\"}", "", "UTF-8"});
    cases.push_back({"a NUL", reader, std::string("{\"a\": 1\0}", 9), "", ""});
    cases.push_back({"text behind", reader, "{} {}", "1:", ""});
    cases.push_back({"a comment", reader, "{} // no", "1:", ""});
    cases.push_back({"a list", reader, "[]", "", ""});
    cases.push_back(
        {"a huge string", reader, "{\"a\": \"" + std::string(17 << 20, 'x') + "\"}", "", ""});
    cases.push_back({"half a surrogate", reader, "{\"a\": \"\\ud800\"}", "1:", ""});
  }
  for (const Reader* reader : {&kCluster, &kWorkload, &kVerlYaml}) {
    cases.push_back({"a million lists", reader, "a: " + deep("[", million), "", ""});
    cases.push_back({"a million blocks", reader, deep("- ", 300'000) + "1", "", ""});
    std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 30; ++i) {
      const std::string last = "*a" + std::to_string(i - 1);
      bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + "," + last +
              "," + last + "," + last + "]\n";
    }
    cases.push_back({"an alias bomb", reader, bomb, "1:", "anchor"});
    cases.push_back({"a cycle of aliases", reader, "a: &a [*a]\n", "1:", "anchor"});
    cases.push_back({"two documents", reader, "a: 1\n---\nb: 2\n", "", "document"});
    cases.push_back({"a huge file", reader, "a: " + std::string(2 << 20, 'x'), "", ""});
    cases.push_back({"a long unknown key", reader, std::string(1000, 'k') + ": 1\n", "", ""});
    cases.push_back({"many unknown keys", reader,
                     [] {
                       std::string text;
                       for (int i = 0; i < 3000; ++i) text += "key" + std::to_string(i) + ": 1\n";
                       return text;
                     }(),
                     "", ""});
    cases.push_back({"a tab", reader, "a:\n\tb: 1\n", "2:", ""});
    cases.push_back({"no UTF-8", reader, "a: \xff\n", "", "UTF-8"});
    cases.push_back({"a scalar", reader, "7\n", "", ""});
    cases.push_back({"a key that is a map", reader, "{a: 1}: 2\n", "1:", ""});
  }
}

void import_cases(std::vector<Case>& cases) {
  const std::string model = "actor_rollout_ref.model.path=qwen2.5-7b\n";
  const auto add = [&](const std::string& name, const std::string& lines, const std::string& place,
                       const std::string& reason) {
    cases.push_back({"override " + name, &kOverrides, model + lines, place, reason});
  };
  for (const char* key :
       {"trainer.nnodes", "trainer.n_gpus_per_node", "data.train_batch_size",
        "data.max_prompt_length", "data.max_response_length", "actor_rollout_ref.rollout.n",
        "actor_rollout_ref.rollout.tensor_model_parallel_size",
        "actor_rollout_ref.rollout.max_num_seqs", "actor_rollout_ref.actor.ppo_mini_batch_size",
        "actor_rollout_ref.actor.ppo_epochs",
        "actor_rollout_ref.actor.ulysses_sequence_parallel_size"}) {
    for (const char* value : {"0", "-1", "1.5", "eight", "[8]", "9223372036854775808", "nan"}) {
      add(std::string(key) + "=" + value, std::string(key) + "=" + value + "\n", "2", key);
    }
    add(std::string(key) + " misspelt", std::string(key) + "z=1\n", "2", key);
  }
  for (const char* key : {"actor_rollout_ref.actor.use_dynamic_bsz", "algorithm.use_kl_in_reward",
                          "critic.enable", "actor_rollout_ref.actor.use_kl_loss"}) {
    for (const char* value : {"1", "maybe", "[true]"}) {
      add(std::string(key) + "=" + value, std::string(key) + "=" + value + "\n", "2", key);
    }
  }
  add("TP 3 of 8", "actor_rollout_ref.rollout.tensor_model_parallel_size=3\n", "2", "divide");
  add("a rollout of 2^20 GPUs", "actor_rollout_ref.rollout.tensor_model_parallel_size=1048576\n",
      "2", "divide");
  add("Ulysses 5 of 8", "actor_rollout_ref.actor.ulysses_sequence_parallel_size=5\n", "2",
      "divisor");
  add("shards of 3", "actor_rollout_ref.actor.fsdp_config.fsdp_size=3\n", "2", "divisor");
  add("mini-batches that do not divide", "actor_rollout_ref.actor.ppo_mini_batch_size=1000\n", "2",
      "divisor");
  add("a million GPUs", "trainer.nnodes=1048576\ntrainer.n_gpus_per_node=1024\n", "2", "1048576");
  add("no value", "trainer.nnodes\n", "2", "key=value");
  add("no model", "actor_rollout_ref.model.path=no/such/model\n", "2", "--model");
  add("two trainers", "critic.enable=true\nalgorithm.adv_estimator=grpo\n", "2", "critic");
  add("an asynchronous trainer", "trainer.v1.trainer_mode=colocate_async\n", "2", "sync");
  const std::string start =
      "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=qwen2.5-7b ";
  const auto script = [&](const std::string& name, const std::string& text,
                          const std::string& place, const std::string& reason) {
    cases.push_back({"script " + name, &kScript, text, place, reason});
  };
  script("quote", start + "'a=b\n", "1", "quote");
  script("substitution", start + "trainer.nnodes=$(hostname\n", "", "$(");
  script("unknown value", start + "trainer.nnodes=$(hostname)\n", "1", "run");
  script("unset", start + "\\\n trainer.nnodes=$NODES\n", "2", "$NODES");
  script("nested expansions", start + "trainer.nnodes=" + deep("${A:-", 100000), "", "deep");
  script("nested arithmetic", start + "trainer.nnodes=$((" + deep("(", 100000) + "\n", "", "$((");
  script("division by zero", start + "trainer.nnodes=$((1/0))\n", "1", "$((1/0))");
  script("no trainer", "echo hello\n", "", "main_ppo");
  script("an open array", "A=(x\n" + start + "\n", "", "array");
  const std::string megatron =
      "torchrun pretrain.py --num-layers 28 --tensor-model-parallel-size 4 ";
  script("no model for Megatron", megatron, "", "--model");
  script("a misspelt argument", megatron + "--pipline-model-parallel-size 2\n", "1",
         "pipeline-model-parallel-size");
}

// Every argument that determines a layout or a batch, with values that no number is.
void argument_cases(std::vector<Case>& cases) {
  struct Tool {
    std::string name, start;
    std::vector<const char*> flags;
  };
  const std::vector<Tool> tools{
      {"Megatron-LM",
       "torchrun pretrain.py --swiglu --num-layers 28 --hidden-size 3584 --num-attention-heads 28 "
       "--vocab-size 152064 --tensor-model-parallel-size 1 --micro-batch-size 1 ",
       {"pipeline-model-parallel-size", "context-parallel-size", "expert-model-parallel-size",
        "global-batch-size", "seq-length", "nnodes", "num-layers", "hidden-size"}},
      {"vLLM",
       "vllm serve qwen2.5-7b ",
       {"tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "max-num-seqs",
        "max-num-batched-tokens", "max-model-len"}},
      {"SGLang",
       "python3 -m sglang.launch_server --model-path qwen2.5-7b ",
       {"tp-size", "pp-size", "dp-size", "max-running-requests", "max-prefill-tokens",
        "context-length", "ep-size"}}};
  for (const Tool& tool : tools) {
    for (const char* flag : tool.flags) {
      for (const char* value : {"0", "-3", "2.5", "eight", "9223372036854775808", "$(nproc)"}) {
        const std::string argument = "--" + std::string(flag) + " " + value;
        cases.push_back(
            {tool.name + " " + argument, &kScript, tool.start + argument + "\n", "1", flag});
      }
    }
  }
  cases.push_back({"no served model", &kScript, "vllm serve --tensor-parallel-size 2\n", "", ""});
  cases.push_back(
      {"verl's SFT", &kScript, "torchrun -m verl.trainer.sft_trainer a.b=1\n", "1", "main_ppo"});
}

void sweep_cases(std::vector<Case>& cases) {
  for (const char* row : {"qwen2.5-7b,h800-64,train,eight", "qwen2.5-7b,h800-64,tran,8",
                          "qwen2.5-7b,h800-64,train,-1", "qwen2.5-7b,h800-64,train,1e400",
                          "qwen2.5-7b,h800-64,train", "\"qwen"}) {
    cases.push_back({std::string("sweep ") + row, &kSweep,
                     std::string("model,cluster,kind,gpus\n") + row + "\n", "", ""});
  }
  for (const char* column : {"gpus", "tp", "pp", "dp", "cp", "ep", "vpp", "micro_batch",
                             "global_batch", "prompt_tokens", "response_tokens"}) {
    for (const char* value : {"eight", "-1", "nan", "9223372036854775808"}) {
      cases.push_back({std::string("sweep ") + column + " = " + value, &kSweep,
                       std::string("model,cluster,kind,") + column + "\nqwen2.5-7b,h800-64,train," +
                           value + "\n",
                       "2", column});
    }
  }
  cases.push_back(
      {"sweep without a model", &kSweep, "modl,cluster,kind\na,b,train\n", "1", "'modl'"});
}

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  json_cases("plan", kPlan, to_json(sample_plan()), 9, true, cases);
  json_cases("config.json", kModel, file_text("configs/models/qwen2.5-7b/config.json"), 3, false,
             cases);
  yaml_cases("cluster", kCluster, file_text("configs/clusters/h800-64.yaml"), cases);
  yaml_cases("workload", kWorkload, file_text("configs/workloads/grpo-7b-1k.yaml"), cases);
  hostile_cases(cases);
  import_cases(cases);
  argument_cases(cases);
  sweep_cases(cases);
  json_cases("calibration", kCalibration, file_text("configs/calibrations/h800.json"), 61, true,
             cases);
  json_cases("rules", kRules, file_text("configs/rules/default.json"), 31, true, cases);
  const std::string metrics = file_text("tests/gui/data/run/metrics.jsonl");
  json_cases("metrics", kMetrics, metrics.substr(0, metrics.find('\n')), 1, false, cases);
  yaml_cases("run", kRun, file_text("configs/runs/grpo-digits.yaml"), cases);
  for (const char* word : {"actor.tp", "actor.tp=x", "actr.tp=2", "actor.tpp=2", "actor.tp=-2",
                           "actor.tp=9223372036854775808", "=", "rollout.zero=1"}) {
    cases.push_back({std::string("--fix ") + word, &kSettings, word, "", ""});
  }
  return cases;
}

}  // namespace tessera
