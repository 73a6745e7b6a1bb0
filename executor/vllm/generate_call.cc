#include "executor/vllm/generate_call.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cost_models/documents/problem.h"
#include "executor/rl/sampling.h"

namespace tessera {
namespace {

using nlohmann::json;

std::int64_t limit_of(const TokenPrompt& prompt, std::int32_t sample,
                      const RolloutOptions& options) {
  const auto index = static_cast<std::size_t>(sample);
  return index < prompt.limits.size() ? prompt.limits[index] : options.max_response_tokens;
}

/// Stands for a log-prob that vLLM does not have (serving.py, _create_tokens_logprobs).
constexpr float kNoLogProb = -9999;

/// Refusals of one reply.
class ReplyCheck {
 public:
  ReplyCheck(const TokenPrompt& prompt, const RolloutOptions& options, std::int64_t vocabulary)
      : prompt_(prompt), options_(options), vocabulary_(vocabulary) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ExitCode::check_failed,
                "vLLM's reply to prompt " + std::to_string(prompt_.prompt_index) + ": " + what);
  }
  void require(bool is, const std::string& what) const {
    if (!is) refuse(what);
  }

  bool ends(std::int32_t token) const {
    return std::find(options_.eos.begin(), options_.eos.end(), token) != options_.eos.end();
  }

  void tokens(const std::vector<std::int32_t>& response, std::int64_t limit,
              const std::string& reason) const {
    require(!response.empty(), "a response without tokens");
    const auto length = static_cast<std::int64_t>(response.size());
    require(length <= limit, std::to_string(length) + " tokens, more than the " +
                                 std::to_string(limit) + " asked for");
    for (std::size_t i = 0; i < response.size(); ++i) {
      const std::int32_t token = response[i];
      require(token >= 0 && token < vocabulary_,
              "token " + std::to_string(token) + ", which the model does not have");
      require(i + 1 == response.size() || !ends(token),
              "tokens behind the end token " + std::to_string(token));
    }
    const bool ended = ends(response.back());
    require(ended || length == limit, std::to_string(length) + " tokens without an end token, " +
                                          std::to_string(limit) + " asked for (" + reason + ")");
  }

 private:
  const TokenPrompt& prompt_;
  const RolloutOptions& options_;
  std::int64_t vocabulary_;
};

/// `logprobs.content`, whose entries name their tokens (serving.py, _create_tokens_logprobs).
std::vector<float> log_probs_of(const json& choice, const std::vector<std::int32_t>& response,
                                const ReplyCheck& check) {
  const json& content = choice.at("logprobs").at("content");
  check.require(content.size() == response.size(), std::to_string(content.size()) +
                                                       " log-probs of " +
                                                       std::to_string(response.size()) + " tokens");
  std::vector<float> values;
  values.reserve(response.size());
  for (std::size_t i = 0; i < response.size(); ++i) {
    const auto& token = content[i].at("token").get_ref<const std::string&>();
    const std::string expected = "token_id:" + std::to_string(response[i]);
    check.require(token == expected, "the log-prob of " + token + " for " + expected);
    const float value = content[i].at("logprob").get<float>();
    check.require(value > kNoLogProb && value <= 1e-3F,
                  "a log-prob of " + std::to_string(value) + " for " + expected);
    values.push_back(value);
  }
  return values;
}

}  // namespace

std::int64_t request_seed(std::uint64_t seed, std::int64_t step, const TokenPrompt& prompt,
                          std::int32_t sample) {
  const auto words =
      random_words(seed, {.step = static_cast<std::uint32_t>(step),
                          .prompt = static_cast<std::uint32_t>(prompt.prompt_index)});
  const std::uint64_t base = (std::uint64_t{words[0]} << 32 | words[1]) >> 2;
  return static_cast<std::int64_t>(base) + sample;
}

std::string generate_body(std::int64_t step, const TokenPrompt& prompt, std::int32_t sample,
                          const RolloutOptions& options) {
  const SamplingOptions& sampling = options.sampling;
  json body{{"token_ids", prompt.tokens}};  // without a name: the server's one model
  body["sampling_params"] = {{"n", 1},
                             {"temperature", sampling.temperature},
                             {"top_p", sampling.top_p},
                             {"top_k", std::max<std::int64_t>(sampling.top_k, 0)},
                             {"min_p", sampling.min_p},
                             {"seed", request_seed(options.seed, step, prompt, sample)},
                             {"max_tokens", limit_of(prompt, sample, options)},
                             {"stop_token_ids", options.eos},
                             {"ignore_eos", true},  // ours are those that are named
                             {"logprobs", 0},       // of the drawn token
                             {"detokenize", false}};
  return body.dump();
}

Sequence read_sample_of(const std::string& reply, const TokenPrompt& prompt, std::int32_t sample,
                        const RolloutOptions& options, std::int64_t vocabulary) {
  const ReplyCheck check(prompt, options, vocabulary);
  Sequence sequence;
  sequence.prompt_index = prompt.prompt_index;
  sequence.sample_index = sample;
  sequence.uid = prompt.uid;
  sequence.prompt = prompt.tokens;
  try {
    const json body = json::parse(reply);
    const json& choices = body.at("choices");
    check.require(choices.size() == 1, std::to_string(choices.size()) + " samples, one asked for");
    const json& choice = choices.front();
    sequence.response = choice.at("token_ids").get<std::vector<std::int32_t>>();
    const json& reason = choice.at("finish_reason");
    check.tokens(sequence.response, limit_of(prompt, sample, options),
                 reason.is_string() ? reason.get<std::string>() : "no reason");
    sequence.finished = check.ends(sequence.response.back());
    sequence.rollout_log_prob = log_probs_of(choice, sequence.response, check);
  } catch (const json::exception& error) {
    check.refuse(error.what());
  }
  return sequence;
}

const char* logprobs_mode(const SamplingOptions& sampling) {
  if (sampling.temperature == 1) return "raw_logprobs";
  const bool all_tokens = sampling.top_k <= 0 && sampling.top_p >= 1 && sampling.min_p == 0;
  return all_tokens ? "processed_logprobs" : nullptr;
}

}  // namespace tessera
