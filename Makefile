# `make help` says what there is. What takes more than a line stands in packaging/.
PREFIX ?= /usr/local
.DEFAULT_GOAL := help
.PHONY: help demo check test test-machine fuzz sim bench model book install package reproducible release clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' $(MAKEFILE_LIST)

demo: ## Set up, build, and run a dozen attacks without and with their guard (ARGS="--all" or "--only 4")
	@packaging/demo.sh $(ARGS)

check: ## Format, lints, unit and property tests, no namespaces: minutes
	@packaging/test.sh check

test: ## Set up, then everything: format, lints, tests, simulation, fuzz smoke, the demo
	@packaging/test.sh

test-machine: ## Guard real machines under QEMU through restarts (ARGS="--only networkd"); hours without KVM
	@packaging/machine.sh $(ARGS)

fuzz: ## Fuzz every parser and bump (ARGS="SECONDS [TARGET...]", 60 each); needs cargo-fuzz and nightly Rust
	@fuzz/run.sh $(ARGS)

sim: ## The LAN in memory: ARGS="--seed 1 --runs 1000"
	@packaging/lab.sh sim $(or $(ARGS),--seed 1 --runs 1000)

bench: ## Tables, measured here: ARGS="cll --json FILE", "s-arp", "scrub --plots DIR", "nonces", "site", "console", "peers" or "machine"
	@packaging/lab.sh bench $(or $(ARGS),cll)

model: ## Check the models of model/ and print each query's verdict (ARGS="--quick"); installs Verifpal below target/
	@packaging/model.sh $(ARGS)

book: ## All documents as a book for a browser, in target/book/html, links checked; installs mdBook below target/
	@packaging/book.sh

install: ## Install program, units and manual page below PREFIX (/usr/local) and DESTDIR, and make /etc/ringwall
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" packaging/install.sh

package: ## A Debian package in target/package: stripped program, units, pages, completions, bill of materials
	@packaging/package.sh

reproducible: ## Build the program twice in two folders and compare it byte by byte (QUICK=1: not optimised)
	@packaging/reproducible.sh

release: ## Archive, bill of materials, checksums and their signature: KEY=FILE of an SSH key; see docs/releasing.md
	@packaging/release.sh "$(KEY)"

clean: ## Remove what was built
	@cargo clean
