//! The house as a test: who may import whom, what the pure rooms may not do, and that documents and code agree.
//!
//! It reads the source as text and needs neither root nor a network.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "architecture/circles.rs"]
mod circles;
#[path = "architecture/source.rs"]
mod source;
#[path = "architecture/types.rs"]
mod types;

use std::collections::{BTreeMap, BTreeSet};

use source::{code, files_below, is_word, item_end, product_files, read};
use types::Of;

/// Each room, the rooms it may import, and those it may import in tests besides. `scrub` never imports `identity`; `sarp`,
/// `cll` and `scrub` never import each other.
const ROOMS: &[(&str, &[&str], &[&str])] = &[
    ("bump", &[], &[]),
    ("wire", &[], &[]),
    ("identity", &["wire"], &[]),
    ("authority", &["wire", "identity"], &[]),
    ("dhcp", &["bump", "wire", "identity", "shield"], &["authority"]),
    ("shield", &["bump", "wire"], &[]),
    ("sarp", &["bump", "wire", "identity", "dhcp", "shield"], &["authority"]),
    ("cll", &["bump", "wire", "identity", "dhcp", "shield"], &["authority"]),
    ("scrub", &["bump", "wire"], &[]),
    ("pair", &["bump", "identity"], &[]),
    ("system", &["bump", "wire"], &[]),
    ("watch", &["bump", "wire"], &[]),
    (
        "ringwall",
        &["bump", "wire", "identity", "authority", "dhcp", "shield", "sarp", "cll", "pair", "scrub", "system", "watch"],
        &[],
    ),
    ("lab", &["bump", "wire", "identity", "authority", "dhcp", "shield", "sarp", "cll", "scrub", "system"], &[]),
];

/// Rooms that take time, randomness and frames as arguments.
const PURE: &[&str] =
    &["bump", "wire", "identity", "authority", "dhcp", "shield", "sarp", "cll", "scrub", "pair", "watch"];

/// What only `system`, `ringwall` and `lab` may do.
const IMPURE: &[&str] = &[
    "std::time::Instant",
    "Instant::now",
    "SystemTime",
    "UdpSocket",
    "TcpStream",
    "TcpListener",
    "UnixStream",
    "UnixListener",
    "UnixDatagram",
    "std::thread",
    "thread::",
    "std::env",
    "env::var",
    "std::process",
    "Command::new",
    "rand::",
    "getrandom",
    "OsRng",
    "thread_rng",
    "SystemRandom",
    "tracing::",
    "log::",
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "dbg!",
];

/// Exceptions from [`IMPURE`], each with its file and its reason.
const IMPURE_ALL_THE_SAME: &[(&str, &[&str], &str)] = &[
    (
        "crates/identity/src/signing.rs",
        &["SystemRandom", "rand::"],
        "the library takes no other source for the randomness inside ECDSA and RSA-PSS signatures",
    ),
    (
        "crates/authority/src/repository/etcd/breaker.rs",
        &["std::time::Instant", "Instant::now"],
        "a library asks the cluster over the network and waits by this clock",
    ),
];

/// Longest function outside of tests, in lines from `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that are longer: file, name, lines. This list only ever shrinks.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

/// Most methods of a type outside of tests, over all its `impl` blocks.
const METHODS_MAX: usize = 40;

/// Most fields of a type outside of tests.
const FIELDS_MAX: usize = 15;

/// Types that are larger: file, name, of what, how many. This list only ever shrinks.
const LARGE_TYPES: &[(&str, &str, Of, usize)] = &[
    ("crates/authority/src/directory.rs", "Directory", Of::Methods, 48),
    ("crates/authority/src/repository/etcd/mod.rs", "EtcdStore", Of::Methods, 58),
    ("crates/cll/src/control/mod.rs", "PeerReport", Of::Fields, 16),
    ("crates/cll/src/settings.rs", "Settings", Of::Fields, 30),
    ("crates/lab/src/attack/mod.rs", "Attack", Of::Fields, 16),
    ("crates/ringwall/src/modes/cll/config.rs", "Cll", Of::Fields, 33),
    ("crates/ringwall/src/modes/gateway/config.rs", "Gate", Of::Fields, 28),
    ("crates/ringwall/src/modes/gateway/parts.rs", "GateStatus", Of::Fields, 22),
    ("crates/ringwall/src/modes/cll/peers.rs", "Peer", Of::Fields, 16),
    ("crates/ringwall/src/site/issuing/mod.rs", "IssueArguments", Of::Fields, 17),
    ("crates/ringwall/src/status.rs", "Status", Of::Fields, 19),
    ("crates/scrub/src/settings.rs", "Settings", Of::Fields, 20),
];

