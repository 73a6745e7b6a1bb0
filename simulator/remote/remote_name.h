// How a run behind a tunnel is named: a port of this host's loopback interface, and a run there.
//
// "127.0.0.1:7070/RUN"; what is remembered has "remote:" before it, which tells it from a folder.
// Other hosts are refused: the token must not cross a network in the clear. Plain data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

struct RemoteName {
  int port = 0;
  std::string run;  // empty: the only one that is served there
  bool operator==(const RemoteName&) const = default;
};

/// A name of one folder: no slash, no control characters, at most 255 bytes, not "." or "..".
bool is_run_name(std::string_view name);

/// "127.0.0.1:PORT", "localhost:PORT", either with "/RUN", and "remote:" before it or not.
std::optional<RemoteName> remote_name_from(std::string_view text);
/// Whether it begins as a remembered remote run does.
bool is_remote(std::string_view text);
/// "127.0.0.1:7070".
std::string address_of(const RemoteName& name);
/// "remote:127.0.0.1:7070/RUN".
std::string to_text(const RemoteName& name);
/// Where the copy of it is kept below `cache`. The run has a name.
std::filesystem::path mirror_folder(const RemoteName& name, const std::filesystem::path& cache);

}  // namespace tessera
