#include <algorithm>
#include <set>
#include <string_view>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/families.h"
#include "executor/checkpoint/model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using Kind = Node::Kind;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
const std::string kHead = "lm_head.weight";

bool within(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

/// The file to open for `name`, or nothing with a Problem when it leads out of the folder.
std::optional<fs::path> resolved(const fs::path& folder, const std::string& name,
                                 const std::string& listed_in, Problems& problems) {
  const auto refuse = [&](std::string found, std::string expected) {
    problems.push_back({.file = listed_in,
                        .place = name,
                        .found = std::move(found),
                        .expected = std::move(expected)});
    return std::nullopt;
  };
  const fs::path relative(name);
  const bool plain = !name.empty() && name.find('\0') == std::string::npos &&
                     relative.is_relative() &&
                     std::none_of(relative.begin(), relative.end(),
                                  [](const fs::path& part) { return part == ".."; });
  if (!plain) return refuse("a path that leaves the folder", "a file name inside the folder");
  if (relative.extension() != ".safetensors") {
    return refuse("'" + name + "'", "a .safetensors file; no other kind is ever opened");
  }
  std::error_code error;
  const fs::path target = fs::canonical(folder / relative, error);
  if (error) return refuse("no such file", "a file inside " + folder.string());
  const fs::path home = fs::canonical(folder, error);
  const bool hub_blob = home.parent_path().filename() == "snapshots" &&
                        within(target, home.parent_path().parent_path() / "blobs");
  if (!within(target, home) && !hub_blob) {
    return refuse("a link to " + target.string(), "a file inside the folder");
  }
  return target;
}

/// The content of model.safetensors.index.json that counts: its total_size is wrong in published
/// folders, nothing reads it, and every tensor's size is checked.
struct Index {
  std::map<std::string, std::string> file_of;  // by tensor
};

std::optional<Index> read_index(const fs::path& path, Problems& problems) {
  const std::size_t before = problems.size();
  const auto refuse = [&](std::string place, std::string found, std::string expected) {
    problems.push_back({.file = path.string(),
                        .place = std::move(place),
                        .found = std::move(found),
                        .expected = std::move(expected)});
  };
  const auto text = MappedFile::open(path, problems);
  if (!text) return std::nullopt;
  const auto document =
      parse_json({reinterpret_cast<const char*>(text->bytes().data()), text->bytes().size()},
                 path.string(), problems);
  if (!document) return std::nullopt;
  const Node* map = document->root.find("weight_map");
  if (map == nullptr || !map->is(Kind::map)) {
    refuse("/weight_map", map == nullptr ? "no such key" : describe(*map),
           "an object from tensor to file");
    return std::nullopt;
  }
  Index index;
  for (std::size_t i = 0; i < map->keys.size(); ++i) {
    if (map->items[i].is(Kind::string)) {
      index.file_of[map->keys[i]] = map->items[i].text;
    } else {
      refuse("/weight_map/" + map->keys[i], describe(map->items[i]), "a file name");
    }
  }
  if (problems.size() != before) return std::nullopt;
  return index;
}

void refuse_missing(const fs::path& folder, Problems& problems) {
  Problem problem{.file = folder.string(),
                  .found = "neither model.safetensors nor model.safetensors.index.json",
                  .expected = "a Hugging Face model folder with safetensors"};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path extension = entry.path().extension();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth") {
      problem.hint = entry.path().filename().string() +
                     " is pickle and is never opened; save it again with "
                     "save_pretrained(safe_serialization=True)";
      break;
    }
  }
  if (error) problem.found = error.message();
  problems.push_back(std::move(problem));
}

/// Every tensor that index and files disagree about.
void check_index(const Index& index, const std::map<std::string, TensorView>& tensors,
                 const std::map<std::string, std::string>& listed_name, const std::string& file,
                 Problems& problems) {
  for (const auto& [name, tensor] : tensors) {
    const auto listed = index.file_of.find(name);
    const std::string& holder = listed_name.at(tensor.file);
    if (listed == index.file_of.end()) {
      problems.push_back({.file = file,
                          .place = "/weight_map",
                          .found = "no entry for " + name,
                          .expected = "'" + holder + "', which holds it"});
    } else if (listed->second != holder) {
      problems.push_back({.file = file,
                          .place = "/weight_map/" + name,
                          .found = "'" + listed->second + "'",
                          .expected = "'" + holder + "', which holds it"});
    }
  }
  for (const auto& [name, holder] : index.file_of) {
    if (!tensors.contains(name)) {
      problems.push_back({.file = file,
                          .place = "/weight_map/" + name,
                          .found = "'" + holder + "', which does not hold it",
                          .expected = "the file that holds it"});
    }
  }
}

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "[" : ", ") + std::to_string(size);
  return text.empty() ? "[]" : text + "]";
}

