#include "executor/data/model_tokens.h"

#include <algorithm>
#include <string>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"

namespace tessera {

std::vector<std::int32_t> end_tokens(const std::filesystem::path& folder, Problems& problems) {
  const auto file = folder / "generation_config.json";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  const auto text = read_text_file(file, std::size_t{1} << 20, problems);
  const auto document = text ? parse_json(*text, file.string(), problems) : std::nullopt;
  const Node* stated = document ? document->root.find("eos_token_id") : nullptr;
  if (stated == nullptr || stated->is(Node::Kind::null)) return {};
  std::vector<std::int32_t> ends;
  const std::vector<Node> one{*stated};
  for (const Node& each : stated->is(Node::Kind::list) ? stated->items : one) {
    if (!each.is(Node::Kind::integer) || each.integer < 0 || each.integer > 0x7fffffff) {
      problems.push_back({.file = file.string(),
                          .place = "/eos_token_id",
                          .found = describe(each),
                          .expected = "an id, or a list of ids"});
      return {};
    }
    ends.push_back(static_cast<std::int32_t>(each.integer));
  }
  return ends;
}

std::string end_token_of_tokenizer(const std::filesystem::path& folder, Problems& problems) {
  const auto file = folder / "tokenizer_config.json";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  const auto text = read_text_file(file, std::size_t{16} << 20, problems);
  const auto document = text ? parse_json(*text, file.string(), problems) : std::nullopt;
  const Node* stated = document ? document->root.find("eos_token") : nullptr;
  if (stated != nullptr && stated->is(Node::Kind::map)) stated = stated->find("content");
  return stated != nullptr && stated->is(Node::Kind::string) ? stated->text : "";
}

void check_vocabulary(const std::vector<std::vector<std::int32_t>>& prompts,
                      const std::vector<std::int32_t>& ends, std::int64_t vocabulary,
                      const std::filesystem::path& folder,
                      const std::function<std::string(std::size_t prompt)>& place_of,
                      Problems& problems) {
  const auto refuse = [&](const char* file, std::int32_t id, const std::string& what) {
    problems.push_back(
        {.file = (folder / file).string(),
         .found = "token " + std::to_string(id) + what,
         .expected = "ids below " + std::to_string(vocabulary) + ", the model's vocab_size"});
  };
  for (const std::int32_t id : ends) {
    if (id >= vocabulary) refuse("generation_config.json", id, " as the end of a response");
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty()) continue;
    const std::int32_t largest = *std::ranges::max_element(prompts[i]);
    if (largest < vocabulary) continue;
    return refuse("tokenizer.json", largest, " in the prompt of " + place_of(i));
  }
}

}  // namespace tessera
