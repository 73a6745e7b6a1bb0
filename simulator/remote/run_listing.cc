#include "simulator/remote/run_listing.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <system_error>

#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "simulator/remote/gone_ranks.h"
#include "simulator/remote/remote_name.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kVersion = 1;
constexpr std::string_view kHex = "0123456789abcdef";
constexpr ParseLimits kLimits{.bytes = RunListing::kMostBytes};

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += {kHex[value / 16], kHex[value % 16]};
  }
  return text;
}

std::optional<std::string> bytes_of(std::string_view hex) {
  if (hex.size() % 2 != 0 || hex.size() > 2 * RunListing::kMostRecordBytes) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const std::size_t high = kHex.find(hex[i]), low = kHex.find(hex[i + 1]);
    if (high == kHex.npos || low == kHex.npos) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

std::string record_of(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return {};
  std::string bytes(RunListing::kMostRecordBytes + 1, '\0');
  const ssize_t got = ::read(descriptor, bytes.data(), bytes.size());
  ::close(descriptor);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes.size() > RunListing::kMostRecordBytes ? std::string() : bytes;
}

// The number that a rank's file is named by; -1 where it is none.
int rank_of(std::string_view name) {
  int rank = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  const bool whole = error == std::errc{} && end == name.data() + name.size();
  return whole && rank < RunListing::kMostRanks && std::to_string(rank) == name ? rank : -1;
}

void read_files(ObjectReader& root, RunListing& listing) {
  for (ObjectReader& each : root.objects("files")) {
    RunFile file;
    each.required("name", file.name);
    each.required("size", file.size, kNotNegative);
    each.required("modified_ns", file.modified_ns);
    each.required("id", file.id, kNotNegative);
    each.refuse_unknown_keys();
    if (find_served(file.name) == nullptr) each.refuse("name", "a file that is served");
    listing.files.push_back(std::move(file));
  }
}

void read_ranks(ObjectReader& root, RunListing& listing) {
  for (ObjectReader& each : root.objects("ranks")) {
    RankRecord rank;
    std::string hex;
    each.required("rank", rank.rank, Whole{.least = 0, .most = RunListing::kMostRanks - 1});
    each.required("record", hex);
    each.refuse_unknown_keys();
    if (auto bytes = bytes_of(hex)) {
      rank.bytes = *std::move(bytes);
    } else {
      each.refuse("record", "hexadecimal digits of at most 1,024 bytes");
    }
    listing.ranks.push_back(std::move(rank));
  }
}

}  // namespace

RunListing list_run(const fs::path& run) {
  RunListing listing{.now_ns = now_ns()};
  for (const ServedName& name : kServedNames) {
    if (const auto file = ServedFile::open(run, name)) listing.files.push_back(file->file());
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / "ranks", error)) {
    const int rank = rank_of(entry.path().filename().string());
    if (rank < 0) continue;
    std::string bytes = record_of(entry.path());
    if (!bytes.empty()) listing.ranks.push_back({rank, std::move(bytes)});
  }
  std::sort(listing.ranks.begin(), listing.ranks.end(),
            [](const RankRecord& a, const RankRecord& b) { return a.rank < b.rank; });
  const std::vector<int> gone = gone_ranks(run);
  listing.gone.assign(gone.begin(), gone.end());
  return listing;
}

Node node_of(const std::vector<RunFile>& all) {
  Node files = list_node();
  for (const RunFile& file : all) {
    Node each = map_node();
    add(each, "name", node_of(file.name));
    add(each, "size", node_of(file.size));
    add(each, "modified_ns", node_of(file.modified_ns));
    add(each, "id", node_of(file.id));
    files.items.push_back(std::move(each));
  }
  return files;
}

Node node_of(const std::vector<std::int64_t>& ranks) {
  Node numbers = list_node();
  for (const std::int64_t rank : ranks) numbers.items.push_back(node_of(rank));
  return numbers;
}

std::string to_json(const RunListing& listing) {
  Node root = map_node(), ranks = list_node();
  add(root, "tessera_run", node_of(kVersion));
  add(root, "now_ns", node_of(listing.now_ns));
  for (const RankRecord& rank : listing.ranks) {
    Node each = map_node();
    add(each, "rank", node_of(std::int64_t{rank.rank}));
    add(each, "record", node_of(hex_of(rank.bytes)));
    ranks.items.push_back(std::move(each));
  }
  add(root, "files", node_of(listing.files));
  add(root, "ranks", std::move(ranks));
  if (!listing.gone.empty()) add(root, "gone", node_of(listing.gone));
  return json_line(root) + "\n";
}

std::optional<RunListing> listing_from(std::string_view text, const std::string& from,
                                       Problems& problems) {
  const std::size_t before = problems.size();
  const auto document = parse_json(text, from, problems, kLimits);
  if (!document) return std::nullopt;
  ObjectReader root(*document, problems);
  std::int64_t version = 0;
  root.required("tessera_run", version, Whole{.least = kVersion, .most = kVersion});
  if (problems.size() != before) return std::nullopt;  // all else may be of something else
  RunListing listing;
  root.required("now_ns", listing.now_ns, kNotNegative);
  read_files(root, listing);
  read_ranks(root, listing);
  root.list("gone", listing.gone, Whole{.least = 0, .most = RunListing::kMostRanks - 1}, false);
  root.refuse_unknown_keys();
  if (problems.size() != before) return std::nullopt;
  return listing;
}

std::string runs_json(const std::vector<std::string>& names) {
  Node root = map_node(), runs = list_node();
  add(root, "tessera_serve", node_of(kVersion));
  for (const std::string& name : names) runs.items.push_back(node_of(name));
  add(root, "runs", std::move(runs));
  return json_line(root) + "\n";
}

std::optional<std::vector<std::string>> runs_from(std::string_view text, const std::string& from,
                                                  Problems& problems) {
  const std::size_t before = problems.size();
  const auto document = parse_json(text, from, problems, kLimits);
  if (!document) return std::nullopt;
  ObjectReader root(*document, problems);
  std::int64_t version = 0;
  root.required("tessera_serve", version, Whole{.least = kVersion, .most = kVersion});
  if (problems.size() != before) return std::nullopt;
  std::vector<std::string> names;
  root.list("runs", names);
  for (const std::string& name : names) {
    if (!is_run_name(name)) root.refuse("runs", "'" + name + "'", "names of folders", "");
  }
  root.refuse_unknown_keys();
  if (problems.size() != before) return std::nullopt;
  return names;
}

}  // namespace tessera
