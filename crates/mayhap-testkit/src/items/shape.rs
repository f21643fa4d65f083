//! The shapes: how the number of an item is converted to its bytes.

use super::Side;
use super::scramble::scramble;
use crate::rng::{GOLDEN, mix};
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Length of the items of [`Shape::Huge`]: 1 MiB.
pub const HUGE_BYTES: usize = 1 << 20;

/// The form of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `https://cdn.garden.org/archive/photo/1503627`
    Url,
    /// `maria_silva4711@mail.example`
    Mail,
    /// Eleven digits, the first a 1: `13800138000`
    Phone,
    /// `198.51.100.7`
    Ipv4,
    /// `2001:db8:85a3::8a2e`, compressed as usual
    Ipv6,
    /// Nearly consecutive integers as 8 little-endian bytes.
    IntBytes,
    /// Nearly consecutive integers as decimal text.
    IntText,
    /// Chinese words in UTF-8: `上海中山西湖人民幸福417号`
    Chinese,
    /// `6f1c…-4…-8…`, laid out like a random UUID
    Uuid,
    /// Each of the 256 single bytes.
    OneByte,
    /// The empty item. Its only non-member is a zero byte, which a hash that ignores the length confuses with it.
    Empty,
    /// 1 MiB that differs in eight bytes in the middle: detects a hash that samples its input.
    Huge,
}

/// The length of a run of consecutive integers, all of them members or all non-members.
const RUN: u64 = 64;

impl Shape {
    /// Every shape, the common ones first.
    pub const ALL: [Self; 12] = [
        Self::Url,
        Self::Mail,
        Self::Phone,
        Self::Ipv4,
        Self::Ipv6,
        Self::IntBytes,
        Self::IntText,
        Self::Chinese,
        Self::Uuid,
        Self::OneByte,
        Self::Empty,
        Self::Huge,
    ];

    /// A short name for tables and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Mail => "mail",
            Self::Phone => "phone",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::IntBytes => "int-bytes",
            Self::IntText => "int-text",
            Self::Chinese => "chinese",
            Self::Uuid => "uuid",
            Self::OneByte => "one-byte",
            Self::Empty => "empty",
            Self::Huge => "huge",
        }
    }

    /// The number of different members; there are as many non-members. Higher indexes repeat the items from the first on.
    ///
    /// ```
    /// use mayhap_testkit::items::Shape;
    /// assert_eq!(Shape::OneByte.distinct(), 128); // and 128 non-members: all 256 bytes
    /// ```
    #[must_use]
    pub const fn distinct(self) -> u64 {
        match self {
            Self::Empty => 1,
            _ => {
                let space = self.space();
                if space == 0 { 1 << 63 } else { space / 2 }
            }
        }
    }

    /// The number of members and non-members together; 0 means 2^64.
    const fn space(self) -> u64 {
        match self {
            Self::Url => 1 << 52,
            Self::Mail | Self::Chinese => 1 << 40,
            Self::Phone => 7_000_000_000,
            Self::Ipv4 => 1 << 32,
            Self::Uuid => 1 << 62,
            Self::OneByte => 1 << 8,
            Self::Empty => 2,
            Self::Ipv6 | Self::IntBytes | Self::IntText | Self::Huge => 0,
        }
    }

    /// Member `i` of this shape for `seed`.
    #[must_use]
    pub fn member(self, seed: u64, i: u64) -> Vec<u8> {
        let mut item = Vec::new();
        self.member_into(seed, i, &mut item);
        item
    }

    /// Non-member `i` of this shape for `seed`: never equal to a member of the same shape and seed.
    #[must_use]
    pub fn non_member(self, seed: u64, i: u64) -> Vec<u8> {
        let mut item = Vec::new();
        self.non_member_into(seed, i, &mut item);
        item
    }

    /// Like [`member`](Self::member), but replaces the contents of `item`: no allocation once it is long
    /// enough.
    ///
    /// ```
    /// use mayhap_testkit::items::Shape;
    /// let mut item = Vec::with_capacity(64);
    /// for i in 0..10 {
    ///     Shape::Phone.member_into(1, i, &mut item);
    ///     assert_eq!(item.len(), 11);
    /// }
    /// ```
    pub fn member_into(self, seed: u64, i: u64, item: &mut Vec<u8>) {
        self.write(Side::Member, seed, i, item);
    }

    /// Like [`non_member`](Self::non_member), but replaces the contents of `item`.
    pub fn non_member_into(self, seed: u64, i: u64, item: &mut Vec<u8>) {
        self.write(Side::NonMember, seed, i, item);
    }

    pub(super) fn write(self, side: Side, seed: u64, i: u64, item: &mut Vec<u8>) {
        item.clear();
        let i = i % self.distinct();
        let code = || scramble(2 * i + side as u64, self.space(), seed);
        match self {
            Self::Url => url(code(), item),
            Self::Mail => mail(code(), item),
            Self::Phone => decimal(13_000_000_000 + code(), item),
            Self::Ipv4 => text(Ipv4Addr::from_bits(code() as u32), item),
            Self::Ipv6 => text(ipv6(code()), item),
            Self::IntBytes => item.extend_from_slice(&integer(side, seed, i).to_le_bytes()),
            Self::IntText => decimal(integer(side, seed, i), item),
            Self::Chinese => chinese(code(), item),
            Self::Uuid => uuid(code(), item),
            Self::OneByte => item.push(code() as u8),
            Self::Empty => item.resize(side as usize, 0),
            Self::Huge => huge(code(), seed, item),
        }
    }
}

