// Pieces of the scripts and files that exporters write.
//
// Pure functions; texts end with a line break.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct EnvironmentVariable;
struct Plan;

/// "#!/usr/bin/env bash", what the script does, and strict mode.
std::string script_head(const Plan& plan, std::string_view what);
/// The environment as `export NAME=value` lines under their reasons.
std::string export_lines(const std::vector<EnvironmentVariable>& environment);
/// A bash array, one quoted word per line.
std::string bash_array(std::string_view name, const std::vector<std::string>& words);
/// GPUs per node and nodes of the plan's ranks.
struct JobShape {
  std::int64_t nodes = 1, gpus_per_node = 1;
};
JobShape shape_of(const Plan& plan);
/// Lines of a script that demand where a node stands among several; none for one node.
std::string rendezvous_lines(JobShape shape);
/// torchrun's options of the shape, where rendezvous_lines came before.
std::string torchrun_shape(JobShape shape);
/// A YAML string, quoted even where it would be one without: values of environment variables.
std::string yaml_string(std::string_view text);

}  // namespace tessera
