//! Parses the words after `MF.RESERVE key` and `MF.BUILD key BEGIN` into a recipe.

use mayhap::{
    BinaryFuseShape, BlockedShape, BloomShape, CountingShape, CuckooShape, DLeftShape, DualShape,
    GrowableCuckooShape, GrowingShape, HashScheme, QuotientShape, ScalableCuckooShape, ScalableShape,
    SecretKey, WindowShape, XorShape,
};
use mayhap_advise::{Deletes, GROWABLE_TO, Growth, ItemShape, Needs, Structure, advise, recommend, solve};

use super::kind::{self, KindName};
use super::memo::{self, Memo};
use super::recipe::{Recipe, StaticKind, StaticRecipe};
use super::refused::{MayhapRefusal, unbuildable};
use crate::args;
use crate::context::Context;
use crate::refusal::Refusal;

/// The false-positive rate if none is given.
const DEFAULT_FPR: f64 = 0.01;
/// The capacity of a growing filter if none is given.
const DEFAULT_CAPACITY: u64 = 1_000;
/// How a chain of layers grows if no tiers are given. A server has many filters, and memory counts. From 1 000 items to 10^6 at 1 %,
/// this takes 16.6 bits an item; the library's own default takes 43 and RedisBloom's 23. On average over all sizes between 10^4 and 10^7
/// it takes 23, the others 31. The price: lookups read ten layers instead of seven.
const DEFAULT_GROWTH: f64 = 2.0;
/// See [`DEFAULT_GROWTH`].
const DEFAULT_TIGHTENING: f64 = 0.85;
/// Windows of time are measured in milliseconds.
const MS: u64 = 1_000;

/// The parsed options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    kind: Option<KindName>,
    capacity: Option<u64>,
    fpr: Option<f64>,
    tiers: Vec<u64>,
    growth: Option<f64>,
    tightening: Option<f64>,
    window: Option<u64>,
    seconds: Option<u64>,
    generations: Option<u32>,
    range: Option<(u64, u64)>,
    bits: Option<u64>,
    probes: Option<u32>,
    most: Option<u64>,
    memory: Option<u64>,
    deletes: Option<Option<u64>>,
    grows: bool,
    fixed: bool,
    keyless: bool,
    seed: Option<u64>,
    key: Option<[u8; 16]>,
    expire_secs: Option<u64>,
    /// The options that were given, as the manual writes them.
    given: Vec<&'static str>,
}

thread_local! {
    /// Recipes of recent options: filters are often created with the same few option lines.
    static RECIPES: Memo<Options, Recipe> = const { Memo::new() };
    /// Structures recommended for recent needs.
    static ADVISED: Memo<Needs, Structure> = const { Memo::new() };
}

/// Rounds needs to choose a structure by: needs within 3 % of one another become equal. A memory limit, a range and a number of probes
/// may be met only just, so those are not rounded.
fn rounded(needs: &Needs) -> Needs {
    /// The lowest rate. Rounded down, it would become 0.
    const LOWEST: f64 = 2e-15;
    if needs.memory_limit_bytes.is_some() || needs.probes.is_some() || needs.item != ItemShape::Unknown {
        return needs.clone();
    }
    // Keeps the highest six bits, of counts and of fractions: every machine rounds the same way.
    let count = |count: u64| count & !(u64::MAX >> 6 >> count.leading_zeros());
    let rate = |rate: f64| f64::from_bits(rate.to_bits() & !((1 << 47) - 1));
    let mut near = needs.clone();
    near.items = count(near.items);
    if near.target_fpr > LOWEST {
        near.target_fpr = rate(near.target_fpr);
    }
    if let Deletes::UpTo(removals) = near.deletes {
        near.deletes = Deletes::UpTo(count(removals));
    }
    near
}

