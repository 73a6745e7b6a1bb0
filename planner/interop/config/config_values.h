// The keys and values of another tool's configuration, wherever they were written: a YAML tree, a
// list of overrides, the command line inside a shell script, or arguments of Megatron-LM, vLLM or
// SGLang.
//
// Plain values; each remembers its place. Reading never runs anything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/documents/document.h"
#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/enum_names.h"

namespace tessera {

struct ConfigValue {
  Node value;
  std::string place;    // "line" or "line:column"
  std::string unknown;  // "$(nproc)": only a run would tell the value; empty = known
  bool added = false;   // Hydra's "+": need not be a key that the tool lists
};

enum class ConfigSyntax { verl, megatron, vllm, sglang };

/// Of verl: trainer.main_ppo, or the experimental recipes with GPUs of their own for the rollout.
enum class VerlTrainer { main_ppo, one_step_off, fully_async };

/// Of verl: whose training engine runs its roles (model_engine, actor.strategy).
enum class VerlEngine : std::uint8_t { fsdp, megatron, veomni, torchtitan };
inline constexpr auto kVerlEngines =
    enum_names<VerlEngine>({{VerlEngine::fsdp, "fsdp"},
                            {VerlEngine::megatron, "megatron"},
                            {VerlEngine::veomni, "veomni"},
                            {VerlEngine::torchtitan, "torchtitan"}});

class ConfigValues {
 public:
  std::string file;
  ConfigSyntax syntax = ConfigSyntax::verl;
  VerlTrainer trainer = VerlTrainer::main_ppo;
  VerlEngine engine = VerlEngine::fsdp;
  std::string other_engine;          // of verl: mindspeed, automodel ...; empty = `engine`
  std::string engine_place;          // where that was said
  bool from_yaml = false;            // where keys may be added without a "+"
  bool complete = false;             // a flattened file, which states the defaults too
  std::vector<std::string> assumed;  // by a shell script's reader, sentences
  std::size_t refused = 0;           // values that the parser has told as Problems and that stay
  /// By dotted key; of Megatron and servers by flag without "--", a served model as "model".
  std::map<std::string, ConfigValue> values;

  /// Takes a value of verl's model_engine or actor.strategy.
  void take_engine(const std::string& name, const std::string& place);
  bool has(std::string_view key) const { return values.contains(std::string(key)); }
  /// Value of a key with interpolations followed; nullptr when absent, null or a reference to
  /// something absent.
  const Node* find(const std::string& key) const;

  /// Typed values; `otherwise` where absent. Wrong types, ranges and unknowable values are
  /// Problems.
  std::int64_t integer(const std::string& key, std::int64_t otherwise, Problems& problems,
                       Whole range = kPositive) const;
  bool boolean(const std::string& key, bool otherwise, Problems& problems) const;
  double number(const std::string& key, double otherwise, Problems& problems) const;
  std::string text(const std::string& key, std::string otherwise, Problems& problems) const;

 private:
  const ConfigValue* known(const std::string& key, Problems& problems, Node& resolved) const;
};

/// The scalar that an unquoted or quoted word of an override stands for, as Hydra reads it.
Node override_value(std::string_view word);

}  // namespace tessera
