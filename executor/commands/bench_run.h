// The frame of the bench commands: starting ranks, a description of the machine, JSON and a table.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cost_models/spec/model_spec.h"
#include "executor/bench/reshard_rig.h"
#include "executor/launch/device_setup.h"

namespace tessera {

struct BenchStart {
  std::vector<std::string>
      words;  // the command line: what ranks are started with, and what is kept
  std::string device = "auto", output;  // JSON file; empty = none
  int ranks = 4;
};

using BenchBody = std::function<nlohmann::json(RankSetup&, const BenchSite&)>;
using BenchTable = std::function<std::string(const nlohmann::json& figures)>;

/// Starts the ranks with the same words, or is one of them: then rank 0 prints the table of what
/// `measure` returns and writes it with the machine's description and the command.
void run_bench(const BenchStart& options, const std::string& what, const BenchBody& measure,
               const BenchTable& table);

/// A preset, folder or config.json. Throws Error (bad_input).
ModelSpec bench_model(const std::string& name);

}  // namespace tessera
