#include "simulator/remote/remote_name.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "cost_models/documents/printable.h"

namespace tessera {
namespace {

constexpr std::string_view kPrefix = "remote:";
constexpr int kMostPort = 65'535;

}  // namespace

bool is_run_name(std::string_view name) {
  const auto is_plain = [](char c) { return c != '/' && static_cast<unsigned char>(c) >= ' '; };
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t length = utf8_length(name, at);
    if (length == 0) return false;  // JSON could not say it
    at += length;
  }
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), is_plain);
}

bool is_remote(std::string_view text) { return text.starts_with(kPrefix); }

std::optional<RemoteName> remote_name_from(std::string_view text) {
  if (is_remote(text)) text.remove_prefix(kPrefix.size());
  RemoteName name;
  const std::size_t slash = text.find('/');
  if (slash != text.npos) {
    name.run = text.substr(slash + 1);
    if (!is_run_name(name.run)) return std::nullopt;
    text = text.substr(0, slash);
  }
  const std::size_t colon = text.find(':');
  const std::string_view host = text.substr(0, colon);
  if (colon == text.npos || (host != "127.0.0.1" && host != "localhost")) return std::nullopt;
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), name.port);
  const bool whole = error == std::errc{} && end == port.data() + port.size();
  if (!whole || name.port < 1 || name.port > kMostPort) return std::nullopt;
  return name;
}

std::string address_of(const RemoteName& name) { return "127.0.0.1:" + std::to_string(name.port); }

std::string to_text(const RemoteName& name) {
  return std::string(kPrefix) + address_of(name) + (name.run.empty() ? "" : "/" + name.run);
}

std::filesystem::path mirror_folder(const RemoteName& name, const std::filesystem::path& cache) {
  return cache / ("127.0.0.1-" + std::to_string(name.port)) / name.run;
}

}  // namespace tessera