/// Integers in runs of [`RUN`]. A seeded coin assigns one of each two neighbouring runs to the members and the other to the non-members, so that neither
/// the parity nor any other bit distinguishes them.
///
/// The first has 13 digits and keeps the top two bytes free for 2^40 items and more.
fn integer(side: Side, seed: u64, i: u64) -> u64 {
    let first = 2_000_000_000_000 + (mix(seed ^ GOLDEN) >> 24);
    let (pair, offset) = (i / RUN, i % RUN);
    let coin = mix(seed ^ mix(pair)) & 1;
    first.wrapping_add((2 * pair + (coin ^ side as u64)) * RUN + offset)
}

/// Words of five bits each, without any separator used below.
const WORDS: [&str; 32] = [
    "archive", "photo", "garden", "market", "river", "winter", "paper", "silver", "music", "travel",
    "kitchen", "planet", "school", "forest", "camera", "bridge", "harbor", "island", "orange", "violin",
    "window", "castle", "coffee", "doctor", "engine", "family", "guitar", "hockey", "jacket", "ladder",
    "mirror", "needle",
];
const HOSTS: [&str; 8] = ["www", "cdn", "shop", "blog", "api", "news", "img", "m"];
const ENDINGS: [&str; 8] = ["com", "org", "net", "de", "cn", "io", "co.uk", "info"];
const FIRST_NAMES: [&str; 32] = [
    "maria", "james", "wei", "fatima", "ivan", "sofia", "ahmed", "anna", "jose", "li", "emma", "noah",
    "olga", "peter", "yuki", "chen", "laura", "marco", "nina", "omar", "paula", "quinn", "rosa", "sven",
    "tara", "umar", "vera", "walter", "xenia", "yusuf", "zoe", "hans",
];
const LAST_NAMES: [&str; 32] = [
    "silva", "smith", "wang", "khan", "petrov", "rossi", "hassan", "novak", "garcia", "zhang", "muller",
    "brown", "ivanova", "jansen", "tanaka", "liu", "martin", "costa", "berg", "ali", "santos", "jones",
    "lopez", "larsen", "singh", "kumar", "kovacs", "weber", "yang", "demir", "dubois", "fischer",
];
const MAIL_HOSTS: [&str; 8] = [
    "mail.example",
    "post.example",
    "web.example.com",
    "example.org",
    "corp.example.net",
    "uni.example.edu",
    "inbox.example.cn",
    "example.de",
];
/// Words of two characters each, so that a sequence of them can be read in one way only.
const CHINESE: [&str; 64] = [
    "北京", "上海", "广州", "深圳", "杭州", "南京", "成都", "武汉", "西安", "重庆", "天津", "苏州", "长沙",
    "青岛", "大连", "厦门", "中山", "人民", "解放", "和平", "建设", "文化", "胜利", "新华", "东风", "光明",
    "幸福", "友谊", "团结", "朝阳", "长安", "西湖", "公园", "学校", "医院", "银行", "酒店", "商场", "花园",
    "市场", "图书", "电影", "音乐", "体育", "科技", "国际", "中心", "大厦", "广场", "车站", "机场", "码头",
    "大道", "胡同", "小区", "春天", "夏天", "秋天", "冬天", "月亮", "太阳", "星星", "江河", "山水",
];

/// Removes the low `bits` bits from `code`.
fn take(code: &mut u64, bits: u32) -> usize {
    let low = *code & ((1 << bits) - 1);
    *code >>= bits;
    low as usize
}

