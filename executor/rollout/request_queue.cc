#include "executor/rollout/request_queue.h"

#include <algorithm>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"

namespace tessera {

RequestQueue::RequestQueue(TokenModel& model, std::int64_t step, const RolloutOptions& options,
                           std::int64_t pages)
    : model_(model), step_(step), options_(options), pages_(pages) {
  TESSERA_CHECK(options.max_response_tokens > 0 && options.max_sequences > 0);
  for (std::int64_t slot = options.max_sequences; slot > 0; --slot) free_slots_.push_back(slot - 1);
}

std::int64_t RequestQueue::length_of(const Sample& sample) const {
  return static_cast<std::int64_t>(sample.text.prompt.size()) + sample.drawn;
}

std::int64_t RequestQueue::pages_for(std::int64_t tokens) const {
  const std::int64_t page = model_.page_tokens();
  return (tokens + page - 1) / page;
}

std::int64_t RequestQueue::limit_of(const TokenPrompt& prompt, std::int32_t sample) const {
  if (prompt.limits.empty()) return options_.max_response_tokens;
  return std::min(prompt.limits.at(static_cast<std::size_t>(sample)), options_.max_response_tokens);
}

std::int64_t RequestQueue::submit(TokenPrompt prompt) {
  TESSERA_CHECK(!prompt.tokens.empty());
  const auto tokens =
      static_cast<std::int64_t>(prompt.tokens.size()) + options_.max_response_tokens;
  if (pages_for(tokens) > pages_.total()) {
    throw Error(ExitCode::bad_input, "the cache of keys and values holds " +
                                         std::to_string(pages_.total() * model_.page_tokens()) +
                                         " tokens, a prompt with its longest response takes " +
                                         std::to_string(tokens));
  }
  const std::size_t request = requests_.size();
  requests_.push_back({.prompt = std::move(prompt)});
  const TokenPrompt& kept = requests_.back().prompt;
  for (std::int32_t sample = 0; sample < kept.samples; ++sample) {
    requests_.back().samples.push_back(samples_.size());
    waiting_.push_back(samples_.size());
    samples_.push_back({.request = request,
                        .text = {.prompt_index = kept.prompt_index,
                                 .sample_index = sample,
                                 .uid = kept.uid,
                                 .prompt = kept.tokens},
                        .limit = limit_of(kept, sample)});
  }
  return static_cast<std::int64_t>(request);
}

void RequestQueue::cancel(std::int64_t request) {
  const auto index = static_cast<std::size_t>(request);
  std::erase_if(entering_, [&](const Entering& entering) { return entering.request == index; });
  requests_.at(index).prefilling = false;
  for (const std::size_t sample : requests_[index].samples) {
    if (samples_[sample].state != State::ended) end(sample, /*cancelled=*/true);
  }
}

bool RequestQueue::step() {
  make_room();
  admit();
  Pass pass;
  Launched launched;
  add_decodes(pass, launched);
  add_prefills(pass, launched);
  const bool works = !pass.decode.empty() || !pass.prefill.empty();
  if (works) {
    model_.launch(pass);
    launched_.push_back(std::move(launched));
  }
  if (launched_.size() > (works ? 1u : 0u)) collect();
  return !(waiting_.empty() && entering_.empty() && running_.empty() && launched_.empty());
}

std::vector<EndedSequence> RequestQueue::take_ended() { return std::exchange(ended_, {}); }

DrawnToken RequestQueue::next_draw(Sample& sample) const {
  const double drawn_with =
      uniform(options_.seed, {static_cast<std::uint32_t>(step_),
                              static_cast<std::uint32_t>(sample.text.prompt_index),
                              static_cast<std::uint32_t>(sample.text.sample_index),
                              static_cast<std::uint32_t>(sample.drawn)});
  sample.drawn += 1;
  return {sample.slot, drawn_with};
}

/// Pages for the sample's first `tokens` tokens; false, with some of them taken, when there are too
/// few.
bool RequestQueue::take_pages(Sample& sample, std::int64_t tokens) {
  while (static_cast<std::int64_t>(sample.pages.size()) < pages_for(tokens)) {
    const std::optional<std::int32_t> page = pages_.take();
    if (!page) return false;
    sample.pages.push_back(*page);
  }
  return true;
}

/// Gives every sequence that decodes in this pass the page of its next token. What is on its way is
/// waited for before a sequence has to leave.
void RequestQueue::make_room() {
  while (!grow()) {
    if (!launched_.empty()) {
      collect();
    } else if (running_.size() > 1) {
      preempt(running_.back());
    } else {
      return;  // prompts that are being computed hold the rest: this one goes on after them
    }
  }
}

bool RequestQueue::grow() {
  for (const std::size_t index : running_) {
    Sample& sample = samples_[index];
    if (sample.drawn >= sample.limit) continue;
    if (!take_pages(sample, length_of(sample))) return false;
  }
  return true;
}

void RequestQueue::preempt(std::size_t sample) {
  counts_.preemptions += 1;
  std::erase(running_, sample);
  leave(samples_[sample]);
  samples_[sample].state = State::waiting;
  waiting_.push_front(sample);
}

/// Gives back what a sample holds that prefills or runs.
void RequestQueue::leave(Sample& sample) {
  pages_.give_back(sample.pages);
  sample.pages.clear();
  free_slots_.push_back(std::exchange(sample.slot, -1));
  Request& request = requests_[sample.request];
  request.active -= 1;
  if (request.active == 0) pages_.give_back(std::exchange(request.shared, {}));
}

void RequestQueue::end(std::size_t index, bool cancelled) {
  Sample& sample = samples_[index];
  if (sample.state == State::waiting) {
    std::erase(waiting_, index);
  } else {
    std::erase(running_, index);
    leave(sample);
  }
  sample.state = State::ended;
  ended_.push_back({static_cast<std::int64_t>(sample.request), std::move(sample.text), cancelled});
}

/// Samples enter in their order, and never past one that has to wait.
void RequestQueue::admit() {
  while (!waiting_.empty()) {
    const std::size_t head = waiting_.front();
    const std::size_t request = samples_[head].request;
    Entering entering{.request = request};
    if (requests_[request].prefilling || !admit_first(head, entering)) return;
    const bool fresh = samples_[head].drawn == 0;
    while (fresh && !waiting_.empty() && samples_[waiting_.front()].request == request &&
           samples_[waiting_.front()].drawn == 0 && admit_with(samples_[head], waiting_.front())) {
      entering.samples.push_back(waiting_.front());
      waiting_.pop_front();
    }
    requests_[request].prefilling = true;
    entering_.push_back(std::move(entering));
  }
}

/// The sample whose text is computed: it begins with the pages that its request shares. While
/// others run a part of the cache stays free for them to grow.
bool RequestQueue::admit_first(std::size_t index, Entering& entering) {
  Sample& sample = samples_[index];
  Request& request = requests_[sample.request];
  const bool alone = running_.empty() && entering_.empty();
  const std::int64_t reserve = alone ? 0 : std::max<std::int64_t>(1, pages_.total() / 100);
  const std::int64_t more =
      pages_for(length_of(sample) + 1) - static_cast<std::int64_t>(request.shared.size());
  if (free_slots_.empty() || pages_.free() < more + reserve) return false;
  pages_.share(request.shared);
  sample.pages = request.shared;
  TESSERA_CHECK(take_pages(sample, length_of(sample)));
  sample.slot = free_slots_.back();
  free_slots_.pop_back();
  sample.state = State::prefilling;
  request.active += 1;
  waiting_.pop_front();
  entering.samples = {index};
  entering.tokens = sample.text.prompt;
  entering.tokens.insert(entering.tokens.end(), sample.text.response.begin(),
                         sample.text.response.end());
  entering.computed = static_cast<std::int64_t>(request.shared.size()) * model_.page_tokens();
  return true;
}

/// A sample that enters with the first: it shares the prompt's full pages and gets a copy of the
/// page that is not full.
bool RequestQueue::admit_with(const Sample& first, std::size_t index) {
  Sample& sample = samples_[index];
  const std::int64_t tokens = length_of(sample);
  const auto full = static_cast<std::size_t>(tokens / model_.page_tokens());
  const std::int64_t more = pages_for(tokens + 1) - static_cast<std::int64_t>(full);
  const std::int64_t reserve = std::max<std::int64_t>(1, pages_.total() / 100);
  if (free_slots_.empty() || pages_.free() < more + reserve) return false;
  sample.pages.assign(first.pages.begin(), first.pages.begin() + static_cast<std::ptrdiff_t>(full));
  pages_.share(sample.pages);
  TESSERA_CHECK(take_pages(sample, tokens));
  sample.slot = free_slots_.back();
  free_slots_.pop_back();
  sample.state = State::prefilling;
  requests_[sample.request].active += 1;
  return true;
}

void RequestQueue::add_decodes(Pass& pass, Launched& launched) {
  for (const std::size_t index : running_) {
    Sample& sample = samples_[index];
    const std::int64_t tokens = length_of(sample);
    const bool has_room = static_cast<std::int64_t>(sample.pages.size()) >= pages_for(tokens);
    if (sample.drawn >= sample.limit || !has_room) continue;
    pass.decode.push_back(
        {.draw = next_draw(sample), .position = tokens - 1, .pages = sample.pages});
    launched.samples.push_back(index);
    if (options_.note_experts) launched.computed.push_back({{index}, tokens - 1, 1});
  }
  if (pass.decode.empty()) return;
  const auto rows = static_cast<std::int64_t>(pass.decode.size());
  const auto slots = std::min(options_.max_sequences, static_cast<std::int64_t>(samples_.size()));
  counts_.decode_steps += 1;
  counts_.decode_tokens += rows;
  if (2 * rows < slots) counts_.tail_steps += 1;
}

void RequestQueue::add_prefills(Pass& pass, Launched& launched) {
  std::int64_t left = options_.prefill_tokens;
  while (!entering_.empty() && (options_.prefill_tokens == 0 || left > 0)) {
    Entering& entering = entering_.front();
    const auto tokens = static_cast<std::int64_t>(entering.tokens.size());
    std::int64_t count = tokens - entering.computed;
    if (options_.prefill_tokens > 0) count = std::min(count, left);
    const std::int64_t begin = std::exchange(entering.computed, entering.computed + count);
    left -= count;
    counts_.prefill_tokens += count;
    const bool whole = entering.computed == tokens;
    // A text that is not whole yet stays where it is: entering_ keeps its place until the launch.
    if (whole) launched.texts.push_back(std::move(entering.tokens));
    const std::span<const std::int32_t> text = whole ? launched.texts.back() : entering.tokens;
    pass.prefill.push_back(
        {.tokens = text.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)),
         .begin = begin,
         .pages = samples_[entering.samples.front()].pages});
    if (options_.note_experts) launched.computed.push_back({entering.samples, begin, count});
    if (!whole) return;
    finish_prefill(entering, pass.prefill.back(), launched);
    entering_.pop_front();
  }
}

