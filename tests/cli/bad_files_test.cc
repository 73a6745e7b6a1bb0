// Files that a careless or hostile hand gives to the commands: full disks, pipes, devices, figures
// that no machine has, escape sequences. Each ends at once, with its exit code and the file's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"
#include "tests/cli/called.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

// A command that hangs or swells is ended, with 124 or a signal.
Called call(const std::string& words, const std::string& streams = "2>&1") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const std::string limit;  // sanitizers map terabytes
#else
  const std::string limit = "ulimit -v 4000000; ";
#endif
  return tessera::call(words, streams, limit + "timeout 20 ");
}

std::string preset(const std::string& path) {
  Problems none;
  return *read_text_file(std::string(TESSERA_SOURCE_DIR) + "/configs/" + path, 1 << 20, none);
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  EXPECT_NE(at, text.npos) << what;
  return at == text.npos ? text : text.replace(at, what.size(), with);
}

class BadFiles : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("tessera-bad-files-" + std::to_string(getpid()));
    fs::create_directories(folder_);
    ASSERT_EQ(call(kAsk + "-o " + at("plan.json")).code, 0);
    put("rows.csv",
        "model,cluster,kind,gpus,tp,pp,dp,global_batch,prompt_tokens\n"
        "qwen2.5-0.5b,h100-8,train,8,2,1,4,64,1024\n");
    // Links, so that a command which replaces its output replaces no device of this machine.
    fs::create_symlink("/dev/full", at("full"));
    fs::create_symlink("/dev/zero", at("zero"));
    ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static std::string at(const std::string& name) { return (folder_ / name).string(); }
  static std::string put(const std::string& name, const std::string& text) {
    std::ofstream(at(name), std::ios::binary) << text;
    return at(name);
  }

  inline static fs::path folder_;
};

TEST_F(BadFiles, OutputOnAFullDiskIs74WithFileAndReason) {
  const std::string script = std::string(TESSERA_SOURCE_DIR) +
                             "/examples/verl_grpo/run_qwen2_5_7b_grpo.sh --cluster h200-8 ";
  for (const std::string& words :
       {kAsk + "-o ", kAsk + "--vary rollout.tp=1,2 -o ", kAsk + "--pareto -o ",
        "simulate " + at("plan.json") + " --trace ", "sweep " + at("rows.csv") + " -o ",
        "import " + script + "-o "}) {
    SCOPED_TRACE(words);
    const Called called = call(words + at("full"));
    EXPECT_EQ(called.code, 74);
    EXPECT_THAT(called.out, HasSubstr(at("full")));
    EXPECT_THAT(called.out, HasSubstr("No space left on device"));
    EXPECT_THAT(called.out, Not(HasSubstr("written to")));
    EXPECT_TRUE(fs::is_symlink(at("full")));
  }
}

TEST_F(BadFiles, StandardOutputOnAFullDiskIs74) {
  for (const std::string& words :
       {kAsk, "explain " + at("plan.json"), "simulate " + at("plan.json"),
        "sweep " + at("rows.csv"), std::string("list models")}) {
    const Called called = call(words, "2>&1 >/dev/full");
    EXPECT_EQ(called.code, 74) << words << called.out;
    EXPECT_THAT(called.out, HasSubstr("standard output: cannot write: No space left on device"));
  }
}

TEST_F(BadFiles, OutputsThatCannotBeWrittenAre74) {
  fs::create_directories(at("folder"));
  for (const std::string& output :
       {at("folder"), at("plan.json") + "/below", at("no/such/file"), at("pipe")}) {
    const Called called = call(kAsk + "-o " + output);
    EXPECT_EQ(called.code, 74) << output << called.out;
    EXPECT_THAT(called.out, HasSubstr(output));
    EXPECT_LT(called.seconds, 5);
  }
  EXPECT_EQ(call("export " + at("plan.json") + " --to torchrun -o " + at("rows.csv")).code, 74);
}

TEST_F(BadFiles, AFailedWriteLeavesNoTemporaryFile) {
  const std::string limited = "ulimit -f 1; ";  // blocks of 512 or 1024 bytes; a plan has 19 kB
  fs::create_directories(at("small"));
  const std::string output = at("small/plan.json");
  const int status = std::system(("trap '' XFSZ; " + limited + TESSERA_BINARY_DIR +
                                  "/cli/tessera " + kAsk + "-o " + output + " >/dev/null 2>&1")
                                     .c_str());
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 74);
  EXPECT_TRUE(fs::is_empty(at("small")));
}

