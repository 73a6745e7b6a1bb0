"""What a browser would make of a report: reads it as HTML, not as XML, and prints what is wrong.

Usage: page_check.py REPORT.html. Prints the number of elements when nothing is wrong.
"""

import html.parser
import sys

VOID = {"meta", "br", "hr", "img", "link", "input"}
RUNS = {"script", "iframe", "object", "embed", "form", "img", "link", "base", "a", "audio", "video",
        "image", "use", "foreignobject", "animate", "set"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong, self.elements, self.style = [], [], 0, ""

    def look(self, tag, attributes):
        self.elements += 1
        if tag in RUNS:
            self.wrong.append(f"<{tag}> at line {self.getpos()}")
        for name, value in attributes:
            fetches = name in {"src", "href", "xlink:href", "srcset", "action", "background"}
            if name.startswith("on") or fetches or "url(" in (value or ""):
                self.wrong.append(f"{name}={value!r} of <{tag}>")

    def handle_starttag(self, tag, attributes):
        self.look(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.look(tag, attributes)
        in_svg = "svg" in self.open or tag in VOID
        if not in_svg:  # HTML reads <td/> as <td>
            self.wrong.append(f"<{tag}/>")

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes something else")

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.style += data


page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
page.close()
if page.open:
    page.wrong.append(f"left open: {page.open}")
for word in ("url(", "@import", "<", "&"):
    if word in page.style:
        page.wrong.append(f"{word} in the style")
for wrong in page.wrong:
    print(wrong)
if not page.wrong:
    print(page.elements)
sys.exit(1 if page.wrong else 0)
