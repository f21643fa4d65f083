//! The scripts with RedisBloom's raw replies, over a real socket, in both protocols: request by request, and
//! as pipelines.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use mayhap_command::{Limits, Parameters, parameters};
use mayhap_engine::{Engine, System};
use mayhap_server::{Server, Settings};
use mayhap_testkit::flow;
use mayhap_testkit::host::Talk;
use mayhap_testkit::script::{self, Action, Step};

const SCRIPTS: [(&str, &str); 2] = [
    ("bf.txt", include_str!("../../mayhap-command/tests/script/bf.txt")),
    ("cf.txt", include_str!("../../mayhap-command/tests/script/cf.txt")),
];

fn request(words: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.as_ref().len()).as_bytes());
        bytes.extend_from_slice(word.as_ref());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

struct Client(TcpStream);

impl Client {
    fn connect(port: u16, protocol: u8) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut client = Self(stream);
        client.0.write_all(&request(&["HELLO", &protocol.to_string()])).unwrap();
        client.synchronise();
        client
    }

    /// Reads everything up to the reply to a `PING`.
    fn synchronise(&mut self) {
        self.0.write_all(&request(&["PING"])).unwrap();
        let mut read = Vec::new();
        while !read.ends_with(b"+PONG\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            read.push(byte[0]);
        }
    }

    /// Sends `bytes` and reads `due` bytes of the reply, or as many as there are.
    fn exchange(&mut self, bytes: &[u8], due: usize) -> Vec<u8> {
        self.0.write_all(bytes).unwrap();
        let (mut got, mut read) = (vec![0; due], 0);
        while read < due {
            match self.0.read(&mut got[read..]) {
                Ok(0) | Err(_) => break,
                Ok(more) => read += more,
            }
        }
        got.truncate(read);
        got
    }
}

/// Consecutive requests with no setting between them, and their replies.
fn pipelines(steps: &[Step], protocol: u8) -> Vec<(Vec<&Step>, Vec<u8>, Vec<u8>)> {
    let mut pipelines = vec![(Vec::new(), Vec::new(), Vec::new())];
    for step in steps {
        let Action::Ask { words, resp2, resp3 } = &step.action else {
            pipelines.push((vec![step], Vec::new(), Vec::new()));
            continue;
        };
        let (_, requests, replies) = pipelines.last_mut().unwrap();
        requests.extend(request(words));
        replies.extend_from_slice(if protocol == 2 { resp2 } else { resp3 });
    }
    pipelines
}

fn set(engine: &Engine, step: &Step, client: &mut Client) {
    match &step.action {
        Action::Forget => {
            engine.set_parameters(|parameters| *parameters = Parameters::default());
            assert_eq!(client.exchange(&request(&["FLUSHALL"]), 5), b"+OK\r\n");
        }
        Action::Set { name, value } => engine.set_parameters(|parameters| {
            let parameter = parameters::find(name.as_bytes()).unwrap();
            (parameter.set)(parameters, value.as_bytes()).unwrap();
        }),
        Action::Ask { .. } => {}
    }
}

fn same(file: &str, line: usize, protocol: u8, got: &[u8], due: &[u8]) {
    assert_eq!(
        got.escape_ascii().to_string(),
        due.escape_ascii().to_string(),
        "{file}:{line}, RESP{protocol}"
    );
}

#[test]
fn the_server_answers_as_redis_bloom_does() {
    let engine = Arc::new(Engine::new(Limits::default(), Arc::new(System)));
    let settings = Settings { port: Some(0), workers: 2, ..Settings::default() };
    let server = Server::start_with(settings, Arc::clone(&engine)).unwrap();
    let port = server.addresses()[0].port();
    let forget = Step { line: 0, remark: String::new(), action: Action::Forget };
    for (file, text) in SCRIPTS {
        let steps = script::parse(text).unwrap();
        for protocol in [2, 3] {
            let mut client = Client::connect(port, protocol);
            set(&engine, &forget, &mut client);
            for step in &steps {
                set(&engine, step, &mut client);
                if let Action::Ask { words, resp2, resp3 } = &step.action {
                    let due = if protocol == 2 { resp2 } else { resp3 };
                    let got = client.exchange(&request(words), due.len());
                    same(file, step.line, protocol, &got, due);
                }
            }
            set(&engine, &forget, &mut client);
            for (settings, requests, due) in pipelines(&steps, protocol) {
                settings.iter().for_each(|step| set(&engine, step, &mut client));
                let got = client.exchange(&requests, due.len());
                let line = settings.first().map_or(1, |step| step.line);
                same(file, line, protocol, &got, &due);
            }
            assert_eq!(client.exchange(&request(&["PING"]), 7), b"+PONG\r\n", "nothing is left over");
        }
    }
}

/// The cases of RedisBloom's own tests that need loops. The module runs the same cases.
#[test]
fn the_server_passes_the_tests_of_redis_bloom() {
    let engine = Arc::new(Engine::new(Limits::default(), Arc::new(System)));
    let settings = Settings { port: Some(0), workers: 2, ..Settings::default() };
    let server = Server::start_with(settings, Arc::clone(&engine)).unwrap();
    let port = server.addresses()[0].port();
    let forget = |talk: &mut Talk| {
        engine.set_parameters(|parameters| *parameters = Parameters::default());
        talk.must(&["FLUSHALL"]);
    };
    let done = flow::run_all(|| Talk::connect(port).unwrap(), false, forget);
    assert_eq!(done, 2 * flow::cases().count());
}
