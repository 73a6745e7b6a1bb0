// The rules of the folders, held against every #include and the size of every source of the tree
// (ARCHITECTURE.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TESSERA_SOURCE_DIR;

/// Each tier with those that it may include.
const std::map<std::string, std::set<std::string>> kTiers = {
    {"cost_models", {"cost_models"}},
    {"planner", {"cost_models", "planner"}},
    {"simulator", {"cost_models", "planner", "simulator"}},
    {"executor", {"cost_models", "planner", "simulator", "executor"}},
    {"cli", {"cost_models", "planner", "simulator", "cli"}},
    {"gui", {"cost_models", "planner", "simulator", "gui"}}};

/// Folders that know torch.
const std::set<std::string> kTorch = {"executor/tensor",  "executor/weights",  "executor/attention",
                                      "executor/model",   "executor/sharding", "executor/train",
                                      "executor/rollout", "executor/measure",  "executor/launch",
                                      "executor/loop",    "executor/bench",    "executor/commands",
                                      "executor/memory",  "executor/run_state"};

struct Source {
  std::string path, folder, tier;  // relative to the root
  std::vector<std::string> quoted, angled;
  std::vector<std::string> lines;
};

std::vector<Source> read_sources(const std::vector<std::string>& tiers) {
  const std::regex include(R"re(^#include ([<"])([^>"]+)[>"].*)re");
  std::vector<Source> sources;
  for (const std::string& tier : tiers) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / tier)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc" && extension != ".cu") continue;
      Source source;
      source.path = fs::relative(entry.path(), kRoot);
      source.folder = fs::path(source.path).parent_path();
      source.tier = tier;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        std::smatch found;
        if (std::regex_match(line, found, include)) {
          (found[1] == "<" ? source.angled : source.quoted).push_back(found[2]);
        }
        source.lines.push_back(std::move(line));
      }
      sources.push_back(std::move(source));
    }
  }
  return sources;
}

const std::vector<Source>& sources() {
  static const std::vector<Source> all = [] {
    std::vector<std::string> tiers;
    for (const auto& [tier, unused] : kTiers) tiers.push_back(tier);
    return read_sources(tiers);
  }();
  return all;
}

/// Those of the tiers, and those that stand beside them: what is held of size is held of both.
const std::vector<Source>& all_sources() {
  static const std::vector<Source> all = [] {
    std::vector<Source> all = read_sources({"tests", "benchmarks", "examples"});
    all.insert(all.end(), sources().begin(), sources().end());
    return all;
  }();
  return all;
}

TEST(Structure, IncludesGoFromLaterTiersToEarlierOnes) {
  ASSERT_GT(sources().size(), 300U);
  for (const Source& source : sources()) {
    for (const std::string& file : source.quoted) {
      const std::string tier = file.substr(0, file.find('/'));
      if (!kTiers.contains(tier)) continue;  // what the build makes
      EXPECT_TRUE(kTiers.at(source.tier).contains(tier)) << source.path << " includes " << file;
    }
  }
}

TEST(Structure, FoldersIncludeOneWayOnly) {
  std::map<std::string, std::set<std::string>> edges;
  for (const Source& source : sources()) {
    for (const std::string& file : source.quoted) {
      const std::string folder = fs::path(file).parent_path();
      if (folder != source.folder && kTiers.contains(folder.substr(0, folder.find('/')))) {
        edges[source.folder].insert(folder);
      }
    }
  }
  ASSERT_GT(edges.size(), 20U);
  // What includes nothing that is left is taken away until nothing is left, or a cycle.
  std::set<std::string> left;
  for (const auto& [from, to] : edges) left.insert(from);
  for (bool found = true; found;) {
    found = false;
    for (auto folder = left.begin(); folder != left.end();) {
      const std::set<std::string>& next = edges.at(*folder);
      const bool ends = std::none_of(next.begin(), next.end(),
                                     [&](const std::string& to) { return left.contains(to); });
      found = found || ends;
      folder = ends ? left.erase(folder) : std::next(folder);
    }
  }
  EXPECT_THAT(left, testing::IsEmpty());
}