/// Returns the structure that suits these needs best. Comparing all candidates takes 50 µs, so each thread caches the results.
fn best_structure(needs: &Needs) -> Result<Structure, Refusal> {
    let hash = memo::hash([needs.items, needs.target_fpr.to_bits()]);
    if let Some(known) = ADVISED.with(|advised| advised.get(hash, |asked| asked == needs)) {
        return Ok(known);
    }
    let ours = Structure::all().filter(|structure| structure.kind().is_some());
    let Some(best) = recommend(needs, ours).map_err(MayhapRefusal::Needs)? else {
        let why = advise(needs).map_err(MayhapRefusal::Needs)?.why;
        return Err(MayhapRefusal::NothingSuits { why: why.join(" ") }.into());
    };
    ADVISED.with(|advised| advised.put(hash, needs.clone(), best));
    Ok(best)
}

/// Every option.
const NAMES: [&str; 20] = [
    "KIND",
    "CAPACITY",
    "FPR",
    "TIERS",
    "GROWTH",
    "TIGHTENING",
    "WINDOW",
    "SECONDS",
    "GENERATIONS",
    "RANGE",
    "BITS",
    "PROBES",
    "MAX",
    "MEMORY",
    "DELETES",
    "GROWS",
    "STATIC",
    "KEYLESS",
    "KEY",
    "EXPIRE",
];
/// `SEED` follows `KEYLESS`, or stands alone and then implies it.
const SEED: &str = "SEED";

impl Options {
    /// Parses these words. `MF.RESERVE` and `MF.BUILD … BEGIN` have the same options.
    pub(crate) fn parse(words: &[&[u8]]) -> Result<Self, Refusal> {
        let mut options = Self::default();
        let mut words = Words { rest: words };
        while let Some(word) = words.next() {
            let named = |name: &&str| word.eq_ignore_ascii_case(name.as_bytes());
            let name = NAMES.into_iter().chain([SEED]).find(named).ok_or_else(|| {
                Refusal::from(MayhapRefusal::UnknownOption { word: MayhapRefusal::quote(word) })
            })?;
            if options.given.contains(&name) {
                return Err(MayhapRefusal::Twice { option: name }.into());
            }
            options.given.push(name);
            options.read(name, &mut words)?;
        }
        options.check()
    }

    fn read(&mut self, name: &'static str, words: &mut Words<'_, '_>) -> Result<(), Refusal> {
        match name {
            "KIND" => {
                let word = words.value(name)?;
                self.kind = Some(
                    kind::parse(word)
                        .ok_or_else(|| MayhapRefusal::UnknownKind { word: MayhapRefusal::quote(word) })?,
                );
            }
            "CAPACITY" => self.capacity = Some(words.amount(name)?),
            "FPR" => self.fpr = Some(words.rate(name)?),
            "TIERS" => {
                self.tiers = words.counts(name)?;
                if let Some(pair) = self.tiers.windows(2).find(|pair| pair[0] >= pair[1]) {
                    return Err(MayhapRefusal::TiersDescend { before: pair[0], after: pair[1] }.into());
                }
            }
            "GROWTH" => self.growth = Some(words.number(name)?),
            "TIGHTENING" => self.tightening = Some(words.between_0_and_1(name)?),
            "WINDOW" => self.window = Some(words.count(name)?),
            "SECONDS" => self.seconds = Some(words.count(name)?),
            "GENERATIONS" => self.generations = Some(words.small_count(name)?),
            "RANGE" => self.range = Some((words.any_u64(name)?, words.any_u64(name)?)),
            "BITS" => self.bits = Some(words.count(name)?),
            "PROBES" => self.probes = Some(words.small_count(name)?),
            "MAX" => self.most = Some(words.count(name)?),
            "MEMORY" => self.memory = Some(words.count(name)?),
            "DELETES" => self.deletes = Some(words.count_if_there_is_one()),
            "GROWS" => self.grows = true,
            "STATIC" => self.fixed = true,
            "KEYLESS" => self.keyless = true,
            "SEED" => self.seed = Some(words.any_u64(name)?),
            "KEY" => self.key = Some(words.key(name)?),
            _ => self.expire_secs = Some(words.count(name)?),
        }
        Ok(())
    }

