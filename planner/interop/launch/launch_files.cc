#include "planner/interop/launch/launch_files.h"

#include "cost_models/documents/problem.h"
#include "planner/interop/files/setting.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"

namespace tessera {
namespace {

// A DNS label that begins with a letter (RFC 1035): what a TrainJob's definition asks for, and
// Slurm accepts.
bool check_name(const std::string& name, Problems& problems) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  bool good = !name.empty() && name.size() <= 63 && letter(name.front()) && name.back() != '-';
  for (const char c : name) good = good && allowed(c);
  if (!good) {
    problems.push_back({"--name", "", "'" + name + "'",
                        "at most 63 lower-case letters, digits and '-', a letter first",
                        "a job's name"});
  }
  return good;
}

}  // namespace

bool check_job(const Plan& plan, const ExportOptions& options, Problems& problems) {
  const JobShape shape = shape_of(plan);
  if (shape.nodes * shape.gpus_per_node != plan.world_size()) {
    problems.push_back({"plan", "/roles", std::to_string(plan.world_size()) + " ranks",
                        "whole nodes of " + std::to_string(shape.gpus_per_node) + " GPUs",
                        "these launchers start equally many ranks on every node"});
    return false;
  }
  if (!check_name(options.name, problems)) return false;
  for (const std::string* path : {&options.run_config, &options.run_folder}) {
    if (path->find_first_of("\n\r") == path->npos) continue;
    problems.push_back({"export", "", "a line break in a path", "one line", ""});
    return false;
  }
  return true;
}

bool add_plan_file(const Plan& plan, const ExportOptions& options, Export& out,
                   Problems& problems) {
  if (!check_job(plan, options, problems)) return false;
  out.files.push_back({"plan.json", to_json(plan)});
  return true;
}

std::string train_words(const ExportOptions& options) {
  return "train plan.json --config " + shell_word(options.run_config) + " -o " +
         shell_word(options.run_folder);
}

std::string on_runs_volume(const std::string& path) {
  return path.starts_with('/') ? path : std::string(kRunsFolder) + "/" + path;
}

void note_before_pods(const ExportOptions& options, JobShape shape, const std::string& created,
                      const std::string& kept, Export& out) {
  out.notes.push_back("Before: " + created + ", and a PersistentVolumeClaim " + options.name +
                      "-runs" +
                      (shape.nodes > 1 ? " that several nodes may write (ReadWriteMany)" : "") +
                      "; " + kept + " can lie on it, too, under " + kRunsFolder + ".");
}

std::string network_card_advice(const std::string& whom) {
  return "Several nodes: give " + whom +
         " the cluster's RDMA resource (its name depends on the device plugin: "
         "rdma/hca_shared_devices_a, say) beside nvidia.com/gpu, or NCCL falls back to TCP";
}

void note_run_config(const ExportOptions& options, Export& out) {
  out.notes.push_back("Put " + options.run_config +
                      " (verl's keys; what the plan does not fix) "
                      "beside the plan; tessera-run must be on PATH of every node.");
  out.notes.push_back(
      "With trainer.save_freq and trainer.resume_mode: auto in it a job that is started again, "
      "after a failure, an eviction or its time limit, goes on from its newest checkpoint.");
}

}  // namespace tessera