/// Of the two rooms that know engines by name.
bool knows_engines(const std::string& folder) {
  return folder == "planner/engines" || folder.starts_with("planner/interop");
}

/// What of a line compares an engine's name: a comparison with it or with a constant that holds
/// it, or a search for it; empty = nothing.
std::string compared_engine(const std::string& line) {
  static const std::string name =
      R"re(("(tessera|tessera\+vllm|verl|verl-megatron|megatron|vllm|sglang|any)"(s|sv)?|k(Own|Any)Engine(WithVllm)?\b))re";
  static const std::string in_call =
      R"re(\b(compare|starts_with|ends_with|contains|find|count|strcmp)\([^()]*)re";
  static const std::regex found(R"re([=!]= *(std::string(_view)?[({])?)re" + name +  // x == "verl"
                                "|" + name + R"re([)}]? *[=!]=)re" +                 // "verl" == x
                                "|" + in_call + name + R"re(|\bcase +)re" + name);
  std::smatch match;
  const std::string code = line.substr(0, line.find("//"));
  return std::regex_search(code, match, found) ? match.str() : "";
}

TEST(Structure, EnginesAreComparedByNameInTheirOwnRoomsAlone) {
  EXPECT_NE(compared_engine("if (plan.engine == \"tessera\") {"), "");
  EXPECT_NE(compared_engine("return \"verl-megatron\" != engine;"), "");
  EXPECT_NE(compared_engine("if (table.engine == kAnyEngine) {"), "");
  EXPECT_NE(compared_engine("return engine.starts_with(\"verl\");"), "");
  EXPECT_NE(compared_engine("case \"vllm\"_hash:"), "");
  EXPECT_EQ(compared_engine("row.engine = \"tessera\";"), "");
  EXPECT_EQ(compared_engine("// engine == \"verl\""), "");
  for (const Source& source : sources()) {
    if (knows_engines(source.folder)) continue;
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      const std::string found = compared_engine(source.lines[i]);
      EXPECT_EQ(found, "") << source.path << ":" << i + 1
                           << ": ask a property of the engine (planner/engines/engine.h)";
    }
  }
}

constexpr std::size_t kMostSources = 30, kMostLines = 400, kMostFunctionLines = 60;

TEST(Structure, RoomsHaveFewSourcesAndSourcesAreShort) {
  ASSERT_GT(all_sources().size(), sources().size() + 250);
  std::map<std::string, std::size_t> rooms;
  for (const Source& source : all_sources()) {
    ++rooms[source.folder];
    EXPECT_LE(source.lines.size(), kMostLines) << source.path;
  }
  for (const auto& [room, count] : rooms) EXPECT_LE(count, kMostSources) << room;
}

/// Functions of a source as [first line, end), told by the formatter's layout: a name and its
/// arguments begin at namespace or class indentation, and the body's brace closes there.
std::vector<std::pair<std::size_t, std::size_t>> functions_of(const Source& source) {
  const std::regex opens(
      R"(^(  )?(?!(namespace|class|struct|enum|union|using|extern|if|for|while|switch|else|do|try|return)\b)[A-Za-z~].*\(.*)");
  constexpr std::size_t kMostSignatureLines = 14;
  std::vector<std::pair<std::size_t, std::size_t>> found;
  const auto& lines = source.lines;
  for (std::size_t first = 0; first < lines.size(); ++first) {
    const std::string& text = lines[first];
    if (!std::regex_match(text, opens)) continue;
    if (text.substr(0, text.find('(')).find('=') != std::string::npos) continue;  // data
    std::size_t body = first;
    const std::size_t last = std::min(lines.size(), first + kMostSignatureLines);
    while (body < last && !lines[body].ends_with('{') && !lines[body].ends_with(';') &&
           !lines[body].ends_with('}')) {
      ++body;
    }
    if (body == last || !lines[body].ends_with('{')) continue;
    const std::string closing = std::string(text.starts_with("  ") ? 2 : 0, ' ') + "}";
    std::size_t end = body + 1;
    while (end < lines.size() && !lines[end].starts_with(closing)) ++end;
    found.emplace_back(first, end + 1);
    first = end;
  }
  return found;
}

