// tessera init-model, make-data and tokenize: what a first run needs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "executor/commands/commands.h"
#include "executor/data/digit_tasks.h"
#include "executor/data/init_model.h"
#include "executor/data/tokenizer.h"

namespace tessera {
namespace {

void throw_if_any(Problems problems) {
  if (!problems.empty()) throw Error(std::move(problems));
}

struct InitOptions {
  std::string model, output, dtype;
  InitModelOptions init;
};

void init(const InitOptions& options) {
  InitModelOptions init = options.init;
  if (!options.dtype.empty()) init.dtype = dtype_from(options.dtype);
  Problems problems;
  if (!options.dtype.empty() && !init.dtype) {
    problems.push_back(
        {.file = "--dtype", .found = "'" + options.dtype + "'", .expected = "fp32, bf16 or fp16"});
  } else {
    init_model(options.model, options.output, init, problems);
  }
  throw_if_any(std::move(problems));
  std::printf("wrote %s\n", options.output.c_str());
}

struct DataOptions {
  std::string task = "reverse", output, split = "train";
  int digits = 3;
  std::int64_t count = 1024;
  std::uint64_t seed = 1;
};

void make(const DataOptions& options) {
  Problems problems;
  make_data(*digit_task_from(options.task), options.digits, options.count, options.seed,
            options.split, options.output, problems);
  // The options were checked before: only writing can fail.
  if (!problems.empty()) throw Error(ExitCode::io, std::move(problems));
  std::printf("wrote %lld prompts to %s\n", static_cast<long long>(options.count),
              options.output.c_str());
}

void tokenize(const std::string& model, const std::vector<std::string>& texts, bool special) {
  Problems problems;
  const auto folder = find_config(model, "models", "", problems);
  if (folder && std::filesystem::exists(*folder) &&
      !std::filesystem::exists(*folder / "tokenizer.json")) {
    problems.push_back({.file = folder->string(),
                        .found = "no tokenizer.json",
                        .expected = "a model folder with one",
                        .hint = "presets hold a config.json only: give the folder of a downloaded "
                                "model, or one that init-model --digits wrote"});
  }
  throw_if_any(problems);
  const std::optional<Tokenizer> tokenizer = Tokenizer::open(*folder, problems);
  throw_if_any(std::move(problems));
  std::vector<std::string> all = texts;
  if (all.empty())
    all.emplace_back(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>{});
  for (const std::string& text : all) {
    std::string line = "[";
    for (const std::int32_t id : tokenizer->encode(text, special)) {
      line += (line.size() > 1 ? "," : "") + std::to_string(id);
    }
    std::printf("%s]\n", line.c_str());
  }
}

}  // namespace

void add_init_model(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("init-model", "Write a Hugging Face folder with random weights");
  auto options = std::make_shared<InitOptions>();
  command->add_option("--model", options->model, "Folder, config.json or preset")->required();
  command->add_option("-o,--output", options->output, "Folder to write; must not exist")
      ->required();
  command->add_option("--seed", options->init.seed, "Seed of the weights");
  command->add_flag("!--no-weights", options->init.weights,
                    "Write all but the weights: for runs with trainer.random_weights");
  command->add_option("--dtype", options->dtype, "fp32, bf16 or fp16; default: the config's");
  command->add_flag("--digits", options->init.digit_tokenizer, "With the digit tasks' tokenizer");
  command->callback([options] { init(*options); });
}

void add_make_data(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("make-data", "Write prompts of a digit task as JSON lines");
  auto options = std::make_shared<DataOptions>();
  command->add_option("--task", options->task, "reverse, copy or sort")
      ->check(CLI::IsMember({"reverse", "copy", "sort"}));
  command->add_option("--digits", options->digits, "Digits of a prompt")->check(CLI::Range(1, 64));
  command->add_option("--count", options->count, "Prompts")->check(CLI::Range(1, 100000000));
  command->add_option("--seed", options->seed, "Seed of the digits");
  command->add_option("--split", options->split, "Name of the split: train, test");
  command->add_option("-o,--output", options->output, "File to write")->required();
  command->callback([options] { make(*options); });
}

void add_tokenize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenize", "Print token ids as JSON, a line per text");
  auto model = std::make_shared<std::string>();
  auto texts = std::make_shared<std::vector<std::string>>();
  auto special = std::make_shared<bool>(false);
  command->add_option("--model", *model, "Model folder with tokenizer.json")->required();
  command->add_option("text", *texts, "Texts; standard input without any");
  command->add_flag("--special", *special, "Add what the tokenizer's template adds");
  command->callback([=] { tokenize(*model, *texts, *special); });
}

}  // namespace tessera