/// Circles of imports between the files of a crate (`architecture/circles.rs`): crate, first file,
/// how many files. This list only ever shrinks.
const CIRCLES: &[(&str, &str, usize)] = &[("cll", "control/associations.rs", 24), ("identity", "aead.rs", 12)];

/// The rooms that exist, by directory.
fn rooms() -> Vec<String> {
    let manifests = files_below("crates").into_iter().filter(|name| name.ends_with("/Cargo.toml"));
    let mut rooms: Vec<String> = manifests.filter_map(|name| name.split('/').nth(1).map(str::to_owned)).collect();
    rooms.dedup();
    rooms
}

/// The keys of the section `[section]` of a manifest, as far as they name dependencies.
fn section(manifest: &str, section: &str) -> Vec<String> {
    let header = format!("[{section}]");
    let lines = manifest.lines().skip_while(|line| line.trim() != header).skip(1);
    let entries = lines.take_while(|line| !line.trim_start().starts_with('['));
    let entries = entries.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    entries.filter_map(|line| line.split(['.', '=', ' ']).next()).map(str::to_owned).collect()
}

fn assert_none(problems: &[String], what: &str) {
    assert!(problems.is_empty(), "{what}:\n  {}", problems.join("\n  "));
}

#[test]
fn arrows_between_rooms_point_as_designed() {
    let all: BTreeSet<String> = rooms().into_iter().collect();
    let mut wrong = Vec::new();
    for room in &all {
        let Some((_, allowed, in_tests)) = ROOMS.iter().find(|(name, ..)| name == room) else {
            wrong.push(format!("crates/{room} is no room of the design: add it to ROOMS with its arrows"));
            continue;
        };
        let manifest = read(&format!("crates/{room}/Cargo.toml"));
        let ours = |kind: &str| {
            section(&manifest, kind).into_iter().filter(|name| all.contains(name) || name == "ringwall-lab")
        };
        let product = ours("dependencies").chain(ours("build-dependencies"));
        wrong.extend(product.filter(|name| !allowed.contains(&name.as_str())).map(|name| format!("{room} -> {name}")));
        let tests = ours("dev-dependencies").filter(|name| !allowed.contains(&name.as_str()));
        let tests = tests.filter(|name| !in_tests.contains(&name.as_str()));
        wrong.extend(tests.map(|name| format!("{room} -> {name} (in tests)")));
    }
    assert_none(&wrong, "arrows that the design does not have");
}

#[test]
fn dependencies_are_pinned_in_one_place() {
    let mut wrong = Vec::new();
    for room in rooms() {
        let manifest = read(&format!("crates/{room}/Cargo.toml"));
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for name in section(&manifest, kind) {
                if !manifest.contains(&format!("\n{name}.workspace = true")) {
                    wrong.push(format!("{room}: {name} is not taken from the workspace"));
                }
            }
        }
    }
    let workspace = read("Cargo.toml");
    for line in workspace.lines().skip_while(|line| *line != "[workspace.dependencies]").skip(1) {
        if line.starts_with('[') {
            break;
        }
        if line.contains('=') && !line.contains("path = ") && !line.contains("\"=") {
            wrong.push(format!("not pinned to one version: {line}"));
        }
    }
    assert_none(&wrong, "dependencies");
}

#[test]
fn pure_rooms_take_time_randomness_and_frames_as_arguments() {
    let mut wrong = Vec::new();
    for room in PURE {
        for file in product_files(room) {
            let code = code(&file);
            for call in IMPURE.iter().filter(|call| contains_word(&code, call)) {
                if !IMPURE_ALL_THE_SAME.iter().any(|(place, excused, _)| *place == file && excused.contains(call)) {
                    wrong.push(format!("{file}: {call}"));
                }
            }
        }
    }
    assert_none(&wrong, "clock, socket, randomness, process or log call in a pure room");
}

/// Whether `word` stands in `code` and is not the end of a longer word.
fn contains_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| !code[..at].ends_with(is_word))
}