TEST(Structure, FunctionsAreShort) {
  std::size_t functions = 0;
  for (const Source& source : all_sources()) {
    for (const auto& [first, end] : functions_of(source)) {
      EXPECT_LE(end - first, kMostFunctionLines) << source.path << ":" << first + 1;
      ++functions;
    }
  }
  EXPECT_GT(functions, 8000U);
}

TEST(Structure, PricingKnowsNoSearchAndSimulatorsAndSweepsKnowPricingAlone) {
  for (const Source& source : sources()) {
    const bool prices =
        source.folder.starts_with("planner/pricing") || source.folder == "planner/sweep";
    if (!prices && source.tier != "simulator") continue;
    for (const std::string& file : source.quoted) {
      EXPECT_FALSE(file.starts_with("planner/search/") || file.starts_with("planner/explain/"))
          << source.path << " includes " << file;
    }
  }
}

TEST(Structure, TorchStaysInItsFoldersCudaInTheExecutorAndQtInTheWindow) {
  for (const Source& source : sources()) {
    for (const std::string& file : source.angled) {
      const bool torch =
          file.starts_with("torch/") || file.starts_with("ATen/") || file.starts_with("c10/");
      EXPECT_TRUE(!torch || kTorch.contains(source.folder)) << source.path << " " << file;
      const bool device = file.starts_with("cuda") || file.starts_with("cublas") ||
                          file.starts_with("cudnn") || file.starts_with("nccl") ||
                          file.starts_with("nvml");
      EXPECT_TRUE(!device || source.tier == "executor") << source.path << " " << file;
      const bool qt = file.size() > 1 && file[0] == 'Q' && std::isupper(file[1]) != 0;
      EXPECT_TRUE(!qt || source.tier == "gui") << source.path << " " << file;
    }
  }
}

TEST(Structure, EveryHeaderSaysFirstWhatItIs) {
  for (const Source& source : all_sources()) {
    if (!source.path.ends_with(".h")) continue;
    ASSERT_FALSE(source.lines.empty()) << source.path;
    EXPECT_TRUE(source.lines[0].starts_with("// ")) << source.path;
    const auto pragma = std::find(source.lines.begin(), source.lines.end(), "#pragma once");
    EXPECT_TRUE(pragma != source.lines.end()) << source.path;
  }
}

/// True when the line asks which family a model is of: it names an enumerator of ModelFamily other
/// than to set a value.
bool compares_a_family(const std::string& line) {
  static const std::regex set(R"re((^|[^=!<>])= *$)re");
  if (line.find("using enum ModelFamily") != std::string::npos) return true;
  for (std::size_t at = line.find("ModelFamily::"); at != std::string::npos;
       at = line.find("ModelFamily::", at + 1)) {
    const std::string after = line.substr(at);
    static const std::regex compared(R"re(^ModelFamily::\w+ *(==|!=))re");
    if (!std::regex_search(line.substr(0, at), set) || std::regex_search(after, compared)) {
      return true;
    }
  }
  return false;
}

