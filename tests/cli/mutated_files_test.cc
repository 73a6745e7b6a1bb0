// Shipped presets and example files, made wrong in some 300 ways: each is refused with its name
// within a second of processor time and 500 MB, by the program as a user calls it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "cost_models/documents/document.h"
#include "cost_models/documents/printable.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct Called {
  int code = -1;
  double seconds = 0;  // of processor time
  long kib = 0;        // most resident memory
  std::string out;
};

Called call(const std::vector<std::string>& words, const fs::path& output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, 1);
    dup2(file, 2);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  Called called;
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  called.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  called.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  called.kib = usage.ru_maxrss;
  std::ifstream in(output, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  called.out = text.str();
  return called;
}

// A kind of file: how it is given to a command, and what its numbers are called.
struct Kind {
  std::string name, file, text;
  std::vector<std::string> words;  // with the file behind
  std::vector<std::string> keys;   // of numbers that the reader needs
  bool structured = true;          // half of it is malformed
};

struct Mutation {
  std::string what, text;
};

// The value of the first `key` replaced.
std::string with_value(const std::string& text, const std::string& key, const std::string& value) {
  auto at = text.find('"' + key + "\":");
  if (at == text.npos) at = text.find(key + ":");
  EXPECT_NE(at, text.npos) << key;
  if (at == text.npos) return {};
  const auto begin = text.find_first_not_of(' ', text.find(':', at) + 1);
  return text.substr(0, begin) + value + text.substr(text.find_first_of(",}\n", begin));
}

