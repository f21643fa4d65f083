//! Completions, manual pages and colours.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn mayhap(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayhap"));
    command.args(arguments.split_whitespace()).stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "COLUMNS"] {
        command.env_remove(variable);
    }
    command
}

fn answer(arguments: &str) -> String {
    let output = mayhap(arguments).output().expect("the program starts");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.as_str()), (Some(0), ""), "{arguments}");
    String::from_utf8(output.stdout).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("manual").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The commands that `--help` lists.
fn verbs() -> Vec<String> {
    let help = answer("--help");
    let list =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A long description continues on the next line, with more indentation.
    let verbs = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    verbs
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_shell_gets_a_script_with_every_command() {
    let verbs = verbs();
    assert!(verbs.len() >= 4 && verbs.contains(&"bench".into()), "{verbs:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = answer(&format!("completions {shell}"));
        for word in verbs.iter().map(String::as_str).chain(["fpr", "color", "kinds"]) {
            assert!(script.contains(word), "the script of {shell} does not know {word}");
        }
    }
    let wrong = mayhap("completions tcsh").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("tcsh"));
}

/// Bash accepts the script, and it completes.
#[test]
fn bash_completes_commands_and_options() {
    let script = folder("bash").join("mayhap.bash");
    fs::write(&script, answer("completions bash")).unwrap();
    let checked = Command::new("bash").arg("-n").arg(&script).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let complete = |words: &str| {
        let program = format!(
            "source \"$0\"; COMP_WORDS=({words} \"\"); COMP_WORDS[-1]=\"$1\"; COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _mayhap mayhap \"$1\" \"\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        move |last: &str| {
            let output = Command::new("bash").args(["-c", &program]).arg(&script).arg(last).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        }
    };
    assert_eq!(complete("mayhap")("pl").trim(), "plan");
    let script = folder("bash").join("mayhap.bash");
    fs::write(&script, answer("completions bash")).unwrap();
    let program = "source \"$0\"; COMP_WORDS=(mayhap bench --f); COMP_CWORD=2; _mayhap mayhap --f bench; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", program]).arg(&script).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "--fpr");
}

/// One page per command and one for all, each with the usual sections and the text of `--help`.
#[test]
fn every_command_has_a_page() {
    let folder = folder("pages").join("share/man1");
    assert_eq!(answer(&format!("man --dir {}", folder.display())), "");
    let mut pages: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let mut expected: Vec<_> = verbs().iter().map(|verb| format!("mayhap-{verb}.1")).collect();
    expected.push("mayhap.1".into());
    expected.sort();
    assert_eq!(pages, expected, "and nothing that was written aside");
    for name in &pages {
        let page = fs::read_to_string(folder.join(name)).unwrap();
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS"] {
            assert!(
                page.contains(&format!(".SH \"{section}\"")) || page.contains(&format!(".SH {section}\n")),
                "{name} has no {section}"
            );
        }
        let examples =
            page.split(".SH EXAMPLES\n").nth(1).unwrap_or_else(|| panic!("{name} has no EXAMPLES"));
        let examples = examples.split("\n.SH").next().unwrap();
        assert!(examples.matches("mayhap").count() >= 3, "{name}: {examples}");
    }
    let main = fs::read_to_string(folder.join("mayhap.1")).unwrap();
    for verb in verbs() {
        assert!(main.contains(&format!("\\fBmayhap\\-{verb}\\fR")), "the main page does not name {verb}");
    }
    assert_eq!(answer("man"), main);
    assert_eq!(answer("man --verb plan"), fs::read_to_string(folder.join("mayhap-plan.1")).unwrap());
}