TEST(Structure, FactsOfModelFamiliesStandInTheirTable) {
  for (const char* line :
       {"if (model.family == ModelFamily::gpt2) {", "return spec.family != ModelFamily::llama;",
        "case ModelFamily::qwen2:", "if (is(ModelFamily::mixtral)) return;",
        "using enum ModelFamily;", "const bool sparse = ModelFamily::mixtral == family;",
        "    ModelFamily::qwen3};"}) {
    EXPECT_TRUE(compares_a_family(line)) << line;
  }
  for (const char* line :
       {"ModelFamily family = ModelFamily::llama;", "return {.family = ModelFamily::qwen2,",
        "ModelFamily family() const;"}) {
    EXPECT_FALSE(compares_a_family(line)) << line;
  }
  for (const Source& source : sources()) {
    // The enum; and the families that an engine can run, a fact of the engine.
    if (source.path == "cost_models/spec/model_spec.h" || source.folder == "planner/engines") {
      continue;
    }
    for (const std::string& line : source.lines) {
      EXPECT_FALSE(compares_a_family(line)) << source.path << ": " << line;
    }
  }
}

/// The name that a line declares as a raw number of seconds or bytes; empty = none. `double step_s`
/// is one, and so are a parameter, a function, an element of a list or a map, and a second
/// declarator. Rates (`tokens_per_s`) are none.
std::string raw_amount(const std::string& line) {
  static const std::regex number(
      R"re(\b(double|float|int|long|unsigned|(std::)?u?int(32|64)_t|(std::)?size_t)\b)re");
  static const std::regex amount(
      R"re(^[>&*\s]*(const\s+)?(?!\w+_per_s\b)((\w+_)?(seconds|bytes)|\w+_s)\b)re");
  static const std::regex initial(R"re(^[>&*\s]*\w+\s*(=[^,;(]*)?,)re");
  const std::string code = line.substr(0, line.find("//"));
  std::smatch found, named, next;
  for (auto at = code.cbegin(); std::regex_search(at, code.cend(), found, number);) {
    at = found.suffix().first;
    for (auto rest = at; rest != code.cend(); rest = next.suffix().first) {
      if (std::regex_search(rest, code.cend(), named, amount)) return named[2];
      if (!std::regex_search(rest, code.cend(), next, initial)) break;
    }
  }
  return "";
}

TEST(Structure, SecondsAndBytesHaveTypesInTheHeadersOfCostModelsAndPlanner) {
  for (const auto& [line, name] : std::vector<std::pair<std::string, std::string>>{
           {"  double step_s = 0;", "step_s"},
           {"  std::map<Phase, double> phases_s;", "phases_s"},
           {"std::int64_t shared_weight_bytes(const Plan& plan, int rank);", "shared_weight_bytes"},
           {"std::string in_gib(std::int64_t bytes, int decimals = 2);", "bytes"},
           {"  double alpha_s = 0, bandwidth = 0, ramp_s = 0;", "alpha_s"},
           {"  std::int64_t pieces = 0, row_bytes = 0;", "row_bytes"},
           {"  std::vector<std::int64_t> sent_bytes;", "sent_bytes"},
           {"void wait(const double& least_seconds);", "least_seconds"}}) {
    EXPECT_EQ(raw_amount(line), name) << line;
  }
  for (const char* line :
       {"  Seconds step_s;", "  double tokens_per_s = 0;  // double step_s", "  int steps = 0;",
        "double f(double x, Seconds step_s);", "  v.field(\"step_s\", prediction.step_s);"}) {
    EXPECT_EQ(raw_amount(line), "") << line;
  }
  const std::map<std::string, std::string> allowed = {
      // The longest text that a parser takes, compared with sizes of strings.
      {"cost_models/documents/document.h", "bytes"}};
  std::size_t headers = 0;
  for (const Source& source : sources()) {
    const bool typed = source.tier == "cost_models" || source.tier == "planner";
    if (!typed || !source.path.ends_with(".h")) continue;
    ++headers;
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      const std::string name = raw_amount(source.lines[i]);
      const auto exception = allowed.find(source.path);
      if (exception != allowed.end() && exception->second == name) continue;
      EXPECT_EQ(name, "") << source.path << ":" << i + 1 << ": a type of cost_models/spec/units.h";
    }
  }
  EXPECT_GT(headers, 150U);
}

}  // namespace
