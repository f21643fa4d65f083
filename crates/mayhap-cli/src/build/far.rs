//! Builds a filter on a server: sharded, or as the bitmap of another program.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use mayhap::say;
use mayhap_formats::Format;
use mayhap_remote::{Backend, Build as Generation, BuildOptions, FilterPlan, RemoteError, ShardedFilter};
use serde::Serialize;

use super::one::{Wanted, lacks};
use super::{Build, Built, DEFAULT_RATE, Work};
use crate::error::CliError;
use crate::progress::{self, Progress};
use crate::push::bitmap::Going;
use crate::remote::Remote;
use crate::remote_filter::{AskedWith, Fullness, Layout, Server};
use crate::target::Target;
use crate::{Verdict, in_order, interrupt, output};

/// Where the shards are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum BackendName {
    /// MF.* filters of mayhap's server or module
    Mf,
    /// BF.* Bloom filters of RedisBloom, valkey-bloom or mayhap
    Bf,
    /// Strings, on any Redis or Valkey
    Plain,
}

/// The report about a filter that was built on a server. The field names are a stable interface.
#[derive(Debug, Serialize)]
pub(super) struct RemoteBuildReport {
    out: String,
    /// `mf`, `bf`, `cf`, `plain`, `redisson` or `guava`.
    layout: &'static str,
    /// The kind, for one filter of mayhap's server or module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<String>,
    items_read: u64,
    pub(super) capacity: u64,
    target_fpr: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<u32>,
    /// The number of the generation, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) generation: Option<u64>,
    /// The bytes of a bitmap, or of a filter that was loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<u64>,
    /// The arguments to query a bitmap with Guava's layout.
    #[serde(flatten)]
    asked_with: Option<AskedWith>,
    /// An earlier value of the name was replaced.
    pub(super) replaced: bool,
    #[serde(flatten)]
    pub(super) fullness: Option<Fullness>,
    /// More items were added than `--items`.
    pub(super) over_capacity: bool,
    seconds: f64,
}

impl Build {
    pub(super) fn build_on_server(&self, remote: &Remote, started: Instant) -> Result<Verdict, CliError> {
        self.check_files()?;
        let target = Target::Server(remote.shown());
        let progress = Progress::start(self.progress);
        if let Some(items) = self.asked.items {
            progress.expect_items(items);
        }
        let threads = in_order::threads(self.threads);
        let work = Work { args: self, target: &target, progress: &progress, threads };
        let mut report = match self.format {
            Some(Format::Redisson) => work.bitmap_on_server(remote, Format::Redisson, Layout::Redisson)?,
            Some(Format::Guava) => work.bitmap_on_server(remote, Format::Guava, Layout::Guava)?,
            None | Some(Format::RedisBloom | Format::RedisCuckoo) => work.filter_on_server(remote)?,
            Some(format) => {
                let what = format!(
                    "--format {format}: on a server only redis-bloom, redis-cuckoo, redisson and guava can be built; build a file and `mayhap push` it"
                );
                return Err(CliError::Usage(what));
            }
        };
        drop(progress);
        report.seconds = started.elapsed().as_secs_f64();
        if !self.quiet {
            self.input.warn_of_skipped();
            if let Some(warning) = report.warning() {
                output::warn(format_args!("{}: {warning}", report.out));
            }
            output::tell(report.text());
            if let Some(words) = &report.asked_with {
                output::tell(format_args!("{}: query it with {words}", report.out));
            }
        }
        if self.json {
            output::to_stdout(|out, _| output::json(out, &report))?;
        }
        Ok(Verdict::Yes)
    }

    /// Rejects options that a sharded filter does not support.
    fn check_for_shards(&self) -> Result<(), CliError> {
        let asked = &self.asked;
        let odd = [
            ("--kind", self.kind.is_some()),
            ("--seed", self.seed.is_some()),
            ("--copies", self.copies),
            ("--memory", asked.memory.is_some()),
            ("--probes", asked.probes.is_some()),
            ("--deletes", asked.deletes.is_some()),
            ("--grows", asked.grows),
            ("--window", asked.window),
            ("--range", asked.range.is_some()),
        ];
        match odd.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(CliError::Usage(format!(
                "{flag}: a sharded filter supports only --items and --fpr; build a file and `mayhap push` it"
            ))),
            None => Ok(()),
        }
    }
}

