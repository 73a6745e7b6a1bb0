#include "executor/checkpoint/model_folder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "cost_models/documents/problem.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file with one U8 tensor of four bytes.
void write_shard(const fs::path& path, const std::string& name) {
  fs::create_directories(path.parent_path());
  const std::vector<TensorSpec> specs{{name, DType::uint8, {4}}};
  Problems problems;
  auto writer = SafetensorsWriter::create(path, specs, {}, problems);
  const std::byte data[4]{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  ASSERT_TRUE(writer && writer->write(data, problems) && writer->publish(problems));
}

/// Element k of tensor i, so that every byte of a folder is known.
std::uint16_t known_value(std::size_t tensor, std::size_t k) {
  return static_cast<std::uint16_t>(tensor * 977 + k * 31);
}

const TensorSource kKnown = [](std::size_t i, std::span<std::byte> out, Problems&) {
  for (std::size_t k = 0; k < out.size() / 2; ++k) {
    const std::uint16_t value = known_value(i, k);
    std::memcpy(out.data() + 2 * k, &value, 2);
  }
  return true;
};

ModelFolderContents small_contents() {
  ModelFolderContents contents;
  contents.config_json = R"({"model_type": "qwen2", "torch_dtype": "float32", "x": 1e-06})";
  for (int i = 0; i < 7; ++i) {
    contents.tensors.push_back({"layer." + std::to_string(i), DType::bf16, {i + 1, 8}});
  }
  return contents;
}

TEST(ModelFolder, WhatIsWrittenReadsBackInOneFileAndInShards) {
  for (const std::int64_t limit : {std::int64_t{1} << 30, std::int64_t{100}, std::int64_t{1}}) {
    TemporaryFolder temporary;
    const fs::path folder = temporary.path / "hf";
    ModelFolderContents contents = small_contents();
    contents.max_shard_bytes = limit;
    Problems problems;
    ASSERT_TRUE(write_model_folder(folder, contents, kKnown, problems));
    EXPECT_EQ(fs::exists(folder / "model.safetensors"), limit > 1000);
    if (limit == 1) {
      EXPECT_TRUE(fs::exists(folder / "model-00007-of-00007.safetensors"));
      EXPECT_NE(text_of(folder / "model.safetensors.index.json").find("\"total_size\": 448"),
                std::string::npos);
    }
    const auto read = ModelFolder::open(folder, problems);
    ASSERT_TRUE(read) << to_string(problems.at(0));
    ASSERT_EQ(read->tensors().size(), contents.tensors.size());
    for (std::size_t i = 0; i < contents.tensors.size(); ++i) {
      const TensorView* view = read->find(contents.tensors[i].name);
      ASSERT_NE(view, nullptr);
      EXPECT_EQ(static_cast<const TensorSpec&>(*view), contents.tensors[i]);
      for (std::size_t k = 0; k < view->data.size() / 2; ++k) {
        std::uint16_t value;
        std::memcpy(&value, view->data.data() + 2 * k, 2);
        ASSERT_EQ(value, known_value(i, k));
      }
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(temporary.path), {}), 1) << "leftovers";
  }
}

TEST(ModelFolder, TheConfigKeepsItsKeysAndStatesTheTypeOfTheTensors) {
  TemporaryFolder temporary;
  Problems problems;
  ASSERT_TRUE(write_model_folder(temporary.path / "hf", small_contents(), kKnown, problems));
  const std::string config = text_of(temporary.path / "hf" / "config.json");
  EXPECT_NE(config.find("\"torch_dtype\": \"bfloat16\""), std::string::npos) << config;
  EXPECT_LT(config.find("model_type"), config.find("torch_dtype"));
  EXPECT_NE(config.find("1e-06"), std::string::npos) << config;
  EXPECT_EQ(config.find("\"dtype\""), std::string::npos);
}

