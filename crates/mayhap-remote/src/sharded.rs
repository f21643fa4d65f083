//! A filter in many shards, spread over the servers of a link.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::Value;
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::answer::{Additions, Answers};
use crate::build::{Build, BuildOptions, bury, lock_for_a_while, unlock};
use crate::descriptor::{Descriptor, Generation, Role};
use crate::link::MOST_SWAPPED_BYTES;
use crate::name::FilterName;
use crate::plan::FilterPlan;
use crate::report::{FilterReport, ShardFill};
use crate::route::Place;
use crate::shard::{Job, beside, counted, inventory, jobs, named};
use crate::{Access, Added, Answer, Link, RemoteError, Request};

/// How often a filter that changes all the time is looked at before that is an error.
const MOST_LOOKS: u32 = 8;
/// Shards that are dealt with in one go.
const SHARDS_AT_ONCE: usize = 1024;

/// A filter in shards: one on a single server, thousands over a cluster.
///
/// An *absent* is certain: the item was not in any [`add`](Self::add) that answered *new* or *mayhap* before the question.
/// Where that cannot be said, since a shard is missing, incomplete, foreign or out of reach, the answer is
/// [`Answer::NotReady`]. A *mayhap* is wrong for at most the target rate of items, as long as no more than its capacity are in.
///
/// ```no_run
/// use mayhap_remote::{Answer, Backend, FilterPlan, Link, LinkOptions, ShardedFilter};
///
/// # async fn example() -> Result<(), mayhap_remote::RemoteError> {
/// let link = Link::open(["redis://localhost"], LinkOptions::default()).await?;
/// let plan = FilterPlan::new(Backend::Plain, 1_000_000, 0.01);
/// let seen = ShardedFilter::create(&link, "seen", &plan).await?;
/// assert!(seen.add(&["ada", "grace"]).await.all_in());
/// let answers = seen.ask(&["ada", "alan"]).await;
/// assert_eq!(answers.as_slice()[0], Answer::Mayhap);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ShardedFilter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    link: Link,
    name: FilterName,
    known: Mutex<Memory>,
}

/// What is known, or why the last who asked was not told.
#[derive(Debug, Default)]
struct Memory {
    known: Option<Known>,
    failed: Option<(Instant, RemoteError)>,
}

/// A descriptor, and since when it is known.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) descriptor: Arc<Descriptor>,
    /// As it was read.
    pub(crate) bytes: Arc<Vec<u8>>,
    /// Before it was asked for: it was so at this time or later.
    looked_at: Instant,
}

impl Known {
    /// May it still be used? That there is no filter is never taken from memory.
    fn is_good(&self) -> bool {
        self.descriptor.serving.is_some()
            && self.looked_at.elapsed() < Duration::from_millis(self.descriptor.lease_ms)
    }
}

impl ShardedFilter {
    /// Makes a new, empty filter. That takes a little longer than a lease: somebody may know one of this name that was removed or lost a moment ago.
    ///
    /// # Errors
    /// There is one of this name, numbers make no sense, or servers do not do as they should.
    pub async fn create(link: &Link, name: impl AsRef<[u8]>, plan: &FilterPlan) -> Result<Self, RemoteError> {
        let filter = Self::named(link, name)?;
        let mut build = Build::first(&filter, plan, BuildOptions::default()).await?;
        build.commit().await?;
        Ok(filter)
    }

    /// Begins the first generation of a filter that is to answer only once it is full: see [`Build`].
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn begin(
        link: &Link,
        name: impl AsRef<[u8]>,
        plan: &FilterPlan,
        options: BuildOptions,
    ) -> Result<Build, RemoteError> {
        Build::first(&Self::named(link, name)?, plan, options).await
    }

    /// The filter of this name.
    ///
    /// # Errors
    /// There is none, or something else.
    pub async fn open(link: &Link, name: impl AsRef<[u8]>) -> Result<Self, RemoteError> {
        let filter = Self::named(link, name)?;
        let known = filter.look().await?;
        filter.serving(&known)?;
        Ok(filter)
    }