impl Work<'_> {
    fn bitmap_on_server(
        &self,
        remote: &Remote,
        format: Format,
        layout: Layout,
    ) -> Result<RemoteBuildReport, CliError> {
        let Built { filter, read, target_fpr, told, .. } = self.foreign(format)?;
        let fullness = Fullness {
            server_says: None,
            items: filter.inserted(),
            capacity: told.unwrap_or(u64::MAX),
            target_fpr,
            expected_fpr: filter.expected_fpr(),
        };
        let (args, force) = (&self.args.server, self.args.force);
        let going = Going { remote, args, layout, marker: false, force };
        let (sent, replaced) = going.send(&filter, self.progress)?;
        let mut report = RemoteBuildReport::new(remote, format.name(), read, filter.capacity(), target_fpr);
        report.bytes = Some(sent.bytes);
        report.asked_with = going.asked_with(&filter);
        report.replaced = replaced;
        report.fullness = Some(fullness);
        report.over_capacity = fullness.is_over_capacity();
        Ok(report)
    }

    /// Builds one filter under that name, or a sharded one if there is a cluster or it was asked for.
    fn filter_on_server(&self, remote: &Remote) -> Result<RemoteBuildReport, CliError> {
        let server = Server::connect(remote, &self.args.server)?;
        let there = server.type_of_name()?;
        match self.args.wanted(&server, &there)? {
            Wanted::Shards => self.shards_on_server(remote, &server, &there),
            Wanted::One(way) => self.one_on_server(remote, &server, &there, way),
        }
    }

    fn shards_on_server(
        &self,
        remote: &Remote,
        server: &Server,
        there: &str,
    ) -> Result<RemoteBuildReport, CliError> {
        self.args.check_for_shards()?;
        let before = existing_shards(server, there)?;
        let replaced = before.is_some();
        if replaced && !self.args.force {
            return Err(server.odd("exists already; --force replaces it".into()));
        }
        let backend = backend(server, self.args.backend)?;
        let capacity = match self.args.asked.items {
            Some(items) => items,
            None => self.count_items("a filter on a server", "")?.max(1),
        };
        let target_fpr = self.args.asked.fpr.unwrap_or(DEFAULT_RATE);
        let mut plan = FilterPlan::new(backend, capacity, target_fpr);
        if let Some(shards) = self.args.shards {
            plan = plan.shards(shards);
        }
        let measures = plan.measure().map_err(|cause| CliError::Usage(cause.to_string()))?;
        // From here on, a failure must be cleaned up on the server.
        let _polite = interrupt::polite();
        let options = BuildOptions::default();
        let mut generation = match &before {
            Some(filter) => server.wait(filter.begin_build(&plan, options))?,
            None => server.wait(ShardedFilter::begin(server.link(), server.name(), &plan, options))?,
        };
        if replaced && !self.args.quiet {
            let number = generation.generation();
            output::tell(format_args!(
                "{}: filling generation {number}; items added from now on go into both generations",
                remote.shown()
            ));
        }
        let read = match self.fill(server, &mut generation) {
            Ok(read) => read,
            Err(error) => {
                // If this fails too, the generation stays until the next build. It never answers.
                let _ = server.wait(generation.abort());
                return Err(error);
            }
        };
        let filter = server.wait(ShardedFilter::open(server.link(), server.name()));
        let fullness = filter.ok().and_then(|filter| server.fullness(&filter));
        let mut report = RemoteBuildReport::new(remote, backend.name(), read, capacity, target_fpr);
        (report.shards, report.generation) = (Some(measures.shards()), Some(generation.generation()));
        report.replaced = replaced;
        report.fullness = fullness;
        report.over_capacity = fullness.is_some_and(|full| full.is_over_capacity());
        Ok(report)
    }

    fn fill(&self, server: &Server, generation: &mut Generation) -> Result<u64, CliError> {
        let mut read = 0;
        let mut blocks = self.args.input.open(self.progress)?;
        while let Some(block) = blocks.next()? {
            interrupt::check()?;
            let items: Vec<&[u8]> = block.items().collect();
            server.wait(generation.insert(&items))?;
            read += items.len() as u64;
            self.progress.add_items(items.len() as u64);
            blocks.reuse(block);
        }
        interrupt::check()?;
        self.progress.phase("putting in place", None);
        server.wait(generation.commit())?;
        Ok(read)
    }
}