TEST(ModelFolder, TokenizerFilesTravelUnchanged) {
  TemporaryFolder temporary;
  write_text(temporary.path / "from" / "tokenizer.json", "{\"any\":\n1}");
  write_text(temporary.path / "from" / "tokenizer_config.json", "{}");
  write_text(temporary.path / "from" / "pytorch_model.bin", "pickle");
  ModelFolderContents contents = small_contents();
  contents.tokenizer_from = temporary.path / "from";
  Problems problems;
  ASSERT_TRUE(write_model_folder(temporary.path / "hf", contents, kKnown, problems));
  EXPECT_EQ(text_of(temporary.path / "hf" / "tokenizer.json"), "{\"any\":\n1}");
  EXPECT_FALSE(fs::exists(temporary.path / "hf" / "pytorch_model.bin"));
}

TEST(ModelFolder, NeverOverwritesAndLeavesNothingWhenTheSourceFails) {
  TemporaryFolder temporary;
  write_text(temporary.path / "hf" / "mine.txt", "kept");
  Problems problems;
  EXPECT_FALSE(write_model_folder(temporary.path / "hf", small_contents(), kKnown, problems));
  EXPECT_EQ(problems.size(), 1u);
  EXPECT_EQ(text_of(temporary.path / "hf" / "mine.txt"), "kept");

  int asked = 0;
  const TensorSource failing = [&](std::size_t, std::span<std::byte>, Problems& out) {
    if (++asked < 3) return true;
    out.push_back({.found = "lost"});
    return false;
  };
  EXPECT_FALSE(write_model_folder(temporary.path / "new", small_contents(), failing, problems));
  EXPECT_EQ(problems.back().found, "lost");
  EXPECT_EQ(std::distance(fs::directory_iterator(temporary.path), {}), 1) << "only hf is there";
}

struct BadFolder {
  const char* what;
  void (*make)(const fs::path& folder);
  std::string says;
};

std::string index_of(const std::string& map, const std::string& metadata = "{}") {
  return R"({"metadata":)" + metadata + R"(,"weight_map":)" + map + "}";
}

constexpr const char* kIndex = "model.safetensors.index.json";

const BadFolder kBadFolders[] = {
    {"absent", [](const fs::path&) {}, "No such file"},
    {"empty", [](const fs::path& f) { fs::create_directories(f); }, "safetensors"},
    {"pickle only", [](const fs::path& f) { write_text(f / "pytorch_model.bin", "\x80\x02}"); },
     "pickle and is never opened"},
    {"index is no JSON", [](const fs::path& f) { write_text(f / kIndex, "{"); }, "JSON"},
    {"index is a list", [](const fs::path& f) { write_text(f / kIndex, "[]"); }, "weight_map"},
    {"no weight_map", [](const fs::path& f) { write_text(f / kIndex, "{}"); }, "weight_map"},
    {"weight_map is a list", [](const fs::path& f) { write_text(f / kIndex, index_of("[]")); },
     "weight_map"},
    {"file name is a number",
     [](const fs::path& f) { write_text(f / kIndex, index_of(R"({"a":1})")); }, "a file name"},
    {"duplicate tensor in the map",
     [](const fs::path& f) {
       write_text(f / kIndex, index_of(R"({"a":"x.safetensors","a":"x.safetensors"})"));
     },
     "again"},
    {"shard is absent",
     [](const fs::path& f) { write_text(f / kIndex, index_of(R"({"a":"x.safetensors"})")); },
     "no such file"},
    {"absolute path",
     [](const fs::path& f) { write_text(f / kIndex, index_of(R"({"a":"/etc/x.safetensors"})")); },
     "leaves the folder"},
    {"path upwards",
     [](const fs::path& f) {
       write_shard(f.parent_path() / "x.safetensors", "a");
       write_text(f / kIndex, index_of(R"({"a":"../x.safetensors"})"));
     },
     "leaves the folder"},
    {"empty path", [](const fs::path& f) { write_text(f / kIndex, index_of(R"({"a":""})")); },
     "leaves"},
    {"shard is pickle",
     [](const fs::path& f) {
       write_text(f / "x.bin", "");
       write_text(f / kIndex, index_of(R"({"a":"x.bin"})"));
     },
     "no other kind is ever opened"},
    {"link out of the folder",
     [](const fs::path& f) {
       write_shard(f.parent_path() / "x.safetensors", "a");
       fs::create_directories(f);
       fs::create_symlink("../x.safetensors", f / "model.safetensors");
     },
     "a link to"},
    {"linked folder inside leads out",
     [](const fs::path& f) {
       write_shard(f.parent_path() / "other" / "x.safetensors", "a");
       fs::create_directories(f);
       fs::create_directory_symlink("../other", f / "sub");
       write_text(f / kIndex, index_of(R"({"a":"sub/x.safetensors"})"));
     },
     "a link to"},
    {"map names the wrong file",
     [](const fs::path& f) {
       write_shard(f / "x.safetensors", "a");
       write_shard(f / "y.safetensors", "b");
       write_text(f / kIndex, index_of(R"({"a":"y.safetensors","b":"x.safetensors"})"));
     },
     "which holds it"},
    {"map lacks a tensor of the shard",
     [](const fs::path& f) {
       write_shard(f / "x.safetensors", "a");
       write_shard(f / "y.safetensors", "b");
       write_text(f / kIndex, index_of(R"({"a":"x.safetensors","c":"y.safetensors"})"));
     },
     "no entry for b"},
    {"map names a tensor that is nowhere",
     [](const fs::path& f) {
       write_shard(f / "x.safetensors", "a");
       write_text(f / kIndex, index_of(R"({"a":"x.safetensors","b":"x.safetensors"})"));
     },
     "does not hold it"},
    {"the same tensor in two shards",
     [](const fs::path& f) {
       write_shard(f / "x.safetensors", "a");
       write_shard(f / "y.safetensors", "a");
       write_text(f / kIndex, index_of(R"({"a":"x.safetensors","b":"y.safetensors"})"));
     },
     "holds too"},
    {"cut shard",
     [](const fs::path& f) {
       write_shard(f / "model.safetensors", "a");
       fs::resize_file(f / "model.safetensors", fs::file_size(f / "model.safetensors") - 1);
     },
     "begin <= end"},
};

