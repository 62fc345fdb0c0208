#!/bin/sh
# `make book`: all documents as a book for a browser, in target/book/html, with every link checked. Installs mdBook
# below target/ where it is missing, about three minutes.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh

version=0.5.4
root=target/mdbook
book=target/book

install_mdbook() {
    if [ -x "$root/bin/mdbook" ] && [ "$("$root/bin/mdbook" --version)" = "mdbook v$version" ]; then
        return 0
    fi
    say "mdBook $version"
    # Without its server, which nobody needs to read files.
    cargo install mdbook --version "=$version" --locked --no-default-features --features search --quiet \
        --root "$root" --target-dir "$root/build" || fail "mdbook $version cannot be built here"
    rm -rf "$root/build"
}

# The list of pages as it stands in the copy; records, which have no other order, follow by number.
summary() {
    sed 's#README\.md#index.md#' docs/SUMMARY.md | sed 's#](\.\./#](#; t; s#](\([a-z]\)#](docs/\1#'
    for record in docs/decisions/*.md; do
        [ "$record" = docs/decisions/README.md ] ||
            printf '  - [%s](%s)\n' "$(sed -n '1s/^# //p' "$record" | tr -d '[]')" "$record"
    done
}

# Documents alone, each in its own place below one folder, so that links between them hold.
stage() {
    rm -rf "$book"
    mkdir -p "$book/src"
    cp docs/book.toml "$book/"
    find . -path ./target -prune -o -path ./.git -prune -o -name '*.md' -print |
        while read -r page; do
            mkdir -p "$book/src/$(dirname "$page")"
            # The first page of a folder is its index there, and links have to say so.
            sed 's#](\([^) ]*\)README\.md#](\1index.md#g' "$page" >"$book/src/$(echo "$page" | sed 's#README\.md$#index.md#')"
        done
    cp -r docs/console "$book/src/docs/"
    summary >"$book/src/SUMMARY.md"
    rm "$book/src/docs/SUMMARY.md"
}

install_mdbook
stage
"$root/bin/mdbook" build "$book"
python3 packaging/book-links.py "$book/html"
say "open $book/html/index.html"
