// Files of a run that say something of the rollout, and what is refused about them.
#pragma once

#include <string>

#include "cost_models/documents/problem.h"
#include "executor/config/run_config.h"

namespace tessera {

/// `rollout`: the keys of actor_rollout_ref.rollout; `more`: lines behind the others.
inline std::string yaml(const std::string& rollout, const std::string& more = "") {
  return "version: 1\ndata: {train_files: [a.jsonl]}\nactor_rollout_ref: {rollout: {" + rollout +
         "}}\ntrainer: {total_training_steps: 2}\n" + more;
}

/// All that is wrong with the file, or the empty text.
inline std::string refused(const Plan& plan, const std::string& text) {
  Problems problems;
  parse_run_config(text, "run.yaml", plan, problems);
  std::string all;
  for (const Problem& problem : problems) all += to_string(problem) + "\n";
  return all;
}

}  // namespace tessera