TEST(ModelFolder, EveryMalformedFolderIsRefusedWithAReason) {
  ASSERT_GE(std::size(kBadFolders), 20u);
  for (const BadFolder& bad : kBadFolders) {
    TemporaryFolder temporary;
    const fs::path folder = temporary.path / "inside" / "model";
    bad.make(folder);
    Problems problems;
    EXPECT_FALSE(ModelFolder::open(folder, problems)) << bad.what;
    std::string all;
    for (const Problem& problem : problems) all += to_string(problem) + "\n";
    EXPECT_NE(all.find(bad.says), std::string::npos) << bad.what << ": " << all;
  }
}

// transformers does not look at it either.
TEST(ModelFolder, AWrongTotalSizeIsNoFault) {
  for (const char* metadata : {R"({"total_size":5})", R"({"total_size":"4"})"}) {
    TemporaryFolder temporary;
    write_shard(temporary.path / "x.safetensors", "a");
    write_text(temporary.path / kIndex, index_of(R"({"a":"x.safetensors"})", metadata));
    Problems problems;
    EXPECT_TRUE(ModelFolder::open(temporary.path, problems)) << to_string(problems.at(0));
  }
}

TEST(ModelFolder, TheHubCacheWithItsLinksIntoBlobsIsRead) {
  TemporaryFolder temporary;
  const fs::path repository = temporary.path / "models--a--b";
  write_shard(repository / "blobs" / "0123abcd", "a");
  fs::create_directories(repository / "snapshots" / "rev");
  fs::create_symlink("../../blobs/0123abcd",
                     repository / "snapshots" / "rev" / "model.safetensors");
  Problems problems;
  const auto read = ModelFolder::open(repository / "snapshots" / "rev", problems);
  ASSERT_TRUE(read) << to_string(problems.at(0));
  EXPECT_NE(read->find("a"), nullptr);
}

