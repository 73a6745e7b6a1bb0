#include "executor/config/run_config_validation.h"

#include <algorithm>
#include <string>
#include <vector>

namespace tessera {

void read_validation_files(ObjectReader& data, ValidationConfig& validation) {
  std::vector<std::string> files;
  const Node* const given = data.find("val_files");
  if (given != nullptr && given->is(Node::Kind::string) && !given->text.empty()) {
    files.push_back(given->text);
  } else if (given != nullptr && !given->is(Node::Kind::null)) {
    data.list("val_files", files);
    if (given->is(Node::Kind::list) && files.empty()) {
      data.refuse("val_files", "at least one file");
    }
  }
  validation.files.assign(files.begin(), files.end());
  data.optional("val_max_samples", validation.most_prompts,
                Whole{.least = -1, .most = 1'000'000'000});
  if (validation.most_prompts == 0) data.refuse("val_max_samples", "1 or more, or -1 for all");
}

void read_validation_times(ObjectReader& trainer, ValidationConfig& validation) {
  trainer.optional("test_freq", validation.freq, Whole{.least = -1, .most = 1'000'000'000});
  if (validation.freq == 0) trainer.refuse("test_freq", "1 or more, or -1 for never");
  trainer.optional("val_before_train", validation.before_train);
  trainer.optional("val_only", validation.only);
  if (validation.only && !validation.before_train) {
    trainer.refuse("val_only", "val_before_train: true, the validation that is meant");
  }
  std::string folder;
  trainer.optional("validation_data_dir", folder);
  validation.samples_folder = folder;
}

void read_validation_sampling(ObjectReader& rollout, ValidationConfig& validation) {
  auto reader = rollout.object("val_kwargs", false);
  if (!reader) return;
  SamplingOptions& sampling = validation.sampling;
  bool draws = false;
  reader->optional("do_sample", draws);
  reader->optional("temperature", sampling.temperature, kFromZero);
  reader->optional("top_p", sampling.top_p, Real{.least = 0, .most = 1, .above = true});
  reader->optional("top_k", sampling.top_k, Whole{.least = -1});
  reader->optional("min_p", sampling.min_p, Real{.least = 0, .most = 1});
  reader->optional("n", validation.samples, Whole{.least = 1, .most = 1'000'000});
  if (draws && sampling.temperature == 0) {
    reader->refuse("temperature", "a number above 0 with do_sample: true");
  }
  if (!draws && sampling.temperature > 0) {
    reader->refuse("do_sample", "true beside a temperature above 0", "0 is the most likely token");
  }
  reader->refuse_unknown_keys();
}

namespace {

/// A monitor of a validation has one, with prompts and at steps.
void check_monitor(ObjectReader& root, const RunConfig& config) {
  const CheckpointConfig& checkpoint = config.trainer.checkpoint;
  const std::string& metric = checkpoint.keep.metric;
  if (!metric.starts_with("val-")) return;
  if (config.validation.files.empty()) {
    root.refuse("data", "no val_files",
                "data.val_files beside trainer.monitor: " + metric + ", which validations measure",
                {});
  }
  if (config.validation.freq > 0) return;
  const std::int64_t steps = std::max<std::int64_t>(checkpoint.save_freq, 1);
  root.refuse("trainer", "no test_freq",
              "trainer.test_freq beside trainer.monitor: " + metric + ", which validations measure",
              "test_freq: " + std::to_string(steps) + " validates at every checkpoint");
}

}  // namespace

void check_validation(ObjectReader& root, const RunConfig& config) {
  const ValidationConfig& validation = config.validation;
  if (validation.files.empty() && (validation.freq > 0 || validation.only)) {
    root.refuse("trainer",
                std::string(validation.only ? "val_only" : "test_freq") + " without data.val_files",
                "data.val_files, the prompts that a validation answers", {});
  }
  check_monitor(root, config);
  if (!validation.files.empty() && config.reshard.wire_from_step > 1) {
    root.refuse("reshard", "no wire_from_step with data.val_files",
                "a validation moves weights, too, so that reshards are no longer steps");
  }
}

}  // namespace tessera