/// The sharded filter that has the name, if it answers. A filter whose first build was not completed does not.
fn existing_shards(server: &Server, there: &str) -> Result<Option<ShardedFilter>, CliError> {
    match there {
        "none" => Ok(None),
        "string" if server.is_sharded()? => {
            match server.attempt(ShardedFilter::open(server.link(), server.name())) {
                Ok(filter) => Ok(Some(filter)),
                Err(RemoteError::Missing { .. }) => Ok(None),
                Err(cause) => Err(server.cli_error(&cause)),
            }
        }
        kind => Err(server.odd(match Server::family_of_type(kind) {
            Some(_) if server.link().is_cluster() => {
                "holds one filter, which shards cannot replace in one step: replace it by one filter with --format redis-bloom, or \
                 choose another name for shards"
                    .into()
            }
            Some(_) => "holds one filter, which shards cannot replace in one step: omit --shards, or choose another name".into(),
            None => format!("holds a {kind}, which is not a filter: choose another name"),
        })),
    }
}

/// The backend from `--backend`, or the best that the server supports.
fn backend(server: &Server, asked: Option<BackendName>) -> Result<Backend, CliError> {
    let [mf, bf] = server.knows(["MF.MADD", "BF.INSERT"])?;
    let lacks = |family: &str| server.odd(lacks(family));
    match asked {
        Some(BackendName::Mf) if !mf => Err(lacks("MF")),
        Some(BackendName::Bf) if !bf => Err(lacks("BF")),
        Some(BackendName::Mf) => Ok(Backend::Mayhap),
        Some(BackendName::Bf) => Ok(Backend::Bloom),
        Some(BackendName::Plain) => Ok(Backend::Plain),
        None if mf => Ok(Backend::Mayhap),
        None if bf => Ok(Backend::Bloom),
        None => Ok(Backend::Plain),
    }
}

impl RemoteBuildReport {
    pub(super) fn new(
        remote: &Remote,
        layout: &'static str,
        items_read: u64,
        capacity: u64,
        target_fpr: f64,
    ) -> Self {
        Self {
            out: remote.shown(),
            layout,
            kind: None,
            items_read,
            capacity,
            target_fpr,
            shards: None,
            generation: None,
            bytes: None,
            asked_with: None,
            replaced: false,
            fullness: None,
            over_capacity: false,
            seconds: 0.0,
        }
    }

    /// The warning to print, if any.
    fn warning(&self) -> Option<String> {
        match self.items_read {
            0 => Some("the input has no items".into()),
            _ => self.fullness?.warning(),
        }
    }

    fn text(&self) -> String {
        let took = progress::duration(Duration::from_secs_f64(self.seconds));
        let (read, rate) = (say::items(self.items_read), say::rate(self.target_fpr));
        let family = self.layout.to_uppercase();
        let what = match (self.shards, self.generation, self.bytes) {
            (None, Some(generation), _) => {
                let kind = self.kind.as_deref().unwrap_or("unknown");
                format!("one {kind} filter ({family}.*), generation {generation}")
            }
            _ if matches!(self.layout, "bf" | "cf") && self.shards.is_none() => {
                format!("one RedisBloom filter ({family}.*)")
            }
            (Some(shards), Some(generation), _) => {
                format!("{shards} shards of {}, generation {generation}", self.layout)
            }
            (.., bytes) => format!("a {} bitmap, {}", self.layout, say::bytes(bytes.unwrap_or(0))),
        };
        format!(
            "{}: {read} in {what}, capacity {}, false-positive rate {rate}, {took}",
            self.out,
            say::items(self.capacity)
        )
    }
}