#[test]
fn unsafe_code_is_in_system_only() {
    let mut wrong = Vec::new();
    for room in rooms().iter().filter(|room| *room != "system") {
        for file in product_files(room) {
            let code = code(&file);
            let mut words = code.split(|letter| !is_word(letter));
            if words.any(|word| word == "unsafe" || word == "unsafe_code") {
                wrong.push(file);
            }
        }
    }
    assert_none(&wrong, "unsafe outside of system");
}

#[test]
fn unsafe_blocks_say_why_they_are_sound() {
    let mut wrong = Vec::new();
    for file in product_files("system") {
        let text = read(&file);
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let is_block = line.contains("unsafe {") || line.contains("unsafe impl");
            let is_said = lines[at.saturating_sub(6)..=at].iter().any(|line| line.contains("// SAFETY:"));
            if is_block && !is_said {
                wrong.push(format!("{file}:{}", at + 1));
            }
        }
    }
    assert_none(&wrong, "unsafe without a // SAFETY: line in front of it");
}

#[test]
fn functions_are_short() {
    let mut long = Vec::new();
    for room in rooms() {
        for file in product_files(&room) {
            let found = functions(&code(&file)).into_iter().filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
            long.extend(found.map(|(name, lines)| (file.clone(), name, lines)));
        }
    }
    let mut wrong = Vec::new();
    for (file, name, lines) in &long {
        let allowed = LONG_FUNCTIONS.iter().find(|(place, function, _)| place == file && function == name);
        if allowed.is_none_or(|(_, _, most)| lines > most) {
            wrong.push(format!("{file}: {name} has {lines} lines: at most {FUNCTION_LINES_MAX}"));
        }
    }
    for (file, name, _) in LONG_FUNCTIONS {
        if !long.iter().any(|(place, function, _)| place == file && function == name) {
            wrong.push(format!("{file}: {name} is short now: take it off the list, which only shrinks"));
        }
    }
    assert_none(&wrong, "long functions");
}

/// Names of the functions in `code` and their lines, the signature included.
fn functions(code: &str) -> Vec<(String, usize)> {
    let starts = code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(is_word));
    let function = |(at, mark): (usize, &str)| {
        let name: String = code[at + mark.len()..].chars().take_while(|letter| is_word(*letter)).collect();
        let lines = code[at..item_end(code, at)].lines().count();
        (!name.is_empty()).then_some((name, lines))
    };
    starts.filter_map(function).collect()
}

#[test]
fn types_are_small() {
    let mut sizes = BTreeMap::new();
    for room in rooms() {
        let files: Vec<_> = product_files(&room).into_iter().map(|file| (file.clone(), code(&file))).collect();
        sizes.extend(types::sizes(&files));
    }
    assert!(sizes.len() > 1000, "the types are found: {}", sizes.len() / 2);
    assert_none(&unlike_the_list(&sizes, LARGE_TYPES), "large types");
}

