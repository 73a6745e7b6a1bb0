// The commands of `tessera`, one function each: it declares the options and what runs.
//
// A command's callback throws Error for anything that ends it; main prints the problems and exits
// with the error's code. Results go to stdout (`--json`: for programs), everything else to stderr.
#pragma once

#include <CLI/CLI.hpp>

namespace tessera {

void add_plan(CLI::App& app);
void add_explain(CLI::App& app);
void add_simulate(CLI::App& app);
void add_reshard(CLI::App& app);
void add_compare(CLI::App& app);
void add_learn(CLI::App& app);
void add_advise(CLI::App& app);
void add_run(CLI::App& app);
void add_signal(CLI::App& app);
void add_doctor(CLI::App& app);
void add_sweep(CLI::App& app);
void add_export(CLI::App& app);
void add_import(CLI::App& app);
void add_list(CLI::App& app);
void add_serve(CLI::App& app);
void add_mirror(CLI::App& app);

}  // namespace tessera