    /// Checks that the options can be combined.
    fn check(self) -> Result<Self, Refusal> {
        let given = |name: &str| self.given.iter().copied().find(|given| *given == name);
        for (one, other) in [
            ("KEY", "KEYLESS"),
            ("KEY", "SEED"),
            ("WINDOW", "SECONDS"),
            ("WINDOW", "CAPACITY"),
            ("TIERS", "CAPACITY"),
            ("GROWS", "STATIC"),
            ("DELETES", "STATIC"),
        ] {
            if let (Some(one), Some(other)) = (given(one), given(other)) {
                return Err(MayhapRefusal::Conflict { one, other }.into());
            }
        }
        Ok(self)
    }

    /// Are there no options?
    pub(crate) const fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// The number of seconds until the key expires.
    pub(crate) const fn expire_secs(&self) -> Option<u64> {
        self.expire_secs
    }

    /// How items are hashed: with a new secret key, unless the options say otherwise.
    pub(crate) fn scheme(&self, context: &Context<'_>) -> HashScheme {
        match self.key {
            Some(key) => HashScheme::keyed(SecretKey::new(key)),
            None if self.keyless || self.seed.is_some() => HashScheme::fast(self.seed.unwrap_or_default()),
            None => {
                let mut key = [0; 16];
                context.environment.random(&mut key);
                HashScheme::keyed(SecretKey::new(key))
            }
        }
    }

    /// The recipe of the filter to create.
    pub(crate) fn recipe(&self) -> Result<Recipe, Refusal> {
        let bits = |rate: Option<f64>| rate.map_or(0, f64::to_bits);
        let hash = memo::hash([
            self.capacity.unwrap_or(0),
            bits(self.fpr),
            self.memory.unwrap_or(0),
            self.window.or(self.seconds).unwrap_or(0),
            self.given.len() as u64,
        ]);
        if let Some(known) = RECIPES.with(|recipes| recipes.get(hash, |options| options.means_same(self))) {
            return Ok(known);
        }
        let recipe = self.work_out()?;
        RECIPES.with(|recipes| recipes.put(hash, self.without_secrets(), recipe));
        Ok(recipe)
    }

    /// Do both ask for the same recipe? The hash scheme and the expiration time are not part of it.
    fn means_same(&self, other: &Self) -> bool {
        let said = |options: &Self| {
            let numbers = (options.capacity, options.window, options.seconds, options.generations);
            let sizes = (options.range, options.bits, options.probes, options.most, options.memory);
            let rates = (options.fpr, options.growth, options.tightening);
            let wishes = (options.deletes, options.grows, options.fixed, options.keyless);
            (options.kind, numbers, sizes, rates, wishes, options.seed.is_some())
        };
        said(self) == said(other) && self.tiers == other.tiers && self.given == other.given
    }

    /// A copy for the cache, without the key: a key belongs to one filter only.
    fn without_secrets(&self) -> Self {
        Self { key: None, seed: self.seed.map(|_| 0), expire_secs: None, ..self.clone() }
    }

    fn work_out(&self) -> Result<Recipe, Refusal> {
        let kind = match self.kind {
            Some(kind) => kind,
            None if !self.tiers.is_empty() => KindName::Exactly(Structure::ScalableBloom),
            None if self.window.is_some() || self.seconds.is_some() => KindName::Exactly(Structure::Window),
            None => return self.advised(),
        };
        self.check_options_of(kind)?;
        self.recipe_of(kind, self.deletes.flatten())
    }

    /// The library's recommendation for these options.
    fn advised(&self) -> Result<Recipe, Refusal> {
        const SAID_WITHOUT_KIND: [&str; 12] = [
            "CAPACITY", "FPR", "RANGE", "PROBES", "MEMORY", "DELETES", "GROWS", "STATIC", "KEYLESS", "SEED",
            "KEY", "EXPIRE",
        ];
        if let Some(option) = self.given.iter().copied().find(|given| !SAID_WITHOUT_KIND.contains(given)) {
            return Err(MayhapRefusal::NotForKind { option, kind: "filter without KIND" }.into());
        }
        let needs = self.needs()?;
        needs.check().map_err(MayhapRefusal::Needs)?;
        let made = |near: &Needs| self.recipe_of_advised(best_structure(near)?, &needs);
        // At the limits of what can be built, rounded needs may not be buildable while the exact ones are.
        made(&rounded(&needs)).or_else(|_| made(&needs))
    }