TEST_F(BadFiles, ALinkKeepsNamingTheFileThatItNames) {
  put("old.json", "{}");
  fs::create_symlink(at("old.json"), at("link.json"));
  EXPECT_EQ(call(kAsk + "-o " + at("link.json")).code, 0);
  EXPECT_TRUE(fs::is_symlink(at("link.json")));
  EXPECT_GT(fs::file_size(at("old.json")), 1000U);
}

TEST_F(BadFiles, PipesAndDevicesAreRefusedAtOnce) {
  fs::create_directories(at("model"));
  if (!fs::exists(at("model/config.json")))
    fs::create_symlink("/dev/zero", at("model/config.json"));
  for (const std::string& file : {at("pipe"), at("zero"), at("folder-that-is-not")}) {
    for (const std::string& words :
         {"plan --cluster h100-8 --workload grpo-7b-1k --model " + file,
          "plan --model qwen2.5-0.5b --workload grpo-7b-1k --cluster " + file,
          "plan --model qwen2.5-0.5b --cluster h100-8 --workload " + file,
          kAsk + "--calibration " + file, "explain " + file, "simulate " + file, "sweep " + file,
          "import --cluster h100-8 " + file, "export --to torchrun -o " + at("out") + " " + file,
          "explain " + at("plan.json") + " --rules " + file,
          "run " + at("plan.json") + " -o " + at("run") + " --config " + file,
          "compare " + at("plan.json") + " " + file}) {
      SCOPED_TRACE(words);
      const Called called = call(words);
      EXPECT_EQ(called.code, 65) << called.out;
      EXPECT_THAT(called.out, HasSubstr(file));
      EXPECT_LT(called.seconds, 5);
    }
  }
  EXPECT_EQ(call("plan --cluster h100-8 --workload grpo-7b-1k --model " + at("model")).code, 65);
}

// The file that a plan was made from is looked at again by those that read the plan.
TEST_F(BadFiles, APlanWhoseModelIsADeviceIsReadInTime) {
  Problems none;
  const std::string plan = *read_text_file(at("plan.json"), 1 << 20, none);
  const auto begin = plan.find("\"path\": \"") + 9;
  const std::string path = plan.substr(begin, plan.find('"', begin) - begin);
  for (const char* file : {"zero", "pipe"}) {
    const Called called =
        call("explain " + put("device.json", replaced(plan, "\"" + path, "\"" + at(file))));
    EXPECT_LT(called.seconds, 5);
    EXPECT_NE(called.code, 124);
  }
}

TEST_F(BadFiles, FiguresThatNoMachineHasAre65AtTheirPlace) {
  const std::string cluster = preset("clusters/h800-64.yaml"),
                    workload = preset("workloads/grpo-7b-1k.yaml");
  const auto refused = [&](const std::string& words, const std::string& key) {
    const Called called = call(words);
    EXPECT_EQ(called.code, 65) << words << called.out;
    EXPECT_THAT(called.out, HasSubstr(key));
    EXPECT_THAT(called.out, HasSubstr("expected a number"));
  };
  for (const char* value : {"1e308", "1e300", "1e-300"}) {
    for (const char* figure : {"peak_tflops_bf16: 989", "hbm_gb_s: 3350", "memory_gib: 80",
                               "gb_s_per_gpu_one_way: 200", "gbit_s_per_nic: 400"}) {
      const std::string key = std::string(figure).substr(0, std::string(figure).find(':'));
      const std::string file = put("c.yaml", replaced(cluster, figure, key + ": " + value));
      refused("plan --model qwen2.5-0.5b --workload grpo-7b-1k --cluster " + file, key);
    }
    if (value[2] == '-') continue;  // equal lengths
    const std::string file =
        put("w.yaml", replaced(workload, "cv: 0.5", std::string("cv: ") + value));
    refused("plan --model qwen2.5-0.5b --cluster h100-8 --workload " + file, "response_tokens.cv");
  }
  Problems none;
  const std::string plan = *read_text_file(at("plan.json"), 1 << 20, none);
  for (const char* value : {"1e-300", "1e300"}) {
    const std::string file = put("edited.json", replaced(plan, "\"memory_gib\": 80.0",
                                                         std::string("\"memory_gib\": ") + value));
    for (const char* command : {"explain ", "simulate ", "export --to torchrun -o /dev/null "}) {
      refused(command + file, "/cluster/memory_gib");
    }
  }
}