TEST(ModelFolder, MissingMisshapenAndUnknownTensorsAreAllNamed) {
  TemporaryFolder temporary;
  ModelFolderContents contents = small_contents();
  contents.tensors = {{"a", DType::bf16, {2, 3}},
                      {"odd", DType::bf16, {1}},
                      {"lm_head.weight", DType::bf16, {2, 3}}};
  Problems problems;
  ASSERT_TRUE(write_model_folder(temporary.path / "hf", contents, kKnown, problems));
  const auto folder = ModelFolder::open(temporary.path / "hf", problems);
  ASSERT_TRUE(folder);
  ParameterTable table;
  table.model.tied_embeddings = true;
  table.rows = {Parameter{.name = "a", .shape = {3, 2}}, Parameter{.name = "b", .shape = {1}},
                Parameter{.name = "score.weight", .shape = {1, 3}}};
  EXPECT_FALSE(check_tensors(*folder, table, problems));
  ASSERT_EQ(problems.size(), 2U) << "a value head is drawn";
  EXPECT_EQ(problems[0].place, "a");
  EXPECT_EQ(problems[0].found, "shape [2, 3]");
  EXPECT_EQ(problems[0].expected, "shape [3, 2] by config.json");
  EXPECT_EQ(problems[1].place, "b");
  EXPECT_EQ(unknown_tensors(*folder, table), std::vector<std::string>{"odd"});
  table.model.tied_embeddings = false;
  EXPECT_EQ(unknown_tensors(*folder, table), (std::vector<std::string>{"lm_head.weight", "odd"}));
}

// transformers 5.17: "both are present in the checkpoints with different values, so we will NOT tie
// them".
TEST(ModelFolder, ATiedHeadIsTheEmbedding) {
  for (const bool same : {true, false}) {
    TemporaryFolder temporary;
    ModelFolderContents contents = small_contents();
    contents.tensors = {{"embed", DType::bf16, {2, 3}}, {"lm_head.weight", DType::bf16, {2, 3}}};
    const TensorSource source = [&](std::size_t index, std::span<std::byte> to, Problems&) {
      std::fill(to.begin(), to.end(), std::byte(same ? 1 : index));
      return true;
    };
    Problems problems;
    ASSERT_TRUE(write_model_folder(temporary.path / "hf", contents, source, problems));
    const auto folder = ModelFolder::open(temporary.path / "hf", problems);
    ASSERT_TRUE(folder);
    ParameterTable table;
    table.model.tied_embeddings = true;
    table.rows = {
        Parameter{.name = "embed", .shape = {2, 3}, .place = StagePlace::embedding_and_head}};
    EXPECT_EQ(check_tensors(*folder, table, problems), same);
    if (same) continue;
    EXPECT_EQ(problems.at(0).place, "lm_head.weight");
    EXPECT_EQ(problems.at(0).found, "other values than those of embed");
  }
}

TEST(ModelFolder, TransformersAndWeReadEachOthersFolders) {
  const std::string python = python_with("transformers");
  if (python.empty()) GTEST_SKIP() << "no Python with transformers: set TESSERA_VENV";
  const std::string script = TESSERA_SOURCE_DIR "/tests/executor/checkpoint/model_folder_oracle.py";
  TemporaryFolder temporary;
  const std::string root = temporary.path.string();
  ASSERT_EQ(run_python(python, script + " save " + root), 0);

  Problems problems;
  const auto theirs = ModelFolder::open(temporary.path / "model", problems);
  ASSERT_TRUE(theirs) << to_string(problems.at(0));
  EXPECT_TRUE(fs::exists(temporary.path / "model" / kIndex)) << "the oracle saved several shards";
  ModelFolderContents contents;
  contents.config_json = text_of(temporary.path / "model" / "config.json");
  contents.max_shard_bytes = 9000;
  std::vector<const TensorView*> views;
  for (const auto& [name, view] : theirs->tensors()) {
    const std::string raw = text_of(temporary.path / "raw" / name);
    ASSERT_EQ(raw.size(), view.data.size()) << name;
    EXPECT_EQ(std::memcmp(raw.data(), view.data.data(), raw.size()), 0) << name;
    contents.tensors.push_back(view);
    views.push_back(&view);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(temporary.path / "raw"), {}),
            static_cast<std::ptrdiff_t>(views.size()));

  const TensorSource source = [&](std::size_t i, std::span<std::byte> out, Problems&) {
    std::memcpy(out.data(), views[i]->data.data(), out.size());
    return true;
  };
  ASSERT_TRUE(write_model_folder(temporary.path / "ours", contents, source, problems));
  EXPECT_EQ(run_python(python, script + " compare " + root + "/model " + root + "/ours"), 0);
}

}  // namespace
}  // namespace tessera