    fn recipe_of_advised(&self, structure: Structure, needs: &Needs) -> Result<Recipe, Refusal> {
        // The range and the memory limit were used for the choice and are not needed for the recipe.
        let chosen = Self { kind: Some(KindName::Exactly(structure)), ..self.clone() };
        let removals = match needs.deletes {
            Deletes::UpTo(removals) => Some(removals),
            _ => Some((needs.items / 10).max(1)),
        };
        let chosen = match structure {
            Structure::Bitmap => Self { capacity: None, ..chosen },
            _ => Self {
                capacity: Some(needs.items),
                probes: chosen.probes.filter(|_| structure.lets_probes_be_chosen()),
                ..chosen
            },
        };
        chosen.recipe_of(KindName::Exactly(structure), removals)
    }

    /// Parses the words of `MF.PLAN`: `capacity fpr` and options, or only options, as for `MF.RESERVE`.
    pub(crate) fn parse_needs(words: &[&[u8]]) -> Result<Needs, Refusal> {
        const OF_PLAN: [&str; 9] =
            ["CAPACITY", "FPR", "RANGE", "PROBES", "MEMORY", "DELETES", "GROWS", "STATIC", "KEYLESS"];
        let (numbers, words) = match words.first() {
            Some(word) if word.first().is_some_and(u8::is_ascii_alphabetic) => words.split_at(0),
            _ => words.split_at(2.min(words.len())),
        };
        let options = Self::parse(words)?;
        let is_strange =
            |given: &&str| !OF_PLAN.contains(given) || !numbers.is_empty() && OF_PLAN[..2].contains(given);
        if let Some(option) = options.given.iter().copied().find(is_strange) {
            return Err(MayhapRefusal::NotForKind { option, kind: "plan" }.into());
        }
        if numbers.is_empty() {
            return options.needs();
        }
        let mut numbers = Words { rest: numbers };
        let (capacity, fpr) = (numbers.amount("capacity")?, numbers.rate("fpr")?);
        Self { capacity: Some(capacity), fpr: Some(fpr), ..options }.needs()
    }

    /// The needs for `advise`.
    fn needs(&self) -> Result<Needs, Refusal> {
        let capacity = match (self.capacity, self.range) {
            (Some(capacity), _) => capacity,
            (None, Some((low, high))) => high.saturating_sub(low).saturating_add(1).min(1 << 40),
            (None, None) if self.grows || self.fixed => DEFAULT_CAPACITY,
            (None, None) => {
                return Err(MayhapRefusal::NeedsOption { option: "CAPACITY", kind: "filter" }.into());
            }
        };
        let mut needs = Needs::new(capacity, self.fpr.unwrap_or(DEFAULT_FPR));
        needs.growth = match () {
            () if self.fixed => Growth::AllAtOnce,
            () if self.grows => Growth::Unknown,
            () => Growth::UpToItems,
        };
        needs.deletes = match self.deletes {
            None => Deletes::Never,
            Some(None) => Deletes::Endlessly,
            Some(Some(removals)) => Deletes::UpTo(removals),
        };
        if let Some((low, high)) = self.range {
            needs.item = ItemShape::IntegerRange { low, high };
        }
        (needs.memory_limit_bytes, needs.probes) = (self.memory, self.probes);
        needs.untrusted = !self.keyless && self.seed.is_none();
        Ok(needs)
    }

