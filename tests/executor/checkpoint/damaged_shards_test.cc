// A thousand damaged shards of a checkpoint (row C3 of the faults that a trainer must survive):
// flipped bits, files cut short, files of two ranks or two steps exchanged. Where a byte lies is
// found by nlohmann's reader of the format's header, not by ours.
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "cost_models/documents/problem.h"
#include "tests/executor/checkpoint/two_ranks.h"
#include "tests/executor/temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The tensor that a byte of a safetensors file belongs to; empty in the header and in padding.
std::string tensor_at(const std::string& bytes, std::size_t at) {
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::size_t data = sizeof header + header;
  if (at < data) return {};
  const auto tensors = nlohmann::json::parse(bytes.substr(sizeof header, header));
  for (const auto& [name, tensor] : tensors.items()) {
    if (!tensor.contains("data_offsets")) continue;
    const std::size_t first = tensor["data_offsets"][0], last = tensor["data_offsets"][1];
    if (at >= data + first && at < data + last) return name;
  }
  return {};
}

class DamagedShards : public testing::TestWithParam<Pieces> {
 protected:
  void SetUp() override {
    for (const int step : {1, 2}) {
      ASSERT_TRUE(save(folder_.path, step, 0, {}, GetParam()).problems.empty());
    }
    for (const std::string& name : names_) {
      whole_.push_back(read(file(name)));
      other_step_.push_back(read(checkpoint_path(folder_.path, 1) / name));
    }
  }

  fs::path file(const std::string& name) const { return checkpoint_path(folder_.path, 2) / name; }

  /// What whoever reads the whole checkpoint is told: (file, tensor), empty where it is sound.
  std::set<std::pair<std::string, std::string>> told() const {
    Problems problems;
    if (const auto open = open_checkpoint(checkpoint_path(folder_.path, 2), problems)) {
      for (const auto& [state, pieces] : open->pieces) {
        for (const SavedPiece& piece : pieces) check_digest(*piece.view, piece.digest, problems);
      }
    }
    std::set<std::pair<std::string, std::string>> places;
    for (const Problem& each : problems) {
      places.insert({fs::path(each.file).filename().string(), each.place});
    }
    return places;
  }

  TemporaryFolder folder_;
  std::vector<std::string> names_ = files_of(GetParam());
  std::vector<std::string> whole_, other_step_;  // as names_
};

TEST_P(DamagedShards, AreToldByFileAndTensorWithoutExceptionAThousandTimes) {
  std::mt19937_64 random(11);
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  ASSERT_TRUE(told().empty());
  int of_tensors = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::size_t at = below(names_.size());
    const std::string& sound = whole_[at];
    std::string changed = sound, tensor;
    std::set<std::string> files = {names_[at]};
    switch (i % 4) {
      case 0: {
        const std::size_t byte = below(sound.size());
        changed[byte] = static_cast<char>(changed[byte] ^ (1 << below(8)));
        tensor = tensor_at(sound, byte);
        break;
      }
      case 1:
        changed.resize(below(sound.size()));
        break;
      case 2:
        changed = other_step_[at];
        break;
      default: {  // another file's, of this rank or another one, and this one's there
        const std::size_t other = (at + 1 + below(names_.size() - 1)) % names_.size();
        changed = whole_[other];
        write(file(names_[other]), sound);
        files = {names_[at], names_[other]};
      }
    }
    write(file(names_[at]), changed);
    const auto places = told();
    std::set<std::string> named;
    for (const auto& [name, place] : places) named.insert(name);
    ASSERT_EQ(named, files) << i;
    if (!tensor.empty()) {
      ++of_tensors;
      const std::set<std::pair<std::string, std::string>> wanted = {{*files.begin(), tensor}};
      ASSERT_EQ(places, wanted) << i;
    }
    for (std::size_t each = 0; each < names_.size(); ++each) {
      write(file(names_[each]), whole_[each]);
    }
  }
  EXPECT_GT(of_tensors, 5);
  EXPECT_TRUE(told().empty());
}

INSTANTIATE_TEST_SUITE_P(Of, DamagedShards, testing::Values(Pieces::whole, Pieces::rows),
                         [](const auto& info) {
                           return std::string(info.param == Pieces::whole ? "ranks" : "parts");
                         });

}  // namespace
}  // namespace tessera
