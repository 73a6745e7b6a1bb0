#include "planner/interop/import_format.h"

#include <algorithm>

#include "planner/interop/megatron/megatron.h"
#include "planner/interop/servers/servers.h"
#include "planner/interop/verl/verl.h"

namespace tessera {

// verl has programs of its own (launch_command.cc) and no flags, but keys.
const std::vector<ImportFormat>& every_import_format() {
  static const std::vector<ImportFormat> rows = {
      {ConfigSyntax::verl, {}, {}, import_verl},
      {ConfigSyntax::megatron,
       {},
       {"tensor-model-parallel-size", "micro-batch-size", "num-layers"},
       import_megatron},
      {ConfigSyntax::sglang,
       {{"sglang.launch_server", ""}},
       {"tp-size", "mem-fraction-static", "max-running-requests", "model-path"},
       import_server},
      {ConfigSyntax::vllm,
       {{"vllm.entrypoints", ""}, {"vllm", "serve"}},
       {"tensor-parallel-size", "gpu-memory-utilization", "max-num-seqs"},
       import_server},
  };
  return rows;
}

const ImportFormat& format_of(ConfigSyntax syntax) {
  const std::vector<ImportFormat>& all = every_import_format();
  return *std::find_if(all.begin(), all.end(),
                       [&](const ImportFormat& format) { return format.syntax == syntax; });
}

}  // namespace tessera
