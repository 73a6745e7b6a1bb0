#include "executor/data/digit_tasks.h"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "cost_models/spec/enum_names.h"
#include "executor/checkpoint/atomic_file.h"
#include "executor/data/counter_random.h"

namespace tessera {
namespace {

constexpr auto kTasks = enum_names<DigitTask>(
    {{DigitTask::reverse, "reverse"}, {DigitTask::copy, "copy"}, {DigitTask::sort, "sort"}});
constexpr const char* kEnd = "<|endoftext|>";
constexpr const char* kPad = "<|pad|>";
constexpr std::string_view kTokens[kDigitVocabulary] = {"0", "1", "2",  "3",  "4", "5", "6", "7",
                                                        "8", "9", kPad, kEnd, "=", "c", "r", "s"};

Node special_token(std::int32_t id, const char* content) {
  Node token = map_node();
  add(token, "id", node_of(id));
  add(token, "content", node_of(std::string_view(content)));
  for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"}) {
    add(token, key, node_of(false));
  }
  add(token, "special", node_of(true));
  return token;
}

/// {"split": split, "index": index}
std::string extra_info(const std::string& split, std::int64_t index) {
  Node extra = map_node();
  add(extra, "split", node_of(split));
  add(extra, "index", node_of(index));
  return json_line(extra);
}

Node byte_level(bool add_prefix_space) {
  Node step = map_node();
  add(step, "type", node_of(std::string_view("ByteLevel")));
  add(step, "add_prefix_space", node_of(add_prefix_space));
  add(step, "trim_offsets", node_of(false));
  add(step, "use_regex", node_of(false));
  return step;
}

}  // namespace

std::string_view name_of(DigitTask task) { return kTasks[task]; }

std::optional<DigitTask> digit_task_from(std::string_view name) { return kTasks.find(name); }

std::string digit_answer(DigitTask task, std::string_view digits) {
  std::string answer(digits);
  if (task == DigitTask::reverse) std::ranges::reverse(answer);
  if (task == DigitTask::sort) std::ranges::sort(answer);
  return answer;
}

std::vector<Prompt> make_digit_prompts(DigitTask task, int digits, std::int64_t count,
                                       std::uint64_t seed, const std::string& split) {
  const std::string name(name_of(task));
  const std::string set = name + "/" + std::to_string(digits) + "/" + split;
  const std::uint64_t set_seed = seed ^ XXH3_64bits(set.data(), set.size());
  std::vector<Prompt> prompts;
  for (std::int64_t i = 0; i < count; ++i) {
    std::string text;
    for (int d = 0; d < digits; ++d) {
      text += static_cast<char>('0' + random_below(10, set_seed, RandomUse::digit_tasks,
                                                   static_cast<std::uint64_t>(i),
                                                   static_cast<std::uint32_t>(d)));
    }
    prompts.push_back({.data_source = "tessera/" + name,
                       .messages = {{"", name.substr(0, 1) + text + "="}},
                       .ability = "digits",
                       .reward_style = "rule",
                       .ground_truth = digit_answer(task, text),
                       .extra_info = extra_info(split, i)});
  }
  return prompts;
}

bool make_data(DigitTask task, int digits, std::int64_t count, std::uint64_t seed,
               const std::string& split, const std::filesystem::path& file, Problems& problems) {
  if (digits < 1 || count < 1) {
    problems.push_back(
        {.file = file.string(),
         .found = std::to_string(count) + " prompts of " + std::to_string(digits) + " digits",
         .expected = "at least one prompt of at least one digit"});
    return false;
  }
  std::string text;
  for (const Prompt& prompt : make_digit_prompts(task, digits, count, seed, split)) {
    text += to_json_line(prompt) + "\n";
  }
  return write_file_atomically(file, text, problems);
}

std::string digit_tokenizer_json() {
  Node root = map_node();
  add(root, "version", node_of(std::string_view("1.0")));
  add(root, "truncation", {});
  add(root, "padding", {});
  Node added = list_node();
  added.items = {special_token(kDigitPadToken, kPad), special_token(kDigitEndToken, kEnd)};
  add(root, "added_tokens", std::move(added));
  add(root, "normalizer", {});
  add(root, "pre_tokenizer", byte_level(false));
  add(root, "post_processor", {});
  add(root, "decoder", byte_level(false));
  Node vocab = map_node();
  for (int i = 0; i < kDigitVocabulary; ++i) add(vocab, kTokens[i], node_of(i));
  Node model = map_node();
  add(model, "type", node_of(std::string_view("BPE")));
  for (const char* key :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    add(model, key, {});
  }
  for (const char* key : {"fuse_unk", "byte_fallback", "ignore_merges"}) {
    add(model, key, node_of(false));
  }
  add(model, "vocab", std::move(vocab));
  add(model, "merges", list_node());
  add(root, "model", std::move(model));
  return json_text(root);
}

std::string digit_tokenizer_config_json() {
  Node root = map_node();
  add(root, "tokenizer_class", node_of(std::string_view("PreTrainedTokenizerFast")));
  add(root, "eos_token", node_of(std::string_view(kEnd)));
  add(root, "pad_token", node_of(std::string_view(kPad)));
  add(root, "clean_up_tokenization_spaces", node_of(false));
  return json_text(root);
}

bool write_digit_tokenizer(const std::filesystem::path& folder, Problems& problems) {
  return write_file_atomically(folder / "tokenizer.json", digit_tokenizer_json(), problems) &&
         write_file_atomically(folder / "tokenizer_config.json", digit_tokenizer_config_json(),
                               problems);
}

}  // namespace tessera