fn url(mut code: u64, item: &mut Vec<u8>) {
    item.extend_from_slice(b"https://");
    item.extend_from_slice(HOSTS[take(&mut code, 3)].as_bytes());
    item.push(b'.');
    item.extend_from_slice(WORDS[take(&mut code, 5)].as_bytes());
    item.push(b'.');
    item.extend_from_slice(ENDINGS[take(&mut code, 3)].as_bytes());
    item.push(b'/');
    item.extend_from_slice(WORDS[take(&mut code, 5)].as_bytes());
    item.push(b'/');
    item.extend_from_slice(WORDS[take(&mut code, 5)].as_bytes());
    item.extend_from_slice([b"/".as_slice(), b"?id="][take(&mut code, 1)]);
    decimal(code, item);
}

fn mail(mut code: u64, item: &mut Vec<u8>) {
    item.extend_from_slice(FIRST_NAMES[take(&mut code, 5)].as_bytes());
    item.push(b"._-+"[take(&mut code, 2)]);
    item.extend_from_slice(LAST_NAMES[take(&mut code, 5)].as_bytes());
    let host = MAIL_HOSTS[take(&mut code, 3)];
    decimal(code, item);
    item.push(b'@');
    item.extend_from_slice(host.as_bytes());
}

fn chinese(mut code: u64, item: &mut Vec<u8>) {
    for _ in 0..5 {
        item.extend_from_slice(CHINESE[take(&mut code, 6)].as_bytes());
    }
    decimal(code, item);
    item.extend_from_slice("号".as_bytes());
}

/// A provider's prefix, 32 bits of network, 32 bits of host.
fn ipv6(code: u64) -> Ipv6Addr {
    let (network, host) = (code >> 32, code & 0xffff_ffff);
    Ipv6Addr::from_bits((0x2001_0db8 << 96) | (u128::from(network) << 64) | u128::from(host))
}

/// The 62 free bits of the second half are the code; the first half follows from it.
fn uuid(code: u64, item: &mut Vec<u8>) {
    let high = (mix(code) & !0xf000) | 0x4000;
    let low = code | 1 << 63;
    for (bits, width) in [(high >> 32, 8), (high >> 16, 4), (high, 4), (low >> 48, 4), (low, 12)] {
        if !item.is_empty() {
            item.push(b'-');
        }
        for nibble in (0..width).rev() {
            item.push(b"0123456789abcdef"[(bits >> (4 * nibble) & 0xf) as usize]);
        }
    }
}

fn huge(code: u64, seed: u64, item: &mut Vec<u8>) {
    let mut page = [0; 4096];
    for (i, word) in page.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&mix(seed ^ mix(i as u64)).to_le_bytes());
    }
    while item.len() < HUGE_BYTES {
        item.extend_from_slice(&page);
    }
    // The same position for all items of a seed; otherwise two items could differ in position but not in bytes.
    let middle = HUGE_BYTES / 4 + mix(seed) as usize % (HUGE_BYTES / 2);
    item[middle..middle + 8].copy_from_slice(&code.to_le_bytes());
}

fn decimal(number: u64, item: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    item.extend_from_slice(&digits[at..]);
}