/// Draws for all samples that enter with this text, which run from now on.
void RequestQueue::finish_prefill(const Entering& entering, PrefillRow& row, Launched& launched) {
  Request& request = requests_[entering.request];
  const Sample& first = samples_[entering.samples.front()];
  for (const std::size_t index : entering.samples) {
    Sample& sample = samples_[index];
    if (&sample != &first && sample.pages.back() != first.pages.back()) {
      row.copies.push_back({first.pages.back(), sample.pages.back()});
    }
    row.draws.push_back(next_draw(sample));
    launched.samples.push_back(index);
    sample.state = State::running;
    running_.push_back(index);
  }
  request.prefilling = false;
  if (!request.shared.empty()) return;
  const auto prompt = static_cast<std::int64_t>(request.prompt.tokens.size());
  const auto full = static_cast<std::ptrdiff_t>((prompt - 1) / model_.page_tokens());
  request.shared.assign(first.pages.begin(), first.pages.begin() + full);
  pages_.share(request.shared);
}

/// Takes in the oldest pass; sequences that had ended while it was on its way drop their token.
void RequestQueue::collect() {
  const Launched launched = std::move(launched_.front());
  launched_.pop_front();
  const std::vector<Draw> draws = model_.collect();
  TESSERA_CHECK(draws.size() == launched.samples.size());
  if (options_.note_experts) note_experts(launched);
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const std::size_t index = launched.samples[i];
    Sample& sample = samples_[index];
    if (sample.state == State::ended) {
      counts_.dropped_tokens += 1;
      continue;
    }
    Sequence& text = sample.text;
    text.response.push_back(draws[i].token);
    text.rollout_log_prob.push_back(draws[i].log_prob);
    text.finished =
        std::find(options_.eos.begin(), options_.eos.end(), draws[i].token) != options_.eos.end();
    const auto length = static_cast<std::int64_t>(text.response.size());
    if (text.finished || length >= sample.limit) end(index, /*cancelled=*/false);
  }
}

