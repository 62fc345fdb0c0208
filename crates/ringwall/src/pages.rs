//! Manual pages and completions, made from the declarations of the command line and from the
//! manual's table of keys. They are committed in `packaging/pages`, so that a package needs no
//! program to run; `packaging/pages.sh` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::Cli;

/// Set, the pages are written instead of compared.
const WRITE_VARIABLE: &str = "RINGWALL_WRITE_PAGES";

/// The tree that this crate lies in.
fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn pages_in_the_tree_are_those_of_this_program() {
    let directory = tree().join("packaging/pages");
    let mut wrong = Vec::new();
    for (name, page) in pages().expect("pages in memory") {
        let file = directory.join(&name);
        if std::env::var_os(WRITE_VARIABLE).is_some() {
            std::fs::write(&file, page).expect("written");
        } else if std::fs::read(&file).ok() != Some(page) {
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "run packaging/pages.sh, which writes these anew: {wrong:?}");
}

/// All of them, by the name of their file.
fn pages() -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut command = Cli::command();
    command.build();
    let manual = std::fs::read_to_string(tree().join("docs/manual/configuration.md"))?;
    let mut found = BTreeMap::from([
        ("ringwall.8".to_owned(), commands_page(&command)?),
        ("ringwall.toml.5".to_owned(), keys_page(&manual).into_bytes()),
    ]);
    let shown = without_hidden(&Cli::command()).version(env!("CARGO_PKG_VERSION"));
    for (shell, name) in [(Shell::Bash, "ringwall.bash"), (Shell::Zsh, "_ringwall"), (Shell::Fish, "ringwall.fish")] {
        let mut page = Vec::new();
        clap_complete::generate(shell, &mut shown.clone(), "ringwall", &mut page);
        found.insert(name.to_owned(), page);
    }
    Ok(found)
}

/// Completions offer what the help shows. A command cannot lose a subcommand, so it is made again with the others.
fn without_hidden(command: &Command) -> Command {
    // Names are constants of the declarations, but come back borrowed.
    let name: &'static str = Box::leak(command.get_name().into());
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(without_hidden);
    let kept = Command::new(name).args(command.get_arguments().cloned()).subcommands(shown);
    match command.get_about() {
        Some(about) => kept.about(about.clone()),
        None => kept,
    }
}

/// One page with all commands, section 8: an administrator reads one page, not thirty.
fn commands_page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    print_front(command, &mut page)?;
    print_commands(command, &mut page)?;
    writeln!(page, ".SH \"SEE ALSO\"\n\\fBringwall.toml\\fR(5)")?;
    Ok(page)
}

/// Everything but the list of subcommands, which would name pages that there are not.
fn print_front(command: &Command, out: &mut impl Write) -> io::Result<()> {
    let page = Man::new(command.clone()).section("8");
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    page.render_extra_section(out)?;
    page.render_version_section(out)
}

fn print_commands(command: &Command, out: &mut impl Write) -> io::Result<()> {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        if sub.has_subcommands() {
            print_commands(sub, out)?;
        }
        // One that only leads to others has nothing to say of its own.
        let is_command = !sub.has_subcommands() || sub.is_args_conflicts_with_subcommands_set();
        if !is_command {
            continue;
        }
        let name = sub.get_bin_name().unwrap_or(sub.get_name()).to_uppercase();
        writeln!(out, ".SH \"{name}\"")?;
        let page = Man::new(sub.clone());
        page.render_synopsis_section(out)?;
        page.render_description_section(out)?;
        page.render_options_section(out)?;
        if sub.get_after_help().is_some() || sub.get_after_long_help().is_some() {
            page.render_extra_section(out)?;
        }
    }
    Ok(())
}

/// The page of the configuration: the table of keys in the manual, a section for each section of the file.
fn keys_page(manual: &str) -> String {
    let mut page = format!(
        ".TH ringwall.toml 5 \"\" \"ringwall {}\"\n.SH NAME\nringwall.toml \\- configuration of Ringwall\n\
         .SH DESCRIPTION\n/etc/ringwall/INTERFACE.toml is read by ringwall@INTERFACE.service, /etc/ringwall/host.toml or \
         gate.toml by commands without \\-\\-config. The files are TOML. An unknown key is an error that names file and \
         line; \\fBringwall config check\\fR finds it, \\fBringwall config show\\fR prints what is in force.\n",
        env!("CARGO_PKG_VERSION"),
    );
    let rows = manual.lines().skip_while(|line| *line != "| key | default | meaning |").skip(2);
    let mut section = "";
    for row in rows.take_while(|line| line.starts_with('|')) {
        let mut cells = row.trim_matches('|').splitn(3, '|').map(str::trim);
        let (key, default, meaning) =
            (cells.next().unwrap_or(""), cells.next().unwrap_or(""), cells.next().unwrap_or(""));
        let key = key.trim_matches('`');
        let of = key.rsplit_once('.').map_or("", |(section, _)| section);
        if of != section {
            section = of;
            let _ = writeln!(page, ".SH \"SECTION {}\"", section.to_uppercase());
        }
        let _ = writeln!(page, ".TP\n\\fB{}\\fR (default: {})\n{}", roff(key), roff(default), roff(meaning));
    }
    page.push_str(".SH \"SEE ALSO\"\n\\fBringwall\\fR(8)\n");
    page
}

/// A cell of the table as roff: marks of Markdown taken out, links replaced by their text.
fn roff(cell: &str) -> String {
    let mut text = String::new();
    let mut rest = cell;
    while let Some((before, after)) = rest.split_once('[') {
        let link = after.split_once("](").and_then(|(name, end)| Some((name, end.split_once(')')?.1)));
        // Brackets of TOML are no links.
        let Some((name, end)) = link.filter(|(name, _)| !name.contains(['`', ']'])) else {
            text.push_str(before);
            text.push('[');
            rest = after;
            continue;
        };
        text.push_str(before);
        text.push_str(name);
        rest = end;
    }
    text.push_str(rest);
    let text = text.replace('`', "").replace("**", "").replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[test]
fn cells_become_text_and_nothing_in_them_is_a_request() {
    assert_eq!(roff("see [In place](#in-place) and `a-b`"), "see In place and a\\-b");
    assert_eq!(roff("one `[[cll.legacy]]` **each**"), "one [[cll.legacy]] each");
    assert_eq!(roff(".../site"), "\\&.../site");
}

#[test]
fn every_key_of_the_manual_has_its_place_in_the_page() {
    let page = keys_page(
        "x\n| key | default | meaning |\n|---|---|---|\n| `host.mode` | none | a |\n| `cll.legacy.ip` | `1` | b |\n\n",
    );
    for line in [".SH \"SECTION HOST\"", ".SH \"SECTION CLL.LEGACY\"", "\\fBcll.legacy.ip\\fR (default: 1)", "b"] {
        assert!(page.lines().any(|other| other == line), "{line}: {page}");
    }
}
