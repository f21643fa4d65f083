//! `mayhap serve` as users start it, with another project's client: redis-py, with everything set by flags.

#[path = "../../mayhap-formats/tests/real/mod.rs"]
mod real;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use real::{Folder, Running, find, run};

const PASSWORD: &str = "open sesame";

/// The program, with its data in `folder`, and the port that it prints.
fn serve(folder: &Path, more: &[&str]) -> (Running, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayhap"));
    command.args(["serve", "--port", "0", "--no-http", "--dir"]).arg(folder).args(more);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let running = Running(child);
    let mut addresses =
        lines.map_while(Result::ok).filter_map(|line| Some(line.trim().strip_prefix("RESP")?.to_owned()));
    let address = addresses.next().expect("it says where it listens");
    let (_, port) = address.rsplit_once(':').expect("an address has a port");
    let port = port.to_owned();
    (running, port)
}

#[test]
fn redis_py_and_the_program() {
    let Some(python) = find("MAYHAP_TEST_PYTHON", "python3 with redis") else { return };
    let folder = Folder::new("serve-clients");
    let password = folder.join("password");
    std::fs::write(&password, format!("{PASSWORD}\n")).unwrap();
    let (_open, port) = serve(&folder.join("open"), &[]);
    let (_locked, locked_port) =
        serve(&folder.join("locked"), &["--password-file", password.to_str().expect("a path is text here")]);
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../mayhap-server/tests/clients/python/redis_py.py");
    let mut command = Command::new(python);
    command.arg("-B").arg(script).args([&port, &locked_port, PASSWORD]);
    assert_eq!(String::from_utf8_lossy(&run(&mut command, b"")), "133 checks\n");
}