/// As `man` shows it: an example is on one line, a paragraph is wrapped.
#[test]
fn a_page_is_readable() {
    if Command::new("groff").arg("--version").output().is_err() {
        eprintln!("groff is not installed: how a page looks is not tested");
        return;
    }
    for verb in verbs() {
        let mut groff = Command::new("groff")
            .args(["-man", "-Tutf8", "-P-cbou", "-rLL=100n", "-ww", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(
            &mut groff.stdin.take().unwrap(),
            answer(&format!("man --verb {verb}")).as_bytes(),
        )
        .unwrap();
        let Output { stdout, stderr, .. } = groff.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&stderr), "", "groff on {verb}");
        let text = String::from_utf8(stdout).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{verb}:\n{text}");
        // Plain dashes, which can be copied.
        assert!(
            !text.contains('\u{2010}') && !text.contains('\u{2212}'),
            "{verb} has dashes that are not plain hyphens:\n{text}"
        );
        let help = answer(&format!("{verb} --help"));
        let examples =
            help.split("\nExamples:\n").nth(1).unwrap_or_else(|| panic!("{verb} --help has no examples"));
        for example in examples.lines().filter(|line| line.trim_start().starts_with("mayhap ")) {
            assert!(text.contains(example.trim_end()), "{verb}: the page lacks {example:?}:\n{text}");
        }
    }
}

/// Shared options have separate headings, and a command's own options are not under them.
#[test]
fn headings_apply_only_to_their_options() {
    let help = answer("check --help");
    let own = help.split("\nOptions:\n").nth(1).expect("options").split("\n\nInput:\n").next().unwrap();
    assert!(own.contains("--invert-match") && own.contains("--count"), "{help}");
    let input = help.split("\nInput:\n").nth(1).expect("input").split("\n\nFilters").next().unwrap();
    assert!(input.contains("--jsonl") && !input.contains("--invert-match"), "{help}");
}

#[test]
fn the_manual_is_written_to_any_destination() {
    let unknown = mayhap("man --verb sing").output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&unknown.stderr)
            .starts_with("mayhap: there is no verb \"sing\"; the verbs are serve, plan")
    );
    let nowhere = mayhap("man --dir /proc/nowhere").output().unwrap();
    assert_eq!(nowhere.status.code(), Some(2));
    let said = String::from_utf8(nowhere.stderr).unwrap();
    assert!(said.starts_with("mayhap: /proc/nowhere: ") && said.lines().count() == 1, "{said}");
}

#[test]
fn colours_are_used_only_on_request() {
    let plan = "plan --items 1e6 --fpr 1%";
    let coloured = |arguments: &str, variable: Option<(&str, &str)>| {
        let output = mayhap(arguments).envs(variable).output().unwrap();
        assert!(output.status.success(), "{arguments}");
        output.stdout.contains(&0x1b)
    };
    assert!(!coloured(plan, None), "a pipe is no terminal");
    assert!(coloured(&format!("{plan} --color always"), None));
    assert!(coloured(&format!("--color=always {plan}"), None), "before the verb as well");
    assert!(coloured(&format!("{plan} --color always"), Some(("NO_COLOR", "1"))), "asked for by name");
    assert!(!coloured(&format!("{plan} --color never"), Some(("CLICOLOR_FORCE", "1"))));
    assert!(coloured(plan, Some(("CLICOLOR_FORCE", "1"))));
    assert!(coloured("plan --help --color always", None), "help, too");
    assert!(!coloured("plan --help --color never", Some(("CLICOLOR_FORCE", "1"))));
    assert!(!coloured(&format!("{plan} --json --color always"), None), "data is never coloured");
    let wrong = mayhap("plan --color purple").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(
        said.contains("purple") && said.contains("auto, always, never") && said.lines().count() == 1,
        "{said}"
    );
}

/// On a terminal, emulated by `script`, there are colours, unless NO_COLOR is set.
#[test]
fn a_terminal_has_colours_unless_disabled() {
    if Command::new("script").arg("--version").output().is_err() {
        eprintln!("script is not installed: colours on a terminal are not tested");
        return;
    }
    let on_terminal = |variable: Option<(&str, &str)>| {
        let line = format!("{} plan --items 1e6 --fpr 1%", env!("CARGO_BIN_EXE_mayhap"));
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).env("TERM", "xterm-256color");
        for variable in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"] {
            command.env_remove(variable);
        }
        let output = command.envs(variable).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("recommended"), "{output:?}");
        output.stdout.contains(&0x1b)
    };
    assert!(on_terminal(None));
    assert!(!on_terminal(Some(("NO_COLOR", "1"))));
}
