#!/usr/bin/env python3
"""The bill of materials of the program: CycloneDX 1.5 as JSON, on the standard output.

    packaging/sbom.py [PROGRAM]     with PROGRAM, its SHA-256 is in it

Everything comes from Cargo.lock and the manifests that it names: the crates that are linked into `ringwall` with its default
features on x86_64 Linux, each with version, licence, checksum and what it needs itself. Two runs over one tree are equal: the
time is SOURCE_DATE_EPOCH, or that of the last commit, or left out.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "x86_64-unknown-linux-gnu"
PROGRAM = "ringwall"
LINE = re.compile(r"^(\d+)(\S+) v(\S+)")


def cargo(*words):
    done = subprocess.run(["cargo", *words, "--locked"], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def edges():
    """For each crate in the program, by name and version, the crates that it needs itself."""
    words = ["tree", "-p", PROGRAM, "--edges", "normal,no-proc-macro", "--target", TARGET, "--prefix", "depth", "--no-dedupe"]
    needs, path = {}, []
    for depth, name, version in (LINE.match(line).groups() for line in cargo(*words).splitlines() if LINE.match(line)):
        crate = (name, version)
        del path[int(depth):]
        if path:
            needs[path[-1]].add(crate)
        needs.setdefault(crate, set())
        path.append(crate)
    return needs


def checksums():
    """SHA-256 of each crate's archive, as Cargo.lock has them."""
    text = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    pattern = r'name = "([^"]+)"\nversion = "([^"]+)"\nsource = "[^"]+"\nchecksum = "([0-9a-f]{64})"'
    return {(name, version): checksum for name, version, checksum in re.findall(pattern, text)}


def made_at():
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds is None:
        done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
        seconds = done.stdout.strip() if done.returncode == 0 else ""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds))) if seconds else None


def reference(crate):
    return f"pkg:cargo/{crate[0]}@{crate[1].replace('+', '%2B')}"


def licence(expression):
    # Older manifests have a slash where SPDX has OR.
    return re.sub(r"\s*/\s*", " OR ", expression)


def component(crate, package, checksum):
    found = {"type": "library", "bom-ref": reference(crate), "name": crate[0], "version": crate[1], "scope": "required"}
    if package.get("description"):
        found["description"] = " ".join(package["description"].split())
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package.get("license"):
        found["licenses"] = [{"expression": licence(package["license"])}]
    # What is part of this repository is in no registry.
    if package["source"]:
        found["purl"] = reference(crate)
    if package.get("repository"):
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found


def document(program):
    packages = {(p["name"], p["version"]): p for p in json.loads(cargo("metadata", "--format-version", "1"))["packages"]}
    needs, known = edges(), checksums()
    root = next(crate for crate in needs if crate[0] == PROGRAM)
    main = component(root, packages[root], None) | {"type": "application"}
    del main["scope"]
    if program:
        digest = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()
        main["hashes"] = [{"alg": "SHA-256", "content": digest}]
    others = [component(crate, packages[crate], known.get(crate)) for crate in sorted(needs) if crate != root]
    metadata = {"component": main}
    if at := made_at():
        metadata = {"timestamp": at} | metadata
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": metadata,
        "components": others,
        "dependencies": [
            {"ref": reference(crate), "dependsOn": sorted(map(reference, needs[crate]))} for crate in sorted(needs)
        ],
    }
    # Named by its content, so that it is the same wherever it is made.
    name = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom, sort_keys=True))
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{name}"} | bom


def main():
    bom = document(sys.argv[1] if len(sys.argv) > 1 else None)
    json.dump(bom, sys.stdout, indent=1, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