/// Adds the experts of a pass' tokens to its samples. A token that is computed again, after its
/// sample had to leave, keeps those with which the token after it was drawn; tokens on shared pages
/// have those of the sample that computed them, whose pass was collected before.
void RequestQueue::note_experts(const Launched& launched) {
  std::int64_t rows = 0;
  for (const Computed& part : launched.computed) rows += part.tokens;
  const std::span<const std::int16_t> all = model_.routed_experts();
  const std::size_t width = all.size() / static_cast<std::size_t>(rows);  // of a token
  TESSERA_CHECK(width > 0 && all.size() == width * static_cast<std::size_t>(rows));
  std::size_t next = 0;
  for (const Computed& part : launched.computed) {
    const auto begin = static_cast<std::size_t>(part.begin) * width;
    const auto own = all.subspan(next, static_cast<std::size_t>(part.tokens) * width);
    next += own.size();
    // Of the text from its first token on, the part that is not noted yet, up to `most` entries.
    const auto extend = [&](std::vector<std::int16_t>& noted, std::size_t most) {
      const std::size_t end = std::min(begin + own.size(), most);
      TESSERA_CHECK(noted.size() >= std::min(begin, most));
      if (noted.size() >= end) return;
      const auto from = own.begin() + static_cast<std::ptrdiff_t>(noted.size() - begin);
      noted.insert(noted.end(), from, own.begin() + static_cast<std::ptrdiff_t>(end - begin));
    };
    for (const std::size_t index : part.samples) {
      Sample& sample = samples_[index];
      Request& request = requests_[sample.request];
      extend(request.routed_experts, request.prompt.tokens.size() * width);
      if (sample.state == State::ended) continue;
      std::vector<std::int16_t>& noted = sample.text.routed_experts;
      if (noted.size() < begin) {
        const auto& shared = request.routed_experts;
        noted.insert(noted.end(), shared.begin() + static_cast<std::ptrdiff_t>(noted.size()),
                     shared.begin() + static_cast<std::ptrdiff_t>(begin));
      }
      extend(noted, begin + own.size());
    }
  }
}

std::vector<Sequence> generate_all(RequestQueue& queue, std::span<const TokenPrompt> prompts,
                                   const AfterPass& after_pass) {
  std::vector<std::size_t> first;  // of each request's samples
  std::size_t count = 0;
  for (const TokenPrompt& prompt : prompts) {
    queue.submit(prompt);
    first.push_back(count);
    count += static_cast<std::size_t>(prompt.samples);
  }
  std::vector<Sequence> sequences(count);
  for (bool more = true; more;) {
    more = queue.step();
    std::vector<EndedSequence> all = queue.take_ended();
    if (after_pass) after_pass(all);
    for (EndedSequence& ended : all) {
      const auto sample = static_cast<std::size_t>(ended.sequence.sample_index);
      sequences[first[static_cast<std::size_t>(ended.request)] + sample] =
          std::move(ended.sequence);
    }
  }
  return sequences;
}

}  // namespace tessera
