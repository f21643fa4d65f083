//! Bytes of a connection: the decoder must find the same requests wherever the bytes are split, and the same again when the requests are encoded.

use mayhap_server::resp::{Decoder, Limits, ProtocolError};

use crate::input::Input;

/// The words of a request.
pub type Words = Vec<Vec<u8>>;

/// Returns all requests in `bytes`, received in pieces that end at `splits`, and the error after them.
///
/// # Panics
/// If a split is past the end, or before the previous one.
#[must_use]
pub fn decode(bytes: &[u8], splits: &[usize], limits: &Limits) -> (Vec<Words>, Option<ProtocolError>) {
    let mut decoder = Decoder::default();
    let mut requests = Vec::new();
    let (mut buffer, mut from) = (Vec::new(), 0);
    for to in splits.iter().copied().chain([bytes.len()]) {
        buffer.extend_from_slice(&bytes[from..to]);
        from = to;
        let outcome = decoder.read(&buffer, limits, usize::MAX);
        let words: Vec<&[u8]> = decoder.words(&buffer).collect();
        for frame in decoder.frames() {
            requests.push(words[frame.words.clone()].iter().map(|word| word.to_vec()).collect());
        }
        if let Err(error) = outcome {
            return (requests, Some(error));
        }
        let cut = decoder.cut(usize::MAX);
        buffer.drain(..cut);
    }
    (requests, None)
}

/// Encodes a request as clients send it.
#[must_use]
pub fn encode(request: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
    for word in request {
        bytes.extend_from_slice(format!("${}\r\n", word.as_ref().len()).as_bytes());
        bytes.extend_from_slice(word.as_ref());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Runs the target. The first bytes choose the splits, and whether the client is authenticated.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let choice = input.byte();
    let splits = [input.byte(), input.byte(), input.byte()];
    let bytes = input.rest();
    let limits = Limits { authenticated: choice & 1 == 0, ..Limits::default() };
    let whole = decode(bytes, &[], &limits);
    let mut splits = splits.map(|split| usize::from(split) % (bytes.len() + 1));
    splits.sort_unstable();
    assert_eq!(decode(bytes, &splits, &limits), whole, "split at {splits:?}");
    if bytes.len() < 4_096 {
        let everywhere: Vec<usize> = (0..bytes.len()).collect();
        assert_eq!(decode(bytes, &everywhere, &limits), whole, "split everywhere");
    }
    let again: Vec<u8> = whole.0.iter().flat_map(|request| encode(request)).collect();
    assert_eq!(decode(&again, &[], &Limits::default()), (whole.0, None), "written again");
}
