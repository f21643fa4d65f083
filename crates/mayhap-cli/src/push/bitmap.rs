//! Filters as the bitmaps that Java programs store in Redis.

use std::ops::ControlFlow;

use mayhap::{Bloom, BloomPlacement, Filter, ForeignHash, HashScheme};
use mayhap_formats::redisson;
use mayhap_remote::RedissonFilter;
use mayhap_remote::guava::{GuavaBitmap, GuavaImage};

use super::Push;
use super::send::Sent;
use crate::error::CliError;
use crate::filter_file::Opened;
use crate::progress::Progress;
use crate::remote::{Remote, RemoteArgs};
use crate::remote_filter::{AskedWith, Layout, Server};
use crate::{Verdict, interrupt};

/// The layout that a filter has, of those that Java programs store in Redis.
pub(super) fn layout_of(filter: &Filter) -> Option<Layout> {
    match filter {
        Filter::Bloom(bloom) if redisson::config(bloom).is_ok() => Some(Layout::Redisson),
        Filter::Bloom(bloom)
            if matches!(bloom.placement(), BloomPlacement::Guava32 | BloomPlacement::Guava64)
                && matches!(bloom.scheme(), HashScheme::Foreign(scheme) if scheme.function() == ForeignHash::Guava) =>
        {
            Some(Layout::Guava)
        }
        _ => None,
    }
}

/// How a filter is stored as a bitmap.
pub(crate) struct Going<'a> {
    pub(crate) remote: &'a Remote,
    pub(crate) args: &'a RemoteArgs,
    pub(crate) layout: Layout,
    pub(crate) marker: bool,
    /// Replace an existing value of the name.
    pub(crate) force: bool,
}

impl Push {
    pub(super) fn push_bitmap(&self, opened: &Opened, layout: Layout) -> Result<Verdict, CliError> {
        let progress = Progress::start(self.progress);
        let (remote, args) = (&self.remote, &self.server);
        let going = Going { remote, args, layout, marker: self.marker, force: self.force };
        let (sent, replaced) = going.send(&opened.filter, &progress)?;
        drop(progress);
        let asked_with = going.asked_with(&opened.filter);
        let command = match layout {
            Layout::Redisson => "RENAME, HSET",
            Layout::Guava => "RENAME",
        };
        self.report(opened, command, sent, replaced, asked_with)
    }
}

impl Going<'_> {
    /// Sends the bitmap and puts it in place in one step. Returns whether a value was replaced.
    pub(crate) fn send(&self, filter: &Filter, progress: &Progress) -> Result<(Sent, bool), CliError> {
        let Filter::Bloom(filter) = filter else {
            let what = format!("a {} filter cannot be stored as a Java bitmap", filter.kind());
            return Err(self.cli_error(what));
        };
        let server = Server::connect(self.remote, self.args)?;
        let name = server.name_as_text()?;
        server.check_for_bitmaps()?;
        let mut replaced = server.type_of_name()? != "none";
        if self.layout == Layout::Redisson {
            replaced |= server.wait(RedissonFilter::is_there(server.link(), name))?;
        }
        if replaced && !self.force {
            return Err(self.cli_error("exists already; --force replaces it".into()));
        }
        let total = filter.shape().bits().div_ceil(8);
        progress.phase("sending", Some(total));
        // From here on, errors need cleaning up.
        let _polite = interrupt::polite();
        let mut bytes = 0;
        let watch = |sent| {
            bytes = sent;
            progress.done_bytes(sent);
            if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let done = match self.layout {
            Layout::Redisson => {
                let HashScheme::Foreign(scheme) = filter.scheme() else {
                    return Err(self.other_layout(filter));
                };
                // A filter that has the name is replaced without being opened.
                let there = RedissonFilter::named(server.link(), name, scheme.items());
                server.wait(there.replace_watched(filter, watch))
            }
            Layout::Guava => {
                let image = GuavaImage::of(filter).map_err(|cause| self.cli_error(cause.to_string()))?;
                let HashScheme::Foreign(scheme) = filter.scheme() else {
                    return Err(self.other_layout(filter));
                };
                let bitmap = GuavaBitmap::new(server.link(), name, *image.shape(), scheme.items());
                let bitmap = if self.marker { bitmap.with_marker() } else { bitmap };
                server.wait(bitmap.replace_watched(&image, watch))
            }
        };
        if done.is_err() {
            interrupt::check()?;
        }
        done?;
        Ok((Sent { bytes, pieces: bytes.div_ceil(1 << 20) }, replaced))
    }

    /// The flags to query a bitmap with Guava's placement, which the server does not store.
    pub(crate) fn asked_with(&self, filter: &Filter) -> Option<AskedWith> {
        let Filter::Bloom(filter) = filter else { return None };
        let HashScheme::Foreign(scheme) = filter.scheme() else { return None };
        let image = GuavaImage::of(filter).ok().filter(|_| self.layout == Layout::Guava)?;
        Some(AskedWith::new(image.shape(), scheme.items(), self.marker))
    }

    fn other_layout(&self, filter: &Bloom) -> CliError {
        self.cli_error(format!(
            "the filter has placement {:?} and cannot be rehashed without its items: build it with --format redisson or guava",
            filter.scheme()
        ))
    }

    fn cli_error(&self, what: String) -> CliError {
        CliError::Filter { name: self.remote.shown(), what }
    }
}
