//! Writes replies in the bytes of both protocols, in the simplest way.

use mayhap_command::Reply;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Resp2,
    Resp3,
}

pub(crate) fn encode(reply: &Reply, protocol: Protocol) -> Vec<u8> {
    let mut out = Vec::new();
    put(reply, protocol, &mut out);
    out
}

fn line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn put(reply: &Reply, protocol: Protocol, out: &mut Vec<u8>) {
    let old = protocol == Protocol::Resp2;
    let all = |replies: &[Reply], out: &mut Vec<u8>| {
        replies.iter().for_each(|reply| put(reply, protocol, out));
    };
    match reply {
        Reply::Ok => line(out, "+OK"),
        Reply::Simple(text) => line(out, &format!("+{text}")),
        Reply::Refused(refusal) => line(out, &format!("-{refusal}")),
        Reply::Integer(number) => line(out, &format!(":{number}")),
        Reply::Boolean(answer) if old => line(out, &format!(":{}", u8::from(*answer))),
        Reply::Boolean(answer) => line(out, if *answer { "#t" } else { "#f" }),
        Reply::Booleans(answers) => {
            line(out, &format!("*{}", answers.len()));
            answers.iter().for_each(|answer| put(&Reply::Boolean(answer), protocol, out));
        }
        Reply::Double(number) if old => put(&Reply::bulk(number.to_string()), protocol, out),
        Reply::Double(number) => line(out, &format!(",{number}")),
        Reply::Bulk(bytes) => {
            line(out, &format!("${}", bytes.len()));
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"\r\n");
        }
        Reply::Text(text) => put(&Reply::bulk(text.as_str()), protocol, out),
        Reply::Null if old => line(out, "$-1"),
        Reply::NullArray if old => line(out, "*-1"),
        Reply::Null | Reply::NullArray => line(out, "_"),
        Reply::Array(replies) => {
            line(out, &format!("*{}", replies.len()));
            all(replies, out);
        }
        Reply::Set(replies) => {
            line(out, &format!("{}{}", if old { '*' } else { '~' }, replies.len()));
            all(replies, out);
        }
        Reply::Map(pairs) => {
            line(out, &if old { format!("*{}", 2 * pairs.len()) } else { format!("%{}", pairs.len()) });
            for (name, value) in pairs {
                put(name, protocol, out);
                put(value, protocol, out);
            }
        }
        Reply::Split { resp2, resp3 } => put(if old { resp2 } else { resp3 }, protocol, out),
    }
}
