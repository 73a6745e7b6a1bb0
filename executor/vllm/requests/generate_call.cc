#include "executor/vllm/requests/generate_call.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

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

/// What a log-prob is at most: a rounding above 0.
constexpr float kMostLogProb = 1e-3F;

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
    require(!response.empty(), "a response without tokens (" + reason + ")");
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

std::vector<float> log_probs_of(const json& sample, const std::vector<std::int32_t>& response,
                                const ReplyCheck& check) {
  const json& told = sample.at("log_probs");
  const bool others =
      std::any_of(told.begin(), told.end(), [](const json& v) { return v.is_null(); });
  check.require(!others, "log-probs of other tokens than it has drawn");
  const auto values = told.get<std::vector<float>>();
  check.require(values.size() == response.size(), std::to_string(values.size()) + " log-probs of " +
                                                      std::to_string(response.size()) + " tokens");
  for (std::size_t i = 0; i < values.size(); ++i) {
    check.require(
        std::isfinite(values[i]) && values[i] <= kMostLogProb,
        "a log-prob of " + std::to_string(values[i]) + " for token " + std::to_string(response[i]));
  }
  return values;
}

Sequence sequence_of(const json& sample, const TokenPrompt& prompt, std::int32_t index,
                     const RolloutOptions& options, const ReplyCheck& check) {
  Sequence sequence;
  sequence.prompt_index = prompt.prompt_index;
  sequence.sample_index = index;
  sequence.uid = prompt.uid;
  sequence.prompt = prompt.tokens;
  sequence.response = sample.at("token_ids").get<std::vector<std::int32_t>>();
  const json& reason = sample.at("finish_reason");
  check.tokens(sequence.response, limit_of(prompt, index, options),
               reason.is_string() ? reason.get<std::string>() : "no reason");
  sequence.finished = check.ends(sequence.response.back());
  sequence.rollout_log_prob = log_probs_of(sample, sequence.response, check);
  return sequence;
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

std::string generate_body(std::int64_t step, const TokenPrompt& prompt,
                          const RolloutOptions& options) {
  const SamplingOptions& sampling = options.sampling;
  json seeds = json::array(), limits = json::array();
  for (std::int32_t sample = 0; sample < prompt.samples; ++sample) {
    seeds.push_back(request_seed(options.seed, step, prompt, sample));
    limits.push_back(limit_of(prompt, sample, options));
  }
  const json body{{"token_ids", prompt.tokens},
                  {"seeds", std::move(seeds)},
                  {"max_tokens", std::move(limits)},
                  {"sampling_params",
                   {{"temperature", sampling.temperature},
                    {"top_p", sampling.top_p},
                    {"top_k", std::max<std::int64_t>(sampling.top_k, 0)},
                    {"min_p", sampling.min_p},
                    {"stop_token_ids", options.eos},
                    {"ignore_eos", true}}}};  // ours are those that are named
  return body.dump();
}

std::vector<Sequence> read_samples_of(const std::string& reply, const TokenPrompt& prompt,
                                      const RolloutOptions& options, std::int64_t vocabulary) {
  const ReplyCheck check(prompt, options, vocabulary);
  std::vector<Sequence> sequences;
  try {
    const json body = json::parse(reply);
    const json& samples = body.at("samples");
    check.require(samples.size() == static_cast<std::size_t>(prompt.samples),
                  std::to_string(samples.size()) + " samples, " + std::to_string(prompt.samples) +
                      " asked for");
    for (std::int32_t i = 0; i < prompt.samples; ++i) {
      const json& sample = samples.at(static_cast<std::size_t>(i));
      sequences.push_back(sequence_of(sample, prompt, i, options, check));
    }
  } catch (const json::exception& error) {
    check.refuse(error.what());
  }
  return sequences;
}

const char* logprobs_mode(const SamplingOptions& sampling) {
  if (sampling.temperature == 1) return "raw_logprobs";
  const bool all_tokens = sampling.top_k <= 0 && sampling.top_p >= 1 && sampling.min_p == 0;
  return all_tokens ? "processed_logprobs" : nullptr;
}

}  // namespace tessera