fn text(value: impl std::fmt::Display, item: &mut Vec<u8>) {
    write!(item, "{value}").expect("writing to memory does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn sample(shape: Shape) -> u64 {
        let many = if shape == Shape::Huge { 8 } else { 30_000 };
        many.min(shape.distinct())
    }

    #[test]
    fn no_item_repeats_and_no_member_is_a_non_member() {
        for shape in Shape::ALL {
            for seed in [0, 1, u64::MAX] {
                let mut seen = HashSet::new();
                let last = shape.distinct() - sample(shape).min(shape.distinct() / 2);
                for i in (0..sample(shape)).chain(last.max(sample(shape))..shape.distinct()) {
                    assert!(seen.insert(shape.member(seed, i)), "{} member {i} repeats", shape.name());
                    assert!(
                        seen.insert(shape.non_member(seed, i)),
                        "{} non-member {i} repeats",
                        shape.name()
                    );
                }
            }
        }
    }

    #[test]
    fn one_byte_items_cover_all_256_bytes() {
        let mut all: Vec<u8> = (0..128).flat_map(|i| Shape::OneByte.member(9, i)).collect();
        all.extend((0..128).flat_map(|i| Shape::OneByte.non_member(9, i)));
        all.sort_unstable();
        assert!(all.into_iter().eq(0..=255));
        assert_eq!(Shape::OneByte.member(9, 128), Shape::OneByte.member(9, 0), "then the items repeat");
    }

    /// The share of set bits, position by position, is similar for both: nothing identifies a non-member.
    #[test]
    fn members_and_non_members_look_alike() {
        for shape in Shape::ALL {
            let (items, most) = match shape {
                Shape::Empty | Shape::Huge => continue,
                Shape::OneByte => (128, 0.30),
                Shape::IntBytes | Shape::IntText => (100_000, 0.15),
                _ => (20_000, 0.03),
            };
            let shares = |side| {
                let mut ones = [0_u32; 64 * 8];
                let mut item = Vec::new();
                for i in 0..items {
                    shape.write(side, 5, i, &mut item);
                    for (place, byte) in item.iter().enumerate().take(64) {
                        (0..8).for_each(|bit| ones[place * 8 + bit] += u32::from(byte >> bit & 1));
                    }
                }
                ones.map(|count| f64::from(count) / items as f64)
            };
            let widest = shares(Side::Member)
                .iter()
                .zip(shares(Side::NonMember))
                .map(|(member, non_member)| (member - non_member).abs())
                .fold(0.0, f64::max);
            assert!(widest < most, "{}: a bit is set {widest:.3} more often on one side", shape.name());
        }
    }

    #[test]
    fn the_shapes_have_their_documented_form() {
        let text = |shape: Shape, i| String::from_utf8(shape.member(3, i)).expect("text is UTF-8");
        for i in 0..500 {
            assert!(text(Shape::Url, i).starts_with("https://"));
            assert_eq!(text(Shape::Mail, i).matches('@').count(), 1);
            let phone = text(Shape::Phone, i);
            assert!(phone.len() == 11 && phone.starts_with('1') && phone.bytes().all(|b| b.is_ascii_digit()));
            assert!(text(Shape::Ipv4, i).parse::<Ipv4Addr>().is_ok());
            assert!(text(Shape::Ipv6, i).parse::<Ipv6Addr>().is_ok());
            assert!(text(Shape::IntText, i).parse::<u64>().is_ok());
            assert!(text(Shape::Chinese, i).chars().take(10).all(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)));
            let uuid = text(Shape::Uuid, i);
            assert!(uuid.len() == 36 && &uuid[14..15] == "4" && "89ab".contains(&uuid[19..20]), "{uuid}");
        }
        assert_eq!(Shape::IntBytes.member(3, 0).len(), 8);
        assert_eq!(Shape::Empty.member(3, 0), b"");
        assert_eq!(Shape::Huge.member(3, 0).len(), HUGE_BYTES);
        let integers = |i| text(Shape::IntText, i).parse::<u64>().expect("decimal");
        assert_eq!(integers(63) - integers(0), 63, "integers run without gaps");
    }

    #[test]
    fn word_lists_have_no_duplicates() {
        let distinct = |words: &[&str]| words.iter().collect::<HashSet<_>>().len() == words.len();
        assert!(distinct(&WORDS) && distinct(&HOSTS) && distinct(&ENDINGS) && distinct(&MAIL_HOSTS));
        assert!(distinct(&FIRST_NAMES) && distinct(&LAST_NAMES) && distinct(&CHINESE));
        assert!(CHINESE.iter().all(|word| word.chars().count() == 2));
    }

    /// Frozen: the golden files of other crates are made from these.
    #[test]
    fn items_never_change() {
        let pinned = [
            (Shape::Url, "https://m.school.cn/market/archive/840318504"),
            (Shape::Mail, "omar.santos14764895@mail.example"),
            (Shape::Phone, "17629743176"),
            (Shape::Ipv4, "168.141.61.169"),
            (Shape::Ipv6, "2001:db8:eac0:ed8d::e4e1:324c"),
            (Shape::IntText, "2982900635484"),
            (Shape::Chinese, "和平图书夏天体育商场450号"),
            (Shape::Uuid, "0b2ba19c-139e-4ac2-bdb2-fdbe23a9654a"),
        ];
        for (shape, text) in pinned {
            assert_eq!(String::from_utf8_lossy(&shape.member(1, 1)), text);
        }
        assert_eq!(Shape::IntBytes.member(1, 1), 2_982_900_635_484_u64.to_le_bytes());
        assert_eq!(Shape::OneByte.member(1, 1), [183]);
        let huge = Shape::Huge.member(1, 1).chunks(8).fold(0, |sum, word| {
            mix(sum ^ u64::from_le_bytes(word.try_into().expect("a whole number of words")))
        });
        assert_eq!(huge, 0x78d9_8c25_9828_3c33);
    }
}
