// The commands of `tessera-run`, one function each: it declares the options and what runs.
//
// A callback throws Error for anything that ends the command; main prints the problems and exits
// with the error's code.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tessera {

void add_train(CLI::App& app);  // one rank of a run, started by mpirun, start, torchrun, srun
/// `words`: the whole command line behind the program's name, with which ranks are started.
void add_bench(CLI::App& app, const std::vector<std::string>& words);
void add_bench_rollout(CLI::App& bench, const std::vector<std::string>& words);
void add_bench_train(CLI::App& bench, const std::vector<std::string>& words);  // and kernels
void add_bench_rl(CLI::App& bench, const std::vector<std::string>& words);
void add_calibrate(CLI::App& app, const std::vector<std::string>& words);
void add_start(CLI::App& app);  // ranks on GPUs of this host
void add_init_model(CLI::App& app);
void add_make_data(CLI::App& app);
void add_tokenize(CLI::App& app);
/// Ranks are started with `words`, as those of bench are.
void add_train_reward(CLI::App& app, const std::vector<std::string>& words);
void add_verify_weights(CLI::App& app);

}  // namespace tessera