/// What is larger than it may be, and what of the list is not so any more.
fn unlike_the_list(sizes: &BTreeMap<(types::Name, Of), usize>, list: &[(&str, &str, Of, usize)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (((file, name), of), count) in sizes {
        let most = if *of == Of::Methods { METHODS_MAX } else { FIELDS_MAX };
        let listed = list.iter().find(|(place, listed, what, _)| (place, listed, what) == (&&**file, &&**name, of));
        let most_of_all = listed.map_or(most, |(.., most)| *most);
        if *count > most_of_all {
            wrong.push(format!(
                "{file}: {name} has {count} {of:?}, at most {most_of_all}: cut it into types that own what they change"
            ));
        } else if listed.is_some() && *count < most_of_all {
            let rest = if *count > most { "enter that in the list" } else { "take it off the list" };
            wrong.push(format!("{file}: {name} has only {count} {of:?} now: {rest}, which only shrinks"));
        }
    }
    let is_there = |(file, name, of, _): &&(&str, &str, Of, usize)| {
        sizes.contains_key(&(((*file).to_owned(), (*name).to_owned()), *of))
    };
    wrong.extend(
        list.iter()
            .filter(|entry| !is_there(entry))
            .map(|(file, name, ..)| format!("{file} has no {name}: take it off")),
    );
    wrong
}

#[test]
fn the_counter_of_methods_and_fields_can_fail() {
    let types = "/// Not a field: nothing.
        pub struct Large<F: Fn(u8) -> u8> where F: Clone {
            pub(crate) map: BTreeMap<u8, (u8, [u8; 4])>, call: fn(u8, u8) -> u8,
            #[serde(default)] last: F
        }
        struct Empty;
        pub(crate) struct Pair(u8, Option<(u8, u8)>);
        impl Pair { const fn one(self) { struct Inner { a: u8 } fn inner() {} } }
        fn free(make: impl Fn() -> u8) -> impl Iterator<Item = u8> { fn inside() {} }
        #[cfg(test)] impl<F> Large<F> { fn of_a_test() {} }";
    let elsewhere = "impl<F: Fn(u8) -> u8> Large<F> where F: Clone { fn a(&self) {} pub async fn b(&self) {} }
        impl fmt::Debug for super::Large<u8> { fn fmt(&self) {} }
        unsafe impl<'a> Send for &'a Pair {}
        struct Empty { a: u8 } impl Empty { fn here() {} }";
    let files = [("a.rs", types), ("a/b.rs", elsewhere)];
    let files = files.map(|(name, text)| (name.to_owned(), source::outside_of_tests(text)));
    let sizes = types::sizes(&files);
    let size = |file: &str, name: &str| {
        let of = |what| sizes[&((file.to_owned(), name.to_owned()), what)];
        (of(Of::Methods), of(Of::Fields))
    };
    assert_eq!(size("a.rs", "Large"), (3, 3));
    assert_eq!(size("a.rs", "Pair"), (1, 2));
    assert_eq!((size("a.rs", "Empty"), size("a/b.rs", "Empty")), ((0, 0), (1, 1)));
    let list = |most| [("a.rs", "Large", Of::Methods, most)];
    let told = |most| unlike_the_list(&sizes, &list(most)).len();
    assert_eq!([told(2), told(3), told(4)], [1, 0, 1], "larger than listed, as listed, smaller than listed");
    assert_eq!(unlike_the_list(&sizes, &[("a.rs", "Gone", Of::Fields, 20)]).len(), 1, "what is listed is there");
    let many = "fn a() {} ".repeat(METHODS_MAX + 1);
    let files = [("c.rs".to_owned(), format!("struct Large; impl Large {{ {many} }}"))];
    assert_eq!(unlike_the_list(&types::sizes(&files), &[]).len(), 1, "what is not listed is small");
}

#[test]
fn files_import_each_other_in_no_circle() {
    let mut wrong = Vec::new();
    let mut found = Vec::new();
    for room in rooms() {
        let below = format!("crates/{room}/src/");
        let files = product_files(&room).into_iter().map(|file| (file[below.len()..].to_owned(), code(&file)));
        let circles = circles::circles(&files.collect::<Vec<_>>());
        found.extend(circles.into_iter().map(|files| (room.clone(), files)));
    }
    for (room, files) in &found {
        let listed = CIRCLES.iter().find(|(name, first, _)| name == room && *first == files[0]);
        if listed.is_none_or(|(.., most)| files.len() != *most) {
            wrong.push(format!("{room}, {} files: {}", files.len(), files.join(", ")));
        }
    }
    let is_there =
        |(room, first, _): &&(&str, &str, usize)| found.iter().any(|(name, files)| name == room && files[0] == *first);
    let gone = CIRCLES.iter().filter(|circle| !is_there(circle));
    wrong.extend(gone.map(|(room, first, _)| format!("{room}: {first} is in no circle now: take it off the list")));
    assert_none(&wrong, "circles of imports that are not as listed: a list that only shrinks");
}

#[test]
fn the_finder_of_circles_can_fail() {
    let files = |files: &[(&str, &str)]| -> Vec<(String, String)> {
        files.iter().map(|(name, code)| ((*name).to_owned(), (*code).to_owned())).collect()
    };
    let around = files(&[
        ("lib.rs", "mod a; mod b; mod c; use a::A;"),
        ("a.rs", "use std::fmt; use crate::{b::{self, B}, Root};"),
        ("b/mod.rs", "mod part; pub use part::{One as Two}; use self::part::One;"),
        ("b/part.rs", "use super::B; fn f() { crate::c::call() }"),
        ("c.rs", "use crate::a::{\n    A,\n};"),
        ("d.rs", "use crate::a::A; use crate::e;"),
        ("e.rs", "fn f() { let a: super::d_other; }"),
    ]);
    assert_eq!(circles::circles(&around), [["a.rs", "b/mod.rs", "b/part.rs", "c.rs"]]);
    let straight =
        files(&[("lib.rs", "use a::A;"), ("a/mod.rs", "use b::B;"), ("a/b.rs", "use super::A; use crate::A;")]);
    assert!(circles::circles(&straight).is_empty(), "a part uses what its folder says to its parts");
    let two = files(&[("a.rs", "use crate::b::B;"), ("b.rs", "use super::a::A;"), ("c.rs", "use crate::b::B;")]);
    assert_eq!(circles::circles(&two), [["a.rs", "b.rs"]]);
}

/// Where the modes are, each in a folder of its own.
const MODES: &str = "crates/ringwall/src/modes/";

/// Broke it by a `Mode::Null` in the doctor, and by an import of `cll` in the daemon.
#[test]
fn a_mode_is_named_in_its_room_only() {
    let names = code(&format!("{MODES}name.rs"));
    let start = names.find("enum Mode {").expect("the names of the modes");
    let body = names[start..item_end(&names, start)].lines().skip(1);
    let modes: Vec<_> =
        body.filter_map(|line| line.trim().strip_suffix(',')).map(|mode| format!("Mode::{mode}")).collect();
    assert_eq!(modes.len(), 4, "{modes:?}");
    let mut wrong = Vec::new();
    for file in product_files("ringwall").iter().filter(|file| !file.starts_with(MODES)) {
        let code = code(file);
        wrong.extend(modes.iter().filter(|mode| code.contains(*mode)).map(|mode| format!("{file} asks for {mode}")));
        let of_daemon = file.contains("/daemon/").then_some(["cll", "sarp", "shield", "scrub", "dhcp", "modes"]);
        let named = of_daemon.into_iter().flatten().filter(|room| code.contains(&format!("{room}::")));
        wrong.extend(named.map(|room| format!("{file} imports {room}")));
    }
    assert_none(&wrong, "places that know a mode: put the question to `HostMode`, or make it a type of `Kind`");
}

/// Broke it by `account.mode() == "null"` in the command line.
#[test]
fn a_mode_is_compared_by_name_in_its_room_only() {
    let names = read(&format!("{MODES}name.rs"));
    let words = names.split("=> \"").skip(1).filter_map(|rest| rest.split('"').next());
    let words: Vec<_> = words.chain(["gate"]).map(|word| format!("\"{word}\"")).collect();
    assert_eq!(words.len(), 5, "{words:?}");
    let mut wrong = Vec::new();
    for file in product_files("ringwall").iter().filter(|file| !file.starts_with(MODES)) {
        let (text, code) = (read(file), code(file));
        let lines = text.lines().zip(code.lines()).enumerate().filter(|(_, (_, code))| !code.trim().is_empty());
        for (at, (line, _)) in lines {
            let found = words.iter().filter(|word| line.contains(*word));
            wrong.extend(found.map(|word| format!("{file}:{} says {word}", at + 1)));
        }
    }
    assert_none(
        &wrong,
        "places that know a mode by its word: let `Mode`, `Account` or a `Part` say what is asked of it",
    );
}

#[test]
fn every_drop_reason_has_its_row_in_the_manual() {
    const PAGE: &str = "docs/manual/drop-reasons.md";
    let manual = read(PAGE);
    let reasons = drop_reasons();
    assert!(reasons.len() > 40, "the macro in fate.rs is read: {} reasons", reasons.len());
    let rows: Vec<String> =
        reasons.iter().map(|[word, meaning, remedy]| format!("| `{word}` | {meaning} | {remedy} |")).collect();
    let missing: Vec<String> = rows.iter().filter(|row| !manual.lines().any(|line| line == *row)).cloned().collect();
    assert_none(&missing, &format!("rows that {PAGE} lacks or has otherwise"));
    let rows_there = manual.lines().skip_while(|line| !line.starts_with("| reason | meaning | remedy |")).skip(2);
    let there = rows_there.take_while(|line| line.starts_with('|')).count();
    assert_eq!(there, rows.len(), "{PAGE} has rows for reasons that are gone");
}

/// Word, meaning and remedy of every reason, as `bump` declares them.
fn drop_reasons() -> Vec<[String; 3]> {
    let source = read("crates/bump/src/fate.rs");
    let start = source.find("\ndrop_reasons! {").expect("the declaration");
    let block = &source[start..];
    let block = &block[..block.find("\n}").expect("its end")];
    let texts: Vec<String> = block.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    texts.chunks(3).map(|three| <[String; 3]>::try_from(three.to_vec()).expect("three texts")).collect()
}

#[test]
fn every_dependency_has_its_reason() {
    let reasons = read("docs/decisions/dependencies.md");
    let manifest = read("Cargo.toml");
    let ours: BTreeSet<String> = rooms().into_iter().collect();
    let names = section(&manifest, "workspace.dependencies").into_iter().filter(|name| !ours.contains(name));
    let names: Vec<String> = names.collect();
    let has_row = |name: &String| reasons.lines().any(|line| line.starts_with(&format!("| `{name}` |")));
    let missing: Vec<String> = names.iter().filter(|name| !has_row(name)).cloned().collect();
    assert_none(&missing, "dependencies without a line in docs/decisions/dependencies.md");
    let listed = reasons.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let gone: Vec<String> = listed.filter(|name| !names.iter().any(|other| other == name)).map(str::to_owned).collect();
    assert_none(&gone, "lines in docs/decisions/dependencies.md for what is no dependency");
}

/// What differs is built twice, and `make test` waits for it.
#[test]
fn both_workspaces_build_dependencies_alike() {
    let (ours, fuzz) = (read("Cargo.toml"), read("fuzz/Cargo.toml"));
    let levels = |manifest: &str| -> BTreeMap<String, String> {
        let parts = manifest.split("[profile.dev.package.").skip(1);
        parts.filter_map(|part| part.split_once("]\n")).map(|(name, rest)| (name.to_owned(), line_of(rest))).collect()
    };
    let locked = read("fuzz/Cargo.lock");
    let mut wanted = levels(&ours);
    wanted.retain(|name, _| locked.contains(&format!("name = \"{name}\"\n")));
    assert!(wanted.len() > 30, "{wanted:?}");
    assert_eq!(levels(&fuzz), wanted);
}

fn line_of(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn nothing_is_left_unfinished_or_names_a_machine() {
    // Put together here, or this file would find itself.
    let marks = ["to", "unim", "FIX", "XX", "#[ign", "../sha", ".libr", "/wo", "/ro"];
    let ends = ["do!(", "plemented!(", "ME", "X", "ore", "red", "ary/", "rk/", "ot/"];
    let forbidden: Vec<String> = marks.iter().zip(ends).map(|(mark, end)| format!("{mark}{end}")).collect();
    let kinds = [".rs", ".py", ".sh", ".c", ".h", ".toml", ".md", ".service", "Makefile", ".ci/run", ".json"];
    let mut wrong = Vec::new();
    for file in files_below(".").iter().filter(|name| kinds.iter().any(|kind| name.ends_with(kind))) {
        let text = read(file);
        for (number, line) in text.lines().enumerate() {
            let found = forbidden.iter().find(|mark| line.contains(mark.as_str()));
            wrong.extend(found.map(|mark| format!("{file}:{}: {mark}", number + 1)));
        }
    }
    assert_none(&wrong, "unfinished marks and paths of a machine");
}

#[test]
fn commands_in_the_documents_exist() {
    let makefile = read("Makefile");
    let sources = |room: &str| product_files(room).iter().map(|file| read(file)).collect::<String>();
    let programs = [("ringwall", sources("ringwall")), ("ringwall-lab", sources("lab"))];
    let mut wrong = Vec::new();
    let pages: Vec<String> = ["docs/manual", "docs/contributing"].iter().flat_map(|room| files_below(room)).collect();
    assert!(pages.len() > 25, "{} pages", pages.len());
    let documents = ["README.md", "CONTRIBUTING.md", "docs/tutorial.md"].map(str::to_owned);
    for document in documents.iter().chain(&pages) {
        for line in commands(&read(document)) {
            let words: Vec<&str> = line.split_whitespace().skip_while(|word| *word == "sudo").collect();
            let known = match words.split_first() {
                Some((&"make", rest)) => {
                    let mut targets = rest.iter().filter(|word| !word.contains('=') && !word.starts_with('-'));
                    targets.all(|target| makefile.contains(&format!("\n{target}:")))
                }
                Some((program, rest)) => {
                    programs.iter().find(|(name, _)| name == program).is_none_or(|(_, source)| takes(source, rest))
                }
                None => true,
            };
            if !known {
                wrong.push(format!("{document}: {line}"));
            }
        }
    }
    assert_none(&wrong, "commands that do not exist");
}

/// The lines of all code blocks and the code spans of a document, without comments and prompts.
fn commands(document: &str) -> Vec<String> {
    let mut in_block = false;
    let mut found = Vec::new();
    for line in document.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            found.push(line.split(" #").next().unwrap_or_default().trim().to_owned());
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

/// Whether a program with this source has the subcommands and long options in `words`.
fn takes(source: &str, words: &[&str]) -> bool {
    let subcommands =
        words.iter().take_while(|word| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'));
    let is_variant = |word: &str| {
        let parts = word.split('-').map(|part| part[..1].to_uppercase() + &part[1..]);
        contains_word(source, &parts.collect::<String>())
    };
    let options = words.iter().filter_map(|word| word.strip_prefix("--")).filter(|name| !name.is_empty());
    let is_option = |name: &str| {
        let field = name.split('=').next().unwrap_or(name).replace('-', "_");
        contains_word(source, &format!("{field}:"))
    };
    subcommands.take(2).filter(|word| !word.starts_with('-')).all(|word| is_variant(word))
        && options.into_iter().all(is_option)
}

#[test]
fn every_configuration_key_is_in_the_manual_and_in_the_example() {
    let of_sections = |file: &String| file.contains("/config/") || file.ends_with("/config.rs");
    let source: String =
        product_files("ringwall").iter().filter(|file| of_sections(file)).map(|file| read(file)).collect();
    let manual = read("docs/manual/configuration.md");
    let mut wrong = Vec::new();
    for (section, kind, example) in [
        ("host", "Host", Some("host.toml")),
        ("cll", "Cll", Some("host.toml")),
        ("cll.legacy", "LegacyHost", Some("host.toml")),
        ("cll.exception", "ExceptionHost", Some("host.toml")),
        ("cll.management", "ManagementHost", Some("host.toml")),
        ("sarp", "Sarp", Some("host.toml")),
        ("sarp.known_hosts", "KnownHost", Some("host.toml")),
        ("akd", "Akd", Some("host.toml")),
        ("dhcp", "Dhcp", Some("host.toml")),
        ("dhcp.relays", "Relay", Some("host.toml")),
        ("gate", "Gate", Some("gate.toml")),
        ("shares", "Shares", Some("gate.toml")),
        ("pair", "PairSection", Some("gate.toml")),
        ("shield", "Shield", Some("host.toml")),
        ("shield.peers", "ShieldPeer", Some("host.toml")),
        ("records", "Records", Some("host.toml")),
        ("lab", "Lab", None),
    ] {
        let example = example.map(|name| (name, read(&format!("packaging/{name}"))));
        let start = source.find(&format!("pub(crate) struct {kind} {{")).expect("the section");
        let fields = &source[start..item_end(&source, start)];
        let keys = fields.lines().filter_map(|line| line.trim().strip_prefix("pub(crate) ")?.split(':').next());
        let sections = ["legacy", "exception", "management", "known_hosts", "relays", "peers"];
        for key in keys.filter(|key| !key.starts_with("struct") && !sections.contains(key)) {
            if !manual.contains(&format!("| `{section}.{key}` |")) {
                wrong.push(format!("docs/manual/configuration.md lacks {section}.{key}"));
            }
            let is_there =
                |text: &str| text.contains(&format!("{key} = ")) || text.contains(&format!("[{section}.{key}]"));
            if let Some((name, _)) = example.as_ref().filter(|(_, text)| !is_there(text)) {
                wrong.push(format!("packaging/{name} lacks {section}.{key}"));
            }
        }
    }
    assert_none(&wrong, "configuration keys");
}

#[test]
fn the_reader_of_source_sees_code_only() {
    let source = "fn a() { \"}}{\"; '{'; // fn b() {\n r#\"fn c() { \"#; let l: &'static [u8; 1]; }\n#[cfg(test)]\nmod t { fn d() {} }\nfn e() {\n}\n";
    let text = source::without_text(source);
    assert_eq!(text.matches('\n').count(), source.matches('\n').count());
    assert_eq!(functions(&text), [("a".to_owned(), 2), ("d".to_owned(), 1), ("e".to_owned(), 2)]);
}