    /// Begins to build the next generation beside the one that serves: see [`Build`].
    ///
    /// # Errors
    /// Somebody else is building, numbers make no sense, or servers do not do as they should.
    pub async fn begin_build(&self, plan: &FilterPlan, options: BuildOptions) -> Result<Build, RemoteError> {
        Build::next(self, plan, options).await
    }

    /// Removes what a builder left behind that died: until then everything is added to that as well, and if a shard of it is
    /// lost, no addition succeeds. The next [`begin_build`](Self::begin_build) does the same. `false`: there was nothing.
    ///
    /// # Errors
    /// The builder lives, or servers do not do as they should.
    pub async fn bury_dead_build(&self) -> Result<bool, RemoteError> {
        bury(self).await
    }

    /// Asks about items; an answer for each. One command per shard, one pipeline per node.
    pub async fn ask<I: AsRef<[u8]>>(&self, items: &[I]) -> Answers {
        let answers = self.try_ask(items).await;
        answers.unwrap_or_else(|error| Answers::new(vec![Answer::NotReady; items.len()], Some(error)))
    }

    /// Adds items; what became of each. One command per shard, one pipeline per node.
    ///
    /// While a generation is being built, or has just been replaced, items are added to both.
    pub async fn add<I: AsRef<[u8]>>(&self, items: &[I]) -> Additions {
        let added = self.try_add(items).await;
        added.unwrap_or_else(|error| Additions::new(vec![Added::NotReady; items.len()], Some(error)))
    }

    /// The keys of the shards that these items are in now, for who wants to look for themselves.
    ///
    /// # Errors
    /// There is no such filter, or nobody says what it is.
    pub async fn shard_keys<I: AsRef<[u8]>>(&self, items: &[I]) -> Result<Vec<Vec<u8>>, RemoteError> {
        let known = self.known().await?;
        let generation = self.serving(&known)?;
        let shards = generation.measures.shards;
        let shard = |item: &I| Place::of(&generation.key, item.as_ref()).shard(shards);
        Ok(items.iter().map(|item| generation.shard_key(self.name(), shard(item))).collect())
    }

    /// What it is, and how full: asks every shard.
    ///
    /// # Errors
    /// There is no such filter, or nobody says what it is.
    pub async fn info(&self) -> Result<FilterReport, RemoteError> {
        let known = self.look().await?;
        let serving = self.serving(&known)?;
        let fill = self.fill(serving).await;
        let of_role = |role| known.descriptor.of_role(role).map(|generation| generation.number).collect();
        Ok(FilterReport {
            generation: serving.number,
            measures: serving.measures.clone(),
            lease: Duration::from_millis(known.descriptor.lease_ms),
            building: of_role(Role::Building),
            retiring: of_role(Role::Retiring),
            fill,
        })
    }

    /// Removes the filter, its shards first from sight and then from the servers.
    ///
    /// # Errors
    /// There is none, somebody is building, or servers do not do as they should.
    pub async fn delete(self) -> Result<(), RemoteError> {
        let known = self.look().await?;
        if known.descriptor.generations().next().is_none() {
            return Err(self.missing());
        }
        let token = lock_for_a_while(&self, &known.descriptor).await?;
        let hidden = self.hide().await;
        unlock(&self, token).await;
        let (known, gone) = hidden?;
        self.wait_out(&gone).await;
        for generation in known.descriptor.generations() {
            self.remove_shards(generation).await?;
        }
        // Somebody may have made a new one by now, which is right.
        self.link().swap(self.name().as_bytes(), Some(&gone.encode()), None).await?;
        Ok(())
    }

