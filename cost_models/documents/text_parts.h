// A file's text in parts, for what is too long to be held at once.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace tessera {

/// Gives the text from its beginning to `take`, and throws what that throws.
using TextParts = std::function<void(const std::function<void(std::string_view)>& take)>;

/// As write_text_file (document.h); the file stays as it was, too, where `parts` throws, which is
/// thrown on.
void write_text_parts(const std::filesystem::path& file, const TextParts& parts);

}  // namespace tessera