    /// Refuses options that do not apply to this kind.
    fn check_options_of(&self, kind: KindName) -> Result<(), Refusal> {
        let own: &[&str] = match kind {
            KindName::Exactly(Structure::Bitmap) => &["CAPACITY", "RANGE"],
            KindName::Exactly(Structure::Bloom) => &["CAPACITY", "FPR", "PROBES", "BITS", "MEMORY"],
            KindName::Exactly(Structure::CountingBloom) => &["CAPACITY", "FPR", "PROBES", "MEMORY"],
            KindName::Exactly(Structure::DualBloom) => &["CAPACITY", "FPR", "DELETES", "MEMORY"],
            KindName::Exactly(Structure::ScalableBloom) => {
                &["CAPACITY", "FPR", "TIERS", "GROWTH", "TIGHTENING", "MEMORY"]
            }
            KindName::Exactly(Structure::GrowableCuckoo) => &["CAPACITY", "FPR", "MAX", "MEMORY"],
            KindName::Exactly(Structure::Window) => {
                &["CAPACITY", "FPR", "WINDOW", "SECONDS", "GENERATIONS", "MEMORY"]
            }
            KindName::Exactly(Structure::Xor | Structure::BinaryFuse) => {
                &["CAPACITY", "FPR", "BITS", "MEMORY"]
            }
            KindName::Xor(_) | KindName::Fuse(_) => &["CAPACITY", "MEMORY"],
            KindName::Fingerprints => &["MEMORY"],
            KindName::ScalableCuckoo => &["CAPACITY", "MEMORY"],
            KindName::Exactly(_) | KindName::Blocked => &["CAPACITY", "FPR", "MEMORY"],
        };
        let any = ["KIND", "KEYLESS", "SEED", "KEY", "EXPIRE"];
        match self.given.iter().copied().find(|given| !own.contains(given) && !any.contains(given)) {
            Some(option) => Err(MayhapRefusal::NotForKind { option, kind: kind.name() }.into()),
            None => Ok(()),
        }
    }

    fn recipe_of(&self, kind: KindName, removals: Option<u64>) -> Result<Recipe, Refusal> {
        let recipe = match kind {
            KindName::Exactly(structure) => self.recipe_of_structure(structure, removals)?,
            KindName::Blocked => {
                let layout = |structure| matches!(structure, Structure::BlockedBloom(_));
                let (items, rate) = self.numbers(Structure::all().find(|&s| layout(s)), "blocked-bloom")?;
                Recipe::Blocked(BlockedShape::for_capacity(items, rate).map_err(unbuildable)?)
            }
            KindName::Xor(bits) => self.fixed(StaticKind::Xor(bits)),
            KindName::Fuse(bits) => self.fixed(StaticKind::Fuse(bits)),
            KindName::Fingerprints => Recipe::Fingerprints { limit_bytes: self.memory },
            KindName::ScalableCuckoo => {
                let capacity = self.capacity.unwrap_or(DEFAULT_CAPACITY);
                let shape = ScalableCuckooShape::for_capacity(capacity);
                Recipe::ScalableCuckoo(shape.map_err(unbuildable)?)
            }
        };
        let bytes = recipe.memory_bytes().map_err(unbuildable)?;
        match self.memory {
            Some(limit) if bytes > limit => {
                Err(MayhapRefusal::Build(mayhap::BuildError::TooLarge { bytes, limit }).into())
            }
            _ => Ok(recipe),
        }
    }

