//! `ringwall top` in a real pseudo terminal, against real daemons.

use std::path::Path;

use ringwall_lab::net::process;
use ringwall_lab::net::talk::reach;

use crate::attacks::spoof;
use crate::stage::{Guarded, Outcome, Plan, SOON, perform};

/// Runs a command in a pseudo terminal of 120 by 30, gives it keys once a text is seen, and prints
/// what was seen each time. The status is that of the command, or 99 if the terminal was not given back as it was.
const TERMINAL: &str = r#"
import fcntl, os, pty, re, select, struct, sys, termios, time
script, command = [step.split("=", 1) for step in sys.argv[1].split(";")], sys.argv[2:]
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
before = termios.tcgetattr(slave)
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for stream in range(3):
        os.dup2(slave, stream)
    os.execvp(command[0], command)

class Screen:
    """As much of a terminal as draws what differs: places, and letters at them."""
    def __init__(self):
        self.cells, self.at, self.raw, self.done = [[" "] * 120 for _ in range(30)], [0, 0], b"", 0
    def take(self, raw):
        self.raw += raw
        text = self.raw.decode("utf-8", "ignore")
        for token in re.finditer(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b.|[^\x1b]", text[self.done:]):
            if token[2] == "H":
                row, column = (token[1] or "1;1").split(";")
                self.at = [int(row) - 1, int(column) - 1]
            elif token[2] is None and len(token[0]) == 1 and token[0] >= " " and self.at[1] < 120:
                self.cells[self.at[0]][self.at[1]] = token[0]
                self.at[1] += 1
        self.done = len(text)
    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)

screen, shots, end, status = Screen(), [], time.time() + 60, 98 << 8
while time.time() < end:
    if script and script[0][0] in screen.text():
        shots.append(screen.text())
        os.write(master, script[0][1].encode().decode("unicode_escape").encode())
        script = script[1:]
    if select.select([master], [], [], 0.2)[0]:
        screen.take(os.read(master, 65536))
    done, ended = os.waitpid(child, os.WNOHANG)
    if done:
        status = ended
        break
else:
    os.kill(child, 9)
after = termios.tcgetattr(slave)
while select.select([master], [], [], 0.2)[0]:
    screen.take(os.read(master, 65536))
print("\n---\n".join(shots + [screen.text()]))
colours = re.search(rb"\x1b\[[0-9;]*38;5;", screen.raw)
print("LEFT", b"\x1b[?1049l" in screen.raw, "COLOURS", colours is not None)
print("STEPS LEFT", script)
sys.exit(99 if before != after else status >> 8)
"#;

/// What `top` wrote while these steps were taken, each `TEXT=KEYS`, and its exit status.
fn watch(guarded: &Guarded, steps: &[&str], environment: &[(&str, &str)], directory: &Path) -> (String, Option<i32>) {
    let mut command = guarded.host.namespace.command("python3");
    command.args(["-c", TERMINAL, &steps.join(";")]).arg(crate::stage::program());
    command.args(["top", "--config"]).arg(&guarded.config).current_dir(directory);
    command.env_remove("NO_COLOR").env("TERM", "xterm-256color").envs(environment.iter().copied());
    let answer = process::ask(command, &[]).expect("python starts");
    (answer.stdout, answer.status.code())
}

#[test]
fn a_person_sees_an_attack_reads_about_it_and_keeps_a_snapshot() {
    perform(&["a", "b", "c"], |stage| -> Outcome {
        let (a, b, liar) = (stage.host("a"), stage.host("b"), stage.host("c"));
        let (near, _far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
        reach(&a.namespace, b.ip, SOON)?;
        spoof(liar, a, b)?;
        near.await_event("arp-spoofing", SOON)?;
        let place = stage.file("snapshots");
        std::fs::create_dir_all(&place).expect("made");
        let steps = [
            "q quit=2",
            "established=/",
            "filter: _=nobody",
            "none with \"nobody\"=\\x1b",
            "established=3",
            "do: =s",
            "written: =q",
        ];
        let (text, code) = watch(&near, &steps, &[], &place);
        assert!(text.contains("STEPS LEFT []") && text.contains("LEFT True COLOURS True"), "{text}");
        assert!(text.contains("WARNING e0: ATTACKED (arp-spoofing)") && text.contains(&liar.mac.to_string()), "{text}");
        assert_eq!(code, Some(1), "as status says it, and the terminal is as before: {text}");
        let file = std::fs::read_dir(&place).expect("there").next().expect("a snapshot").expect("it").path();
        let kept = std::fs::read_to_string(file).expect("read");
        assert!(kept.contains("\nPeers: 1\n") && kept.contains(&b.mac.to_string()), "{kept}");
        assert!(kept.contains("\nAttacks: 1\n") && kept.contains("plain-arp"), "{kept}");

        let (text, code) = watch(&near, &["q quit=\\x03"], &[("NO_COLOR", "1")], &place);
        assert!(text.contains("LEFT True COLOURS False") && code == Some(1), "{code:?} {text}");
        Ok(())
    });
}

#[test]
fn one_look_in_plain_text_has_the_exit_status_of_how_it_is() {
    perform(&["a", "b"], |stage| -> Outcome {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (mut near, _far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
        reach(&a.namespace, b.ip, SOON)?;
        let answer = near.ask(&["top", "--once", "--plain"])?;
        let verdict = near.ask(&["status"])?;
        assert_eq!(answer.status.code(), verdict.status.code(), "{}", answer.stdout);
        let first = verdict.stdout.lines().next().unwrap_or_default();
        assert!(answer.stdout.contains(first) && !answer.stdout.contains('\u{1b}'), "{first}: {}", answer.stdout);
        assert!(
            answer.stdout.contains("\nPeers: 1\n") && answer.stdout.contains(&b.mac.to_string()),
            "{}",
            answer.stdout
        );
        assert!(answer.stdout.contains("b ") && answer.stdout.contains("a (this host)"), "{}", answer.stdout);
        let refused = near.ask(&["top"])?;
        assert!(!refused.status.success() && refused.stderr.contains("--plain"), "{}", refused.stderr);
        near.stop(rustix::process::Signal::TERM);
        let answer = near.ask(&["top", "--once"])?;
        assert_eq!(answer.status.code(), Some(3), "{}", answer.stdout);
        assert!(answer.stdout.contains("UNKNOWN e0: "), "{}", answer.stdout);
        Ok(())
    });
}