/// Where a model ties its head to the embedding a folder may have both, if they are the same.
void check_tied_head(const ModelFolder& folder, const ParameterTable& table, Problems& problems) {
  const TensorView* const head = folder.find(kHead);
  if (!table.model.tied_embeddings || head == nullptr) return;
  const auto embedding =
      std::ranges::find(table.rows, StagePlace::embedding_and_head, &Parameter::place);
  if (embedding == table.rows.end()) return;
  const TensorView* const tied = folder.find(embedding->name);
  if (tied == nullptr ||
      (tied->dtype == head->dtype && std::ranges::equal(tied->data, head->data))) {
    return;
  }
  problems.push_back({.file = head->file,
                      .place = head->name,
                      .found = "other values than those of " + tied->name,
                      .expected = "the same, or none: config.json has tie_word_embeddings true",
                      .hint = "transformers 5 loads both: tie_word_embeddings false says so"});
}

}  // namespace

std::optional<ModelFolder> ModelFolder::open(const fs::path& folder, Problems& problems) {
  const std::size_t before = problems.size();
  ModelFolder result;
  result.folder_ = folder;
  std::optional<Index> index;
  std::set<std::string> names;
  std::error_code error;
  const std::string listed_in = (folder / kIndex).string();
  if (fs::exists(folder / kSingle, error)) {  // transformers prefers it too
    names.insert(kSingle);
  } else if (fs::exists(folder / kIndex, error)) {
    index = read_index(folder / kIndex, problems);
    if (!index) return std::nullopt;
    for (const auto& [tensor, file] : index->file_of) names.insert(file);
  } else {
    refuse_missing(folder, problems);
    return std::nullopt;
  }

  std::map<std::string, std::string> listed_name;  // by the path that was opened
  for (const std::string& name : names) {
    const auto target =
        resolved(folder, name, index ? listed_in : (folder / kSingle).string(), problems);
    if (!target) continue;
    auto file = open_safetensors(*target, problems);
    if (!file) continue;
    listed_name[target->string()] = name;
    for (const TensorView& tensor : file->tensors) {
      const auto [at, added] = result.tensors_.emplace(tensor.name, tensor);
      if (!added) {
        problems.push_back({.file = tensor.file,
                            .place = tensor.name,
                            .found = "a tensor that " + at->second.file + " holds too",
                            .expected = "every tensor once"});
      }
    }
    result.files_.push_back(std::move(*file));
  }
  if (index && problems.size() == before) {
    check_index(*index, result.tensors_, listed_name, listed_in, problems);
  }
  if (problems.size() != before) return std::nullopt;
  return result;
}

const TensorView* ModelFolder::find(const std::string& name) const {
  const auto at = tensors_.find(name);
  return at == tensors_.end() ? nullptr : &at->second;
}

bool check_tensors(const ModelFolder& folder, const ParameterTable& table, Problems& problems) {
  const std::size_t before = problems.size();
  const std::string_view drawn = facts_of(table.model.family).tensors.value_head;
  for (const Parameter& row : table.rows) {
    const TensorView* tensor = folder.find(row.name);
    if (tensor == nullptr) {
      if (row.name == drawn) continue;
      problems.push_back({.file = folder.path().string(),
                          .place = row.name,
                          .found = "no such tensor",
                          .expected = "shape " + text_of(row.shape)});
    } else if (tensor->shape != row.shape) {
      problems.push_back({.file = tensor->file,
                          .place = row.name,
                          .found = "shape " + text_of(tensor->shape),
                          .expected = "shape " + text_of(row.shape) + " by config.json"});
    }
  }
  if (problems.size() == before) check_tied_head(folder, table, problems);
  return problems.size() == before;
}

std::vector<std::string> unknown_tensors(const ModelFolder& folder, const ParameterTable& table) {
  std::set<std::string_view> known;
  for (const Parameter& row : table.rows) known.insert(row.name);
  std::vector<std::string> unknown;
  for (const auto& [name, tensor] : folder.tensors()) {
    const bool tied_head = table.model.tied_embeddings && name == kHead;
    if (known.contains(name) || tied_head || name.ends_with(".rotary_emb.inv_freq")) continue;
    unknown.push_back(name);
  }
  return unknown;
}

}  // namespace tessera