    fn recipe_of_structure(&self, structure: Structure, removals: Option<u64>) -> Result<Recipe, Refusal> {
        let name = structure.name();
        let numbers = || self.numbers(Some(structure), name);
        let recipe = match structure {
            Structure::Bitmap => {
                let (low, high) = match (self.range, self.capacity) {
                    (Some(range), None) => range,
                    (None, Some(capacity)) => (0, capacity - 1),
                    (Some(_), Some(_)) => {
                        return Err(MayhapRefusal::Conflict { one: "RANGE", other: "CAPACITY" }.into());
                    }
                    (None, None) => {
                        return Err(MayhapRefusal::NeedsOption { option: "RANGE", kind: name }.into());
                    }
                };
                if low > high {
                    let valid = "two numbers, the lower one first";
                    return Err(MayhapRefusal::BadValue { option: "RANGE", valid }.into());
                }
                return Ok(Recipe::Bitmap { low, high });
            }
            Structure::Bloom => self.bloom().map(|shape| shape.map(Recipe::Bloom))?,
            Structure::BlockedBloom(layout) => {
                let (items, rate) = numbers()?;
                BlockedShape::with_layout(layout, items, rate).map(Recipe::Blocked)
            }
            Structure::CountingBloom => {
                let (items, rate) = numbers()?;
                match self.probes {
                    Some(probes) => CountingShape::for_probes(items, rate, probes),
                    None => CountingShape::for_capacity(items, rate),
                }
                .map(Recipe::Counting)
            }
            Structure::DualBloom => {
                let (items, rate) = numbers()?;
                let removals = removals.unwrap_or_else(|| (items / 10).max(1));
                DualShape::for_capacity(items, removals, rate).map(Recipe::Dual)
            }
            Structure::ScalableBloom => return self.scalable(),
            Structure::DLeft => {
                let (items, rate) = numbers()?;
                DLeftShape::for_capacity(items, rate).map(Recipe::DLeft)
            }
            Structure::Cuckoo => {
                let (items, rate) = numbers()?;
                CuckooShape::for_capacity(items, rate).map(Recipe::Cuckoo)
            }
            Structure::CuckooSemiSorted => {
                let (items, rate) = numbers()?;
                CuckooShape::semi_sorted(items, rate).map(Recipe::Cuckoo)
            }
            Structure::GrowableCuckoo => {
                let (items, rate) = numbers()?;
                let most = self.most.unwrap_or_else(|| items.saturating_mul(GROWABLE_TO));
                GrowableCuckooShape::for_growth(items, most, rate).map(Recipe::GrowableCuckoo)
            }
            Structure::Quotient => {
                let (items, rate) = numbers()?;
                QuotientShape::for_capacity(items, rate).map(Recipe::Quotient)
            }
            Structure::Growing => {
                let items = self.capacity.unwrap_or(DEFAULT_CAPACITY);
                let shape = GrowingShape::for_capacity(items, self.fpr.unwrap_or(DEFAULT_FPR));
                let shape = match self.memory {
                    Some(limit) => shape.and_then(|shape| shape.within(limit)),
                    None => shape,
                };
                shape.map(Recipe::Growing)
            }
            Structure::Window => return self.window(),
            Structure::Xor => {
                let bits = self.fingerprint_bits(XorShape::bits_for)?;
                return Ok(self.fixed(StaticKind::Xor(bits)));
            }
            Structure::BinaryFuse => {
                let bits = self.fingerprint_bits(BinaryFuseShape::bits_for)?;
                return Ok(self.fixed(StaticKind::Fuse(bits)));
            }
            Structure::Ribbon => return Ok(self.fixed(StaticKind::Ribbon)),
            Structure::Gcs => return Ok(self.fixed(StaticKind::Gcs)),
            _ => return Err(MayhapRefusal::UnknownKind { word: name.into() }.into()),
        };
        recipe.map_err(unbuildable)
    }

    fn bloom(&self) -> Result<Result<BloomShape, mayhap::BuildError>, Refusal> {
        let name = Structure::Bloom.name();
        if let Some(bits) = self.bits {
            if self.fpr.is_some() {
                return Err(MayhapRefusal::Conflict { one: "BITS", other: "FPR" }.into());
            }
            let needs = |option| Refusal::from(MayhapRefusal::NeedsOption { option, kind: "bloom of BITS" });
            let capacity = self.capacity.ok_or_else(|| needs("CAPACITY"))?;
            return Ok(BloomShape::exactly(bits, self.probes.ok_or_else(|| needs("PROBES"))?, capacity));
        }
        let (items, rate) = self.numbers(Some(Structure::Bloom), name)?;
        Ok(match self.probes {
            Some(probes) => BloomShape::for_probes(items, rate, probes),
            None => BloomShape::for_capacity(items, rate),
        })
    }

    fn scalable(&self) -> Result<Recipe, Refusal> {
        let rate = self.fpr.unwrap_or(DEFAULT_FPR);
        let first = [self.capacity.unwrap_or(DEFAULT_CAPACITY)];
        let tiers = if self.tiers.is_empty() { &first[..] } else { &self.tiers[..] };
        let make = || {
            let mut shape = ScalableShape::with_tiers(tiers, rate)?;
            if self.tiers.is_empty() {
                shape = shape.growth(DEFAULT_GROWTH)?.tightening(DEFAULT_TIGHTENING)?;
            }
            if let Some(growth) = self.growth {
                shape = shape.growth(growth)?;
            }
            if let Some(tightening) = self.tightening {
                shape = shape.tightening(tightening)?;
            }
            match self.memory {
                Some(limit) => shape.within(limit),
                None => Ok(shape),
            }
        };
        make().map(Recipe::Scalable).map_err(unbuildable)
    }