std::string repeated(const std::string& piece, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

std::string every_line_twice(const std::string& text) {
  std::stringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += line + "\n" + line + "\n";
  return out;
}

std::string utf_16(const std::string& text) {
  std::string out = "\xff\xfe";
  for (const char c : text) out += std::string(1, c) + '\0';
  return out;
}

std::string noise(std::size_t bytes) {
  std::mt19937 draw(1);
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(draw());
  return text;
}

std::vector<Mutation> mutations(const Kind& kind) {
  const std::string& text = kind.text;
  const std::size_t middle = text.size() / 2;
  const std::string line(10 << 20, 'x');
  std::vector<Mutation> all{
      {"nothing", ""},
      {"blanks", repeated(" \n", 1000)},
      {"noise", noise(1 << 16)},
      {"noise in the middle", text.substr(0, middle) + noise(64) + text.substr(middle)},
      {"a NUL", text.substr(0, middle) + std::string(1, '\0') + text.substr(middle)},
      {"half a character", text + "\xe2\x82"},
      {"UTF-16", utf_16(text)},
      {"a compressed file", "\x1f\x8b\x08" + noise(4096)},
      {"an ELF file",
       "\x7f"
       "ELF" +
           noise(4096)},
      {"a line of 10 MB", text + line},
      {"a line of 10 MB before", line + "\n" + text},
      {"100,000 lists", repeated("[", 100'000)},
      {"100,000 maps", repeated("{\"a\":", 100'000)},
      {"7 million values", "[" + repeated("1,", 7'000'000) + "1]"},
      {"a million keys",
       [] {
         std::string keys = "{";
         for (int i = 0; i < 1'000'000; ++i) keys += "\"k" + std::to_string(i) + "\": 1,\n";
         return keys + "\"end\": 1}";
       }()},
      {"300 MB", repeated(std::string(1 << 20, 'y') + "\n", 300)},
  };
  if (!kind.structured) return all;
  for (const int part : {1, 2, 3}) {
    all.push_back({"its first " + std::to_string(part) + " quarters",
                   text.substr(0, text.size() * static_cast<std::size_t>(part) / 4 + 1)});
  }
  all.push_back({"every line twice", every_line_twice(text)});
  all.push_back({"twice", text + text});
  for (const std::string& key : kind.keys) {
    for (const char* value :
         {"-1", "NaN", "1e400", "1e308", "0x10", "99999999999999999999", "\"x\"", "[]", "{}"}) {
      all.push_back({key + " = " + value, with_value(text, key, value)});
    }
  }
  return all;
}

class MutatedFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("tessera-mutated-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string source(const std::string& path) {
    Problems none;
    return *read_text_file(std::string(TESSERA_SOURCE_DIR) + "/" + path, 1 << 20, none);
  }

  std::vector<Kind> kinds() {
    const std::string tessera = std::string(TESSERA_BINARY_DIR) + "/cli/tessera";
    const std::string plan = folder_ / "plan.json", model = "qwen2.5-0.5b", cluster = "h100-8",
                      workload = "grpo-7b-1k";
    EXPECT_EQ(call({tessera, "plan", "--model", model, "--cluster", cluster, "--workload", workload,
                    "-o", plan},
                   folder_ / "out")
                  .code,
              0);
    Problems none;
    return {
        {"cluster",
         "c.yaml",
         source("configs/clusters/h800-64.yaml"),
         {tessera, "plan", "--model", model, "--workload", workload, "--cluster"},
         {"memory_gib", "peak_tflops_bf16", "gpus_per_node", "nodes", "gb_s_per_gpu_one_way",
          "nics_per_node"}},
        {"workload",
         "w.yaml",
         source("configs/workloads/grpo-7b-1k.yaml"),
         {tessera, "plan", "--model", model, "--cluster", cluster, "--workload"},
         {"prompts_per_step", "samples_per_prompt", "prompt_tokens", "cv", "max", "mini_batches"}},
        {"model",
         "config.json",
         source("configs/models/qwen2.5-0.5b/config.json"),
         {tessera, "plan", "--cluster", cluster, "--workload", workload, "--model"},
         {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
          "intermediate_size"}},
        {"plan",
         "p.json",
         *read_text_file(plan, 1 << 20, none),
         {tessera, "explain"},
         {"tp", "nodes", "prompts_per_step", "layers", "memory_gib"}},
        {"calibration",
         "k.json",
         source("configs/calibrations/h800.json"),
         {tessera, "plan", "--model", model, "--cluster", cluster, "--workload", workload,
          "--calibration"},
         {"value", "bytes_per_s"}},
        {"rules",
         "r.json",
         source("configs/rules/default.json"),
         {tessera, "explain", plan, "--rules"},
         {}},
        {"table",
         "t.csv",
         "model,cluster,kind,gpus\nqwen2.5-0.5b,h100-8,train,8\n",
         {tessera, "sweep"},
         {},
         false},
        {"script",
         "s.sh",
         source("examples/verl_grpo/run_qwen2_5_7b_grpo.sh"),
         {tessera, "import", "--cluster", "h200-8"},
         {},
         false}};
  }

  fs::path folder_;
};

TEST_F(MutatedFiles, AreRefusedByNameInASecondAnd500Megabytes) {
  std::size_t cases = 0;
  double slowest = 0;
  long most = 0;
  for (const Kind& kind : kinds()) {
    const std::string file = folder_ / kind.file;
    for (const Mutation& mutation : mutations(kind)) {
      SCOPED_TRACE(kind.name + ": " + mutation.what);
      std::ofstream(file, std::ios::binary) << mutation.text;
      std::vector<std::string> words = kind.words;
      words.push_back(file);
      const Called called = call(words, folder_ / "out");
      ++cases;
      slowest = std::max(slowest, called.seconds);
      most = std::max(most, called.kib);
      EXPECT_EQ(called.code, 65) << called.out.substr(0, 600);
      EXPECT_NE(called.out.find(file), std::string::npos) << called.out.substr(0, 600);
      EXPECT_FALSE(has_control_characters(called.out)) << printable(called.out.substr(0, 600));
      EXPECT_LT(called.out.size(), 100'000U);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
      EXPECT_LT(called.seconds, 1.0);
      EXPECT_LT(called.kib, 500'000);
#endif
    }
  }
  EXPECT_GE(cases, 200U);
  std::printf("%zu cases, slowest %.3f s, %ld MB\n", cases, slowest, most / 1000);
}

}  // namespace
}  // namespace tessera
