// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/report/style.h"

#include "gui/models/colours.h"

namespace tessera::gui {
namespace {

constexpr const char* kRules = R"(
body{margin:0 auto;max-width:1080px;padding:24px 28px 60px;background:var(--window);
color:var(--text);font:15px/1.5 system-ui,sans-serif}
h1{font-size:25px;margin:0 0 4px}
h2{font-size:19px;margin:38px 0 8px;border-bottom:1px solid var(--edge)}
h3{font-size:15px;margin:22px 0 6px}
p{margin:6px 0}
.headline{white-space:pre-wrap;font-size:18px;font-weight:600;background:var(--base);padding:10px 14px;margin:14px 0}
.warning{background:var(--warning);color:var(--on-warning);padding:8px 14px}
.failure{background:var(--failure);color:var(--on-failure);padding:8px 14px;font-weight:600}
.bad{color:var(--on-failure);background:var(--failure)}
.faint,footer{color:var(--faint)}
footer{margin-top:44px;font-size:13px}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:13.5px;background:var(--base)}
th,td{padding:4px 12px;text-align:left;vertical-align:top;border-bottom:1px solid var(--edge)}
th{font-weight:600}
td{overflow-wrap:anywhere}
.wide td:last-child:not(.number){min-width:14em}
td.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--base);padding:12px 14px;font-size:12.5px}
figure{margin:12px 0;background:var(--base);padding:10px;max-width:100%;box-sizing:border-box}
figcaption{font-weight:600;font-size:14px;margin-bottom:6px;overflow-wrap:anywhere}
svg{display:block;max-width:100%;height:auto}
svg text{font-size:12px;fill:var(--text)}
svg .tick{fill:var(--faint);font-size:11px}
svg .middle{text-anchor:middle}
svg .end{text-anchor:end}
svg text.on-light{fill:#000}
svg text.on-dark{fill:#fff}
svg .grid{stroke:var(--edge)}
svg .limit{stroke:var(--text);stroke-width:1.5;stroke-dasharray:5 4}
svg .error{stroke:var(--text);stroke-width:1.3}
svg .line{fill:none;stroke-width:1.8;stroke-linejoin:round}
svg .dashed{stroke-dasharray:5 4}
.pictures{display:flex;flex-wrap:wrap;gap:12px}
.pictures figure{margin:0}
.legend{font-size:12.5px;margin:6px 0 0}
.legend span{margin-right:14px;white-space:nowrap}
.swatch{display:inline-block;width:10px;height:10px;margin-right:5px}
details{margin:10px 0}
summary{cursor:pointer;font-weight:600}
@media print{body{max-width:none}}
)";

QString variables(Theme theme) {
  const QPalette palette = paletteOf(theme);
  const bool light = theme == Theme::light;
  const MessageColours warning = coloursOf(Tone::warning, theme), bad = coloursOf(Tone::bad, theme);
  return QString(
             ":root{--window:%1;--base:%2;--text:%3;--faint:%4;--edge:%5;--warning:%6;"
             "--on-warning:%7;--failure:%8;--on-failure:%9}")
      .arg(palette.color(QPalette::Window).name(), palette.color(QPalette::Base).name(),
           palette.color(QPalette::Text).name(), palette.color(QPalette::PlaceholderText).name(),
           QString(light ? "#d5d9df" : "#3a3f47"), warning.background.name(), warning.text.name(),
           bad.background.name(), bad.text.name());
}

}  // namespace

QString report_style() {
  return "\n:root{color-scheme:light dark}\n" + variables(Theme::light) +
         "\n@media (prefers-color-scheme:dark){" + variables(Theme::dark) + "}" + kRules;
}

}  // namespace tessera::gui