    fn window(&self) -> Result<Recipe, Refusal> {
        let rate = self.fpr.unwrap_or(DEFAULT_FPR);
        let needs = |option| Refusal::from(MayhapRefusal::NeedsOption { option, kind: "window" });
        let shape = match self.seconds {
            Some(seconds) => {
                let items = self.capacity.ok_or_else(|| needs("CAPACITY"))?;
                WindowShape::of_time(seconds.saturating_mul(MS), items, rate)
            }
            None => {
                WindowShape::of_items(self.window.or(self.capacity).ok_or_else(|| needs("WINDOW"))?, rate)
            }
        };
        let shape = match self.generations {
            Some(generations) => shape.and_then(|shape| shape.with_generations(generations)),
            None => shape,
        };
        shape.map(Recipe::Window).map_err(unbuildable)
    }

    fn fixed(&self, kind: StaticKind) -> Recipe {
        let target_fpr = self.fpr.unwrap_or(DEFAULT_FPR);
        Recipe::Static(StaticRecipe { kind, capacity: self.capacity, target_fpr })
    }

    /// Bits of a fingerprint: those given, or the fewest that keep the rate.
    fn fingerprint_bits(&self, bits_for: fn(f64) -> Result<u32, mayhap::BuildError>) -> Result<u32, Refusal> {
        match (self.bits, self.fpr) {
            (Some(_), Some(_)) => Err(MayhapRefusal::Conflict { one: "BITS", other: "FPR" }.into()),
            (Some(bits @ (8 | 16 | 32)), None) => Ok(bits as u32),
            (Some(_), None) => Err(MayhapRefusal::BadValue { option: "BITS", valid: "8, 16 or 32" }.into()),
            (None, rate) => bits_for(rate.unwrap_or(DEFAULT_FPR)).map_err(unbuildable),
        }
    }

    /// Items and rate; if only one is given, the other follows from the memory.
    fn numbers(&self, structure: Option<Structure>, name: &'static str) -> Result<(u64, f64), Refusal> {
        let structure = structure.unwrap_or(Structure::Bloom);
        match (self.capacity, self.fpr, self.memory) {
            (Some(items), Some(rate), _) => Ok((items, rate)),
            (Some(items), None, Some(bytes)) if structure.is_filter() => {
                let rate = solve::rate_for(structure, items, bytes).map_err(MayhapRefusal::Needs)?;
                Ok((items, rate))
            }
            (None, rate, Some(bytes)) => {
                let rate = rate.unwrap_or(DEFAULT_FPR);
                let items = solve::items_for(structure, rate, bytes).map_err(MayhapRefusal::Needs)?;
                Ok((items, rate))
            }
            (Some(items), None, _) => Ok((items, DEFAULT_FPR)),
            (None, _, None) => Err(MayhapRefusal::NeedsOption { option: "CAPACITY", kind: name }.into()),
        }
    }
}

/// The words that are not parsed yet.
struct Words<'a, 'w> {
    rest: &'a [&'w [u8]],
}

