#include "planner/plan/model_source.h"

#include <openssl/evp.h>

#include <array>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

std::filesystem::path config_file(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) ? path / "config.json" : path;
}

}  // namespace

std::optional<std::string> sha256_of(const std::filesystem::path& file) {
  Problems unread;
  const auto bytes = read_text_file(file, ParseLimits{}.bytes, unread);
  if (!bytes) return std::nullopt;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(bytes->data(), bytes->size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    return std::nullopt;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kHex[digest[i] >> 4];
    text += kHex[digest[i] & 15];
  }
  return text;
}

std::optional<ModelSource> read_model_source(const std::string& where, Problems& problems) {
  std::optional<ModelSpec> spec = read_model_spec(where, problems);
  if (!spec) return std::nullopt;
  const auto folder = find_config(where, "models", "", problems);
  const std::string path = folder ? folder->string() : where;
  return ModelSource{*std::move(spec), path, sha256_of(config_file(path)).value_or("")};
}

void check_model_sources(const Plan& plan, const std::string& plan_file, Problems& problems) {
  for (const auto& [name, source] : plan.models) {
    const auto digest = sha256_of(config_file(source.path));
    if (source.config_sha256.empty() || !digest || *digest == source.config_sha256) continue;
    problems.push_back(
        {.file = plan_file,
         .place = "/models/" + name + "/config_sha256",
         .found = config_file(source.path).string() + " with SHA-256 " + *digest,
         .expected = "the config.json of the plan, with SHA-256 " + source.config_sha256,
         .hint = "the model has changed since it was planned: plan again"});
  }
}

}  // namespace tessera