TEST_F(BadFiles, AClusterOfMillionsIsRefusedWithTheLimit) {
  const std::string cluster = preset("clusters/h800-64.yaml");
  for (const char* nodes : {"1048576", "262144", "32769"}) {
    const std::string file =
        put("many.yaml", replaced(cluster, "\nnodes: 8", "\nnodes: " + std::string(nodes)));
    const Called called = call("plan --model qwen2.5-7b --workload grpo-7b-1k --cluster " + file);
    EXPECT_EQ(called.code, 65) << called.out;
    EXPECT_THAT(called.out, HasSubstr("262144"));
    EXPECT_LT(called.seconds, 2);
  }
}

TEST_F(BadFiles, TablesWithoutEndAreRefusedInTime) {
  std::string header = "model,cluster,kind", row = "qwen2.5-7b,h800-64,train";
  for (int i = 0; i < 200'000; ++i) {
    header += ",c" + std::to_string(i);
    row += ",1";
  }
  std::string many = "model,cluster,kind\n";
  for (int i = 0; i < 1'000'000; ++i) many += ",,\n";
  for (const std::string& text : {header + "\n" + row + "\n", many, std::string(60 << 20, ',')}) {
    const Called called = call("sweep " + put("wide.csv", text));
    EXPECT_EQ(called.code, 65) << called.out.substr(0, 500);
    EXPECT_THAT(called.out, HasSubstr("at most "));
    EXPECT_LT(called.seconds, 5);
  }
}

TEST_F(BadFiles, NoEscapeSequenceOfAFileReachesTheTerminal) {
  const std::string cluster = preset("clusters/h800-64.yaml");
  const std::string code = "\x1b]0;owned\x07\x1b[2J";
  const std::string bidirectional = "\xe2\x80\xae", c1 = "\xc2\x9b";
  const auto raw = [](const std::string& out) {
    return out.find('\x1b') != out.npos || out.find('\x07') != out.npos ||
           out.find("\xe2\x80\xae") != out.npos || out.find("\xc2\x9b") != out.npos;
  };
  const std::string plan = "plan --model qwen2.5-7b --workload grpo-7b-1k --cluster ";
  for (const std::string& text : {code, bidirectional, c1}) {
    for (const std::string& words :
         {plan + put("e1.yaml", cluster + "unknown" + text + ": 1\n"),
          plan + put("e2.yaml", replaced(cluster, "h800-64", "\"x\\e[31m" + text + "\"")),
          "sweep " + put("e3.csv", "model,cluster,kind\n\"q" + text + "\",h800-64,train\n"),
          "sweep " +
              put("e4.csv", "model,cluster,kind," + text + "gpu\nqwen2.5-7b,h800-64,train,1\n"),
          "import --cluster h100-8 " +
              put("e5.sh", "python3 -m verl.trainer.main_ppo a." + text + "=1\n"),
          "explain " + put("e6.json", "{\"tessera_plan\": \"\\u001b[31m" + std::string("\"}"))}) {
      const Called called = call(words);
      EXPECT_NE(called.code, 0) << words;
      EXPECT_FALSE(raw(called.out)) << words;
    }
  }
  EXPECT_THAT(call(plan + at("e1.yaml")).out, HasSubstr("unknown\\x"));
}

TEST_F(BadFiles, AFileOfUnknownKeysIsToldInTimeAndShort) {
  std::string keys;
  for (int i = 0; i < 90'000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  const Called called =
      call("plan --model qwen2.5-0.5b --workload grpo-7b-1k --cluster " + put("keys.yaml", keys));
  EXPECT_EQ(called.code, 65);
  EXPECT_LT(called.seconds, 3);
  EXPECT_LT(called.out.size(), 30'000U);
  EXPECT_THAT(called.out, HasSubstr("89900 more unknown keys"));
}

}  // namespace
}  // namespace tessera