    /// Takes all generations from sight. What was known before, and what is there now: which numbers were used, and for how long somebody
    /// may know of them.
    async fn hide(&self) -> Result<(Known, Descriptor), RemoteError> {
        let known = self.look().await?;
        let gone = known.descriptor.changed(|descriptor| {
            (descriptor.serving, descriptor.builder) = (None, None);
            descriptor.also.clear();
        })?;
        match self.link().swap(self.name().as_bytes(), Some(&known.bytes), Some(&gone.encode())).await? {
            true => Ok((known, gone)),
            false => Err(RemoteError::Building { expires_ms: 0 }),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &FilterName {
        &self.inner.name
    }

    /// The servers it is on.
    #[must_use]
    pub fn link(&self) -> &Link {
        &self.inner.link
    }

    pub(crate) fn named(link: &Link, name: impl AsRef<[u8]>) -> Result<Self, RemoteError> {
        let inner = Inner { link: link.clone(), name: FilterName::new(name)?, known: Mutex::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    async fn try_ask<I: AsRef<[u8]>>(&self, items: &[I]) -> Result<Answers, RemoteError> {
        let mut known = self.known().await?;
        for _ in 0..MOST_LOOKS {
            let generation = self.serving(&known)?;
            let answers = self.ask_generation(generation, items).await;
            if answers.error().is_none() && known.is_good() {
                return Ok(answers);
            }
            // Nothing was said that could be wrong by now, and the next look might take as long again.
            if answers.count(Answer::NotReady) == items.len() && nobody_answers(answers.error()) {
                return Ok(answers);
            }
            // Too late to be sure, or something is missing: what it was asked of must still serve.
            let newer = self.look().await?;
            if newer.descriptor.serving.as_ref() == Some(generation) {
                return Ok(answers);
            }
            known = newer;
        }
        Err(RemoteError::Unsteady { looks: MOST_LOOKS })
    }

    async fn ask_generation<I: AsRef<[u8]>>(&self, generation: &Generation, items: &[I]) -> Answers {
        let jobs = jobs(generation, self.name(), items);
        let requests = jobs.iter().map(|job| job.lookup(generation, items)).collect();
        let replies = self.link().ask(requests).await;
        let (mut answers, mut error) = (vec![Answer::NotReady; items.len()], None);
        for (job, reply) in jobs.iter().zip(replies) {
            let reply = reply.map_err(|error| named(&job.key, error));
            match reply.and_then(|reply| job.answers(generation, items, &reply)) {
                Ok(of_job) => {
                    job.items.iter().zip(of_job).for_each(|(&index, answer)| answers[index] = answer);
                }
                Err(cause) => error = Some(cause),
            }
        }
        Answers::new(answers, error)
    }

    async fn try_add<I: AsRef<[u8]>>(&self, items: &[I]) -> Result<Additions, RemoteError> {
        let mut done: Vec<(Generation, Additions)> = Vec::new();
        let mut known = self.known().await?;
        let first = self.serving(&known)?.clone();
        for _ in 0..MOST_LOOKS {
            self.serving(&known)?;
            let is_done = |target: &&Generation| done.iter().any(|(generation, _)| generation == *target);
            let open: Vec<Generation> =
                known.descriptor.targets().filter(|target| !is_done(target)).cloned().collect();
            let added = self.add_to(&open, items).await;
            done.extend(open.into_iter().zip(added));
            let is_clean = done.iter().all(|(_, added)| added.error().is_none());
            if is_clean && known.is_good() {
                return Ok(combine(&first, &done, items.len()));
            }
            // Too late to be sure, or something is missing: is there anything else that must have the items by now? By more than the
            // number: one that was made anew has the same.
            known = self.look().await?;
            let is_done = |target: &Generation| done.iter().any(|(generation, _)| generation == target);
            // A look that took longer than the lease says nothing about now.
            if known.descriptor.targets().all(is_done) && known.is_good() {
                let is_target = |(generation, _): &(Generation, Additions)| {
                    known.descriptor.targets().any(|target| target == generation)
                };
                self.clean_up(done.iter().filter(|of| !is_target(of)), items).await;
                done.retain(is_target);
                self.serving(&known)?;
                return Ok(combine(&first, &done, items.len()));
            }
        }
        Err(RemoteError::Unsteady { looks: MOST_LOOKS })
    }

    /// Adds to several generations at once.
    async fn add_to<I: AsRef<[u8]>>(&self, generations: &[Generation], items: &[I]) -> Vec<Additions> {
        let jobs: Vec<Vec<Job>> =
            generations.iter().map(|generation| jobs(generation, self.name(), items)).collect();
        let of_generation = generations.iter().zip(&jobs);
        let requests = of_generation
            .flat_map(|(generation, jobs)| jobs.iter().map(|job| job.addition(generation, items)))
            .collect();
        let mut replies = self.link().ask(requests).await.into_iter();
        let collected = generations.iter().zip(&jobs).map(|(generation, jobs)| {
            collect(generation, jobs, items.len(), replies.by_ref().take(jobs.len()))
        });
        collected.collect()
    }

    /// Adds to one generation, which is being built.
    pub(crate) async fn add_to_one<I: AsRef<[u8]>>(
        &self,
        generation: &Generation,
        items: &[I],
    ) -> Result<(), RemoteError> {
        let added = self.add_to(std::slice::from_ref(generation), items).await;
        match added.first().and_then(Additions::error) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Removes strings that a late addition made again after their generation was gone.
    async fn clean_up<'a, I: AsRef<[u8]>>(
        &self,
        gone: impl Iterator<Item = &'a (Generation, Additions)>,
        items: &[I],
    ) {
        let plain =
            gone.filter(|(generation, added)| generation.measures.plain.is_some() && added.error().is_some());
        let mut keys: Vec<Vec<u8>> = plain
            .flat_map(|(generation, _)| jobs(generation, self.name(), items).into_iter().map(|job| job.key))
            .collect();
        keys.dedup();
        // If it fails, some bytes are left behind that nobody ever reads.
        let _ = self.link().ask(keys.iter().map(|key| Request::write("UNLINK", key)).collect()).await;
    }

    async fn fill(&self, generation: &Generation) -> Vec<ShardFill> {
        let shards: Vec<u32> = (0..generation.measures.shards).collect();
        let mut fill = Vec::with_capacity(shards.len());
        for some in shards.chunks(SHARDS_AT_ONCE) {
            let requests = some
                .iter()
                .flat_map(|&shard| inventory(generation, &generation.shard_key(self.name(), shard), shard));
            let replies = self.link().ask(requests.collect()).await;
            fill.extend(some.iter().zip(replies.chunks(2)).map(|(&shard, replies)| {
                let key = String::from_utf8_lossy(&generation.shard_key(self.name(), shard)).into_owned();
                let items = match replies {
                    [Ok(ready), Ok(count)] => counted(generation, ready, count)
                        .ok_or(RemoteError::Shard { key, what: "missing, not complete, or another".into() }),
                    [Err(error), _] | [_, Err(error)] => Err(error.clone()),
                    _ => Err(RemoteError::Shard { key, what: "no answer".into() }),
                };
                ShardFill { shard, items }
            }));
        }
        fill
    }

    /// Removes the shards of a generation that nobody uses any more.
    pub(crate) async fn remove_shards(&self, generation: &Generation) -> Result<(), RemoteError> {
        let shards: Vec<u32> = (0..generation.measures.shards).collect();
        for some in shards.chunks(SHARDS_AT_ONCE) {
            let keys = some.iter().map(|&shard| generation.shard_key(self.name(), shard));
            let requests = keys.map(|key| Request::write("UNLINK", &key)).collect();
            self.link().ask(requests).await.into_iter().collect::<Result<Vec<Value>, _>>()?;
        }
        self.remove_images(generation).await
    }

    /// Removes what lies beside the shards of a generation, on its way into them.
    pub(crate) async fn remove_images(&self, generation: &Generation) -> Result<(), RemoteError> {
        if generation.measures.plain.is_none() {
            return Ok(());
        }
        let shards: Vec<u32> = (0..generation.measures.shards).collect();
        for some in shards.chunks(SHARDS_AT_ONCE) {
            let keys = some.iter().map(|&shard| beside(&generation.shard_key(self.name(), shard)));
            let requests = keys.map(|key| Request::write("UNLINK", &key)).collect();
            self.link().ask(requests).await.into_iter().collect::<Result<Vec<Value>, _>>()?;
        }
        Ok(())
    }

    /// Waits until nobody uses anything that was known before `descriptor`.
    pub(crate) async fn wait_out(&self, descriptor: &Descriptor) {
        let lease = Duration::from_millis(descriptor.lease_ms);
        // Clocks do not run alike, but nearly.
        sleep(lease + lease / 8 + Duration::from_millis(5)).await;
    }

    /// What is known, if it may still be used, and what is so now if not.
    async fn known(&self) -> Result<Known, RemoteError> {
        let asked_at = Instant::now();
        let mut memory = self.inner.known.lock().await;
        if let Some(known) = memory.known.as_ref().filter(|known| known.is_good()) {
            return Ok(known.clone());
        }
        // All others wait: one question is enough for all of them, and so is one that nobody answers.
        if let Some((_, error)) = memory.failed.as_ref().filter(|(failed_at, _)| *failed_at >= asked_at) {
            return Err(error.clone());
        }
        match self.read().await {
            Ok(fresh) => {
                memory.known = Some(fresh.clone());
                Ok(fresh)
            }
            Err(error) => {
                memory.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// What is so now.
    pub(crate) async fn look(&self) -> Result<Known, RemoteError> {
        let fresh = self.read().await?;
        let known = &mut self.inner.known.lock().await.known;
        if known.as_ref().is_none_or(|known| known.looked_at < fresh.looked_at) {
            *known = Some(fresh.clone());
        }
        Ok(fresh)
    }

    async fn read(&self) -> Result<Known, RemoteError> {
        let looked_at = Instant::now();
        let bytes = self.read_bytes().await?;
        if bytes.is_empty() {
            return Err(self.missing());
        }
        let descriptor = Descriptor::decode(&bytes)
            .map_err(|cause| RemoteError::Descriptor { name: self.name().to_string(), cause })?;
        Ok(Known { descriptor: Arc::new(descriptor), bytes: Arc::new(bytes), looked_at })
    }

    /// The text under the filter's name; empty, if there is none. Never from a replica, which may be late.
    pub(crate) async fn read_bytes(&self) -> Result<Vec<u8>, RemoteError> {
        let key = self.name().as_bytes();
        let command = redis::cmd("GETRANGE").arg(key).arg(0).arg(MOST_SWAPPED_BYTES).take();
        match self.link().ask_one(Request::whole(command, key, Access::ReadLatest)).await? {
            Value::BulkString(bytes) => Ok(bytes),
            Value::Nil => Ok(Vec::new()),
            other => Err(RemoteError::reply("a text", &other)),
        }
    }

    fn serving<'a>(&self, known: &'a Known) -> Result<&'a Generation, RemoteError> {
        known.descriptor.serving.as_ref().ok_or_else(|| self.missing())
    }

    pub(crate) fn missing(&self) -> RemoteError {
        RemoteError::Missing { name: self.name().to_string() }
    }
}

/// Is it because no server answers?
fn nobody_answers(error: Option<&RemoteError>) -> bool {
    matches!(error, Some(RemoteError::Patience { .. } | RemoteError::Connect { .. }))
}

/// What became of the items in one generation.
fn collect(
    generation: &Generation,
    jobs: &[Job],
    items: usize,
    replies: impl Iterator<Item = Result<Value, RemoteError>>,
) -> Additions {
    let (mut added, mut error) = (vec![Added::NotReady; items], None);
    for (job, reply) in jobs.iter().zip(replies) {
        let reply = reply.map_err(|error| named(&job.key, error));
        match reply.and_then(|reply| job.added(generation, &reply)) {
            Ok(of_job) => {
                if of_job.contains(&Added::Full) {
                    error = Some(RemoteError::Full { key: job.shown() });
                }
                job.items.iter().zip(of_job).for_each(|(&index, became)| added[index] = became);
            }
            Err(cause) => error = Some(cause),
        }
    }
    Additions::new(added, error)
}

/// What became of the items in all generations: they are in only if they are in all of them.
fn combine(first: &Generation, done: &[(Generation, Additions)], items: usize) -> Additions {
    let error = done.iter().find_map(|(_, added)| added.error()).cloned();
    let became = |index: usize| {
        let all = || done.iter().filter_map(|(_, added)| added.as_slice().get(index).copied());
        if all().any(|added| added == Added::NotReady) {
            Added::NotReady
        } else if all().any(|added| added == Added::Full) {
            Added::Full
        } else {
            // The generation that served at the beginning knows best what is new.
            let knows = done.iter().find(|(generation, _)| generation == first);
            let knows = knows.and_then(|(_, added)| added.as_slice().get(index).copied());
            knows.or_else(|| all().next()).unwrap_or(Added::NotReady)
        }
    };
    Additions::new((0..items).map(became).collect(), error)
}
