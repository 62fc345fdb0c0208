#!/usr/bin/env python3
"""What of others is in the program, and what of it needs looking at: crates with `unsafe`, C, or a build script.

    packaging/dependencies.py            prints the counts of docs/decisions/0067-what-is-unsafe-below-us.md
    packaging/dependencies.py --check    compares them with that page; status 1 if the page is out of date
    packaging/dependencies.py --write    writes them into it; reasons of new crates are left to be written

The crates are those of `ringwall` with its default features on x86_64 Linux, normal dependencies only. Everything is read from
Cargo.lock and from the sources that cargo has fetched.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/decisions/0067-what-is-unsafe-below-us.md"
TARGET = "x86_64-unknown-linux-gnu"
HEADER = "| crate | unsafe | C files | build script |"
# Code that is compiled for tests, benches and examples only.
NOT_SHIPPED = {"tests", "benches", "examples", "fuzz"}
C_SUFFIXES = {".c", ".S", ".s", ".asm", ".cc", ".cpp"}


def cargo(*words):
    done = subprocess.run(["cargo", *words, "--locked"], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def shipped():
    """Name and version of each crate of others in the program."""
    tree = cargo("tree", "-p", "ringwall", "--edges", "normal,no-proc-macro", "--target", TARGET, "--prefix", "none")
    crates = set()
    for line in tree.splitlines():
        words = line.replace(" (*)", "").split()
        if words and not any(word.startswith("(/") for word in words):
            crates.add((words[0], words[1].removeprefix("v")))
    return sorted(crates)


def packages():
    """Directory, build script and `links` of every package that the lock file names."""
    metadata = json.loads(cargo("metadata", "--format-version", "1"))
    found = {}
    for package in metadata["packages"]:
        builds = any("custom-build" in target["kind"] for target in package["targets"])
        directory = pathlib.Path(package["manifest_path"]).parent
        found[package["name"], package["version"]] = (directory, builds)
    return found


def without_comments(text):
    """Rust without comments and the content of strings, roughly: enough to count a keyword."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', text)


def unsafe_uses(directory):
    """Blocks, functions, implementations and traits that are unsafe; what a target or feature leaves out counts too."""
    count = 0
    for path in sorted(directory.rglob("*.rs")):
        parts = path.relative_to(directory).parts
        if NOT_SHIPPED.intersection(parts[:-1]) or parts[-1] in ("build.rs", "tests.rs"):
            continue
        text = without_comments(path.read_text(encoding="utf-8", errors="replace"))
        count += len(re.findall(r"\bunsafe\s*(?:\{|fn\b|impl\b|trait\b|extern\b)", text))
    return count


def c_files(directory):
    paths = (path for path in directory.rglob("*") if path.suffix in C_SUFFIXES)
    return sum(1 for path in paths if not NOT_SHIPPED.intersection(path.relative_to(directory).parts[:-1]))


def rows():
    """One row for each crate that needs looking at, and how many need none."""
    known, found, rest = packages(), [], 0
    for name, version in shipped():
        directory, builds = known[name, version]
        counts = unsafe_uses(directory), c_files(directory)
        if any(counts) or builds:
            found.append(f"| `{name}` {version} | {counts[0]} | {counts[1]} | {'yes' if builds else 'no'} |")
        else:
            rest += 1
    return found, rest


def block(found, rest):
    lines = [HEADER, "|---|---|---|---|", *found]
    return "\n".join([*lines, "", f"{rest} further crates have none of it."])


def reviewed(page):
    """The crates for which the page gives reasons: first cell of the second table."""
    table = page.split("## What each is for", 1)[-1]
    return {name for cell in re.findall(r"^\| ([^|]*) \|", table, re.M) for name in re.findall(r"`([^`]+)`", cell)}


def main():
    found, rest = rows()
    made = block(found, rest)
    if len(sys.argv) == 1:
        print(made)
        return 0
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(HEADER) + r".*?further crates have none of it\.", re.S)
    if sys.argv[1] == "--write":
        PAGE.write_text(pattern.sub(lambda _: made, page, count=1), encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
    problems = [] if made in page else [f"{PAGE.name} has other counts: packaging/dependencies.py --write"]
    wanted = {re.match(r"\| `([^`]+)`", row).group(1) for row in found}
    problems += [f"no reason is given for {name}" for name in sorted(wanted - reviewed(page))]
    problems += [f"a reason is given for {name}, which needs none" for name in sorted(reviewed(page) - wanted)]
    for problem in problems:
        print(f"dependencies.py: {problem}", file=sys.stderr)
    if not problems:
        print(f"{len(found)} crates with unsafe code, C or a build script, each with its reason; {rest} without")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
