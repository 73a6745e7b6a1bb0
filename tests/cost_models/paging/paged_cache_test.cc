// Paged KV caches in closed form against a replica that is followed token by token.
#include "cost_models/paging/paged_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "cost_models/lengths.h"
#include "tests/cost_models/paging/followed_replica.h"

namespace tessera {
namespace {

Workload workload_of(std::int64_t prompt, LengthSpec lengths, std::int64_t sequences) {
  Workload workload;
  workload.prompts_per_step = sequences;
  workload.prompt_tokens = prompt;
  workload.response_tokens = std::move(lengths);
  return workload;
}

struct Case {
  std::int64_t prompt;
  LengthSpec lengths;
  std::int64_t sequences, slots;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {512, {4000, 1, 32000}, 2048, 238},  {512, {4000, 1, 32000}, 640, 238},
      {512, {4000, 1, 32000}, 240, 240},   {1024, {3000, 0.5, 32000}, 1280, 160},
      {1024, {640, 0.5, 1024}, 640, 256},  {256, {1000, 0.3, 8192}, 512, 128},
      {256, {1000, 0.3, 8192}, 512, 512},  {2048, {500, 1, 4096}, 1024, 64},
      {1024, {2000, 0.8, 8192}, 1000, 400}};
  return all;
}

double closed_seconds(const Case& each, const FollowedCosts& costs) {
  const auto sequences = static_cast<double>(each.sequences);
  const auto slots = static_cast<double>(each.slots), prompt = static_cast<double>(each.prompt);
  const PagedCache cache(workload_of(each.prompt, each.lengths, each.sequences), 16);
  const DecodeProfile profile = DecodeLengths(each.lengths, sequences).profile(sequences, slots);
  const DecodeTime time = slowest_decoding(profile, 1, [&](double alive, double age) {
    return DecodeTime{
        Seconds{costs.step + alive * costs.sequence + alive * (prompt + 1 + age) * costs.token},
        {}};
  });
  return time.seconds.value +
         (sequences * prompt + cache.recomputed(sequences, slots)) * costs.computed;
}

// The mean of some draws on the cache of a closed form, with that number of slots or another.
Followed followed_mean(const Case& each, double tokens, std::int64_t slots,
                       const FollowedCosts& costs) {
  constexpr int kDraws = 4;
  Followed mean;
  for (unsigned seed = 1; seed <= kDraws; ++seed) {
    const Followed one = follow(drawn_lengths(each.lengths, each.sequences, seed), each.prompt,
                                slots, 16, static_cast<std::int64_t>(tokens / 16), costs);
    mean.seconds += one.seconds / kDraws;
    mean.recomputed += one.recomputed / kDraws;
    mean.most = std::max(mean.most, one.most);
  }
  return mean;
}

TEST(PagedCache, ClosedFormIsWithinFivePercentOfAReplicaFollowedTokenByToken) {
  const FollowedCosts costs;
  for (const Case& each : cases()) {
    const auto sequences = static_cast<double>(each.sequences);
    const auto slots = static_cast<double>(each.slots);
    const PagedCache cache(workload_of(each.prompt, each.lengths, each.sequences), 16);
    const double tokens = cache.tokens(sequences, slots);
    const Followed drawn = followed_mean(each, tokens, each.slots, costs);
    SCOPED_TRACE(testing::Message() << each.lengths.mean << " +- " << each.lengths.cv << ", "
                                    << slots << " of " << sequences);
    EXPECT_NEAR(closed_seconds(each, costs) / drawn.seconds, 1, 0.05);
    // The cache is no larger than what is used of it at some time.
    EXPECT_NEAR(drawn.most / tokens, 0.95, 0.06);
    // Of all tokens, those that are computed again.
    const double decoded = sequences * mean_length(each.lengths);
    EXPECT_NEAR(cache.recomputed(sequences, slots) / decoded, drawn.recomputed / decoded, 0.04);
  }
}

TEST(PagedCache, NoOtherNumberOfSequencesAtOnceIsMuchQuickerOnTheSameCache) {
  const FollowedCosts costs;
  for (const Case& each : cases()) {
    const auto slots = static_cast<double>(each.slots);
    const PagedCache cache(workload_of(each.prompt, each.lengths, each.sequences), 16);
    const double tokens = cache.tokens(static_cast<double>(each.sequences), slots);
    const double chosen = followed_mean(each, tokens, each.slots, costs).seconds;
    for (const double part : {0.7, 0.85, 1.15, 1.4, 2.0}) {
      const double other = followed_mean(each, tokens, std::llround(part * slots), costs).seconds;
      EXPECT_GT(other, 0.97 * chosen) << each.lengths.mean << ": " << part << " x " << slots;
    }
  }
}

// Where few sequences run, one that waits for another would double the time of both.
TEST(PagedCache, FewSequencesHardlyEverWaitForOneAnother) {
  for (const Case& each :
       {Case{512, {512, 1, 1024}, 2, 2}, Case{128, {256, 1, 1024}, 3, 3},
        Case{512, {4000, 1, 32000}, 16, 4}, Case{512, {2000, 0.5, 16000}, 32, 8}}) {
    const PagedCache cache(workload_of(each.prompt, each.lengths, each.sequences), 16);
    const double tokens =
        cache.tokens(static_cast<double>(each.sequences), static_cast<double>(each.slots));
    double seconds = 0, unlimited = 0;
    for (unsigned seed = 1; seed <= 60; ++seed) {
      const auto lengths = drawn_lengths(each.lengths, each.sequences, seed);
      seconds +=
          follow(lengths, each.prompt, each.slots, 16, static_cast<std::int64_t>(tokens / 16), {})
              .seconds;
      unlimited += follow(lengths, each.prompt, each.slots, 16, 1 << 30, {}).seconds;
    }
    EXPECT_LT(seconds, 1.01 * unlimited) << each.slots << " of " << each.sequences;
  }
}

// A slot for a longest sequence each would be a multiple of it.
TEST(PagedCache, HoldsLiveLengthsAndNotTheLongest) {
  const Workload workload = workload_of(512, {4000, 1, 32000}, 8192);
  const PagedCache cache(workload, 16);
  // 512 + 4,000 (1 + 1) / 2 tokens of each on average in a steady state (Cox 1962, ch. 5).
  const double tokens = cache.tokens(8192, 238);
  EXPECT_GT(tokens, 238 * (512 + 4000.0));
  EXPECT_LT(tokens, 1.1 * 238 * (512 + 4000.0));
  EXPECT_LT(tokens / 238, (512 + 32000) / 6.5);
}

TEST(PagedCache, ALongerLimitOfTheSameLengthsNeedsNoMore) {
  for (const double slots : {64.0, 200.0, 1024.0}) {
    const auto tokens = [&](std::int64_t most) {
      return PagedCache(workload_of(1024, {3000, 0.5, most}, 1024), 16).tokens(1024, slots);
    };
    EXPECT_EQ(tokens(65536), tokens(32768)) << slots;
    EXPECT_NEAR(tokens(16384) / tokens(32768), 1, 0.01) << slots;
  }
}

TEST(PagedCache, MoreSlotsNeverNeedLess) {
  for (const LengthSpec& lengths :
       {LengthSpec{4000, 1, 32000}, LengthSpec{640, 0.5, 1024}, LengthSpec{500, 0.05, 4096},
        LengthSpec{51, 0.56, 101, {11, 21, 31, 41, 61, 61, 81, 101}}, LengthSpec{512, 0, 512}}) {
    for (const std::int64_t sequences : {1, 7, 100, 1000}) {
      const PagedCache cache(workload_of(300, lengths, sequences), 16);
      double before = 0;
      for (std::int64_t slots = 1; slots <= sequences + 3; ++slots) {
        const double tokens =
            cache.tokens(static_cast<double>(sequences), static_cast<double>(slots));
        EXPECT_GE(tokens, before * (1 - 1e-12)) << lengths.mean << " " << slots;
        before = tokens;
      }
    }
  }
}

TEST(PagedCache, EqualLengthsAreHeldWholeAndPreemptNothing) {
  const PagedCache cache(workload_of(100, {412, 0, 412}, 64), 16);
  EXPECT_EQ(cache.tokens(64, 10), 10 * 512);
  EXPECT_EQ(cache.tokens(64, 100), 64 * 512);
  EXPECT_EQ(cache.recomputed(64, 10), 0);
}

TEST(PagedCache, HoldsOneSequenceOfTheLongestLengthThatIsAllowed) {
  const PagedCache cache(workload_of(100, {50, 0.2, 10000}, 64), 16);
  EXPECT_EQ(cache.tokens(64, 1), 10112);  // in blocks of 16
}

}  // namespace
}  // namespace tessera