impl<'w> Words<'_, 'w> {
    fn next(&mut self) -> Option<&'w [u8]> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn value(&mut self, option: &'static str) -> Result<&'w [u8], Refusal> {
        self.next().ok_or_else(|| MayhapRefusal::NoValue { option }.into())
    }

    fn count(&mut self, option: &'static str) -> Result<u64, Refusal> {
        count(self.value(option)?)
            .ok_or_else(|| MayhapRefusal::BadValue { option, valid: "a whole number of at least 1" }.into())
    }

    /// A number of items, also in short form: `1e6`, `10M`.
    fn amount(&mut self, option: &'static str) -> Result<u64, Refusal> {
        amount(self.value(option)?).ok_or_else(|| {
            MayhapRefusal::BadValue {
                option,
                valid: "a whole number of at least 1, for example 1000000, 1e6 or 1M",
            }
            .into()
        })
    }

    /// A rate: `0.01`, `1%`.
    fn rate(&mut self, option: &'static str) -> Result<f64, Refusal> {
        let word = self.value(option)?;
        let rate = match word.strip_suffix(b"%") {
            Some(percent) => args::double(percent).map(|percent| percent / 100.0),
            None => args::double(word),
        };
        rate.filter(|rate| *rate > 0.0 && *rate < 1.0).ok_or_else(|| {
            MayhapRefusal::BadValue { option, valid: "a number between 0 and 1, for example 0.01 or 1%" }
                .into()
        })
    }

    fn small_count(&mut self, option: &'static str) -> Result<u32, Refusal> {
        let valid = "a whole number of at least 1";
        u32::try_from(self.count(option)?).map_err(|_| MayhapRefusal::BadValue { option, valid }.into())
    }

    fn counts(&mut self, option: &'static str) -> Result<Vec<u64>, Refusal> {
        /// More tiers than any filter accepts.
        const MOST: usize = 64;
        let valid = "whole numbers of at least 1, separated by commas";
        let bad = || Refusal::from(MayhapRefusal::BadValue { option, valid });
        let parts = self.value(option)?.split(|&byte| byte == b',');
        let counts: Option<Vec<u64>> = parts.take(MOST).map(count).collect();
        counts.ok_or_else(bad)
    }

    fn any_u64(&mut self, option: &'static str) -> Result<u64, Refusal> {
        number(self.value(option)?).ok_or_else(|| {
            MayhapRefusal::BadValue { option, valid: "whole numbers from 0 to 18446744073709551615" }.into()
        })
    }

    /// The count after an option that may also stand alone.
    fn count_if_there_is_one(&mut self) -> Option<u64> {
        let found = self.rest.first().and_then(|word| count(word))?;
        self.next();
        Some(found)
    }

    fn number(&mut self, option: &'static str) -> Result<f64, Refusal> {
        args::double(self.value(option)?)
            .ok_or_else(|| MayhapRefusal::BadValue { option, valid: "a number" }.into())
    }

    fn between_0_and_1(&mut self, option: &'static str) -> Result<f64, Refusal> {
        match args::double(self.value(option)?) {
            Some(number) if number > 0.0 && number < 1.0 => Ok(number),
            _ => Err(MayhapRefusal::BadValue { option, valid: "a number between 0 and 1" }.into()),
        }
    }

    fn key(&mut self, option: &'static str) -> Result<[u8; 16], Refusal> {
        let bad = || MayhapRefusal::BadValue { option, valid: "32 hexadecimal digits" };
        let word = self.value(option)?;
        let digits: &[u8; 32] = word.try_into().map_err(|_| bad())?;
        let mut key = [0; 16];
        for (byte, pair) in key.iter_mut().zip(digits.as_chunks::<2>().0) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { return Err(bad().into()) };
            *byte = (high * 16 + low) as u8;
        }
        Ok(key)
    }
}

/// A count in the short form that `mayhap plan` also accepts: digits, with a fraction if the result is a whole number, followed by
/// `e` and an exponent or by `k`, `M`, `G` or `T`.
fn amount(word: &[u8]) -> Option<u64> {
    if let Some(count) = count(word) {
        return Some(count);
    }
    let text = std::str::from_utf8(word).ok()?;
    let (digits, exponent) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 3),
        (at, 'M') => (&text[..at], 6),
        (at, 'G') => (&text[..at], 9),
        (at, 'T') => (&text[..at], 12),
        _ => {
            let (digits, exponent) = text.split_once(['e', 'E'])?;
            (digits, exponent.strip_prefix('+').unwrap_or(exponent).parse().ok().filter(|it| *it <= 19)?)
        }
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let zeroes: u32 = exponent - u32::try_from(fraction.len()).ok().filter(|length| *length <= exponent)?;
    let number: u64 = format!("{whole}{fraction}").parse().ok()?;
    number.checked_mul(10_u64.checked_pow(zeroes)?).filter(|number| *number > 0)
}

/// A whole number of at least 1.
fn count(word: &[u8]) -> Option<u64> {
    args::integer(word).and_then(|number| u64::try_from(number).ok()).filter(|&number| number > 0)
}

/// An unsigned 64-bit number, as bitmaps store it.
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    let plain = match word {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    plain.then(|| std::str::from_utf8(word).ok()?.parse().ok()).flatten()
}
