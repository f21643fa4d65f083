//! A filter in many shards, spread over the servers of a link.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::Value;
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::answer::{Answers, Insertions};
use crate::build::{Build, BuildOptions, lock_for_leases, remove_dead, unlock};
use crate::descriptor::{Descriptor, Generation, Role};
use crate::link::MOST_SWAPPED_BYTES;
use crate::name::FilterName;
use crate::plan::FilterPlan;
use crate::report::{FilterReport, ShardFill};
use crate::route::ItemRoute;
use crate::shard::{Job, counted, image_key, inventory, jobs, named};
use crate::{Access, Answer, Inserted, Link, RemoteError, Request};

/// How many times an operation starts again because the filter was replaced, before it fails.
const MAX_ATTEMPTS: u32 = 8;
/// The number of shards per batch of requests.
const SHARDS_AT_ONCE: usize = 1024;

/// A filter in shards: one on a single server, thousands over a cluster.
///
/// *No* is certain: before the lookup, no [`insert`](Self::insert) of the item had returned *new* or *maybe
/// before*. If that cannot be known, because a shard is missing, incomplete, foreign or out of reach, the
/// answer is [`Answer::NotReady`]. *Maybe* has a false-positive rate of at most the target, up to the
/// capacity.
///
/// ```no_run
/// use mayhap_remote::{Answer, Backend, FilterPlan, Link, LinkOptions, ShardedFilter};
///
/// # async fn example() -> Result<(), mayhap_remote::RemoteError> {
/// let link = Link::open(["redis://localhost"], LinkOptions::default()).await?;
/// let plan = FilterPlan::new(Backend::Plain, 1_000_000, 0.01);
/// let seen = ShardedFilter::create(&link, "seen", &plan).await?;
/// assert!(seen.insert(&["ada", "grace"]).await.all_inserted());
/// let answers = seen.may_contain(&["ada", "alan"]).await;
/// assert_eq!(answers.as_slice()[0], Answer::Maybe);
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
    known: Mutex<Cache>,
}

/// The cached descriptor, or the last error.
#[derive(Debug, Default)]
struct Cache {
    known: Option<Known>,
    failed: Option<(Instant, RemoteError)>,
}

/// A descriptor and the time of its read.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) descriptor: Arc<Descriptor>,
    /// The text as it was read.
    pub(crate) bytes: Arc<Vec<u8>>,
    /// The time before the read request: the descriptor was current then or later.
    looked_at: Instant,
}

impl Known {
    /// May the cached descriptor still be used? A missing filter is never served from the cache.
    fn is_good(&self) -> bool {
        self.descriptor.serving.is_some()
            && self.looked_at.elapsed() < Duration::from_millis(self.descriptor.lease_ms)
    }
}

impl ShardedFilter {
    /// Creates a new, empty filter. This takes a little longer than a lease: a client may still have the
    /// descriptor of a filter with this name that was removed or lost a moment ago.
    ///
    /// # Errors
    /// The name is in use, the plan is invalid, or a server fails.
    pub async fn create(link: &Link, name: impl AsRef<[u8]>, plan: &FilterPlan) -> Result<Self, RemoteError> {
        let filter = Self::named(link, name)?;
        let mut build = Build::first(&filter, plan, BuildOptions::default()).await?;
        build.commit().await?;
        Ok(filter)
    }

    /// Begins the first generation of a filter that starts to answer after all its items are inserted: see
    /// [`Build`].
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

    /// Opens the filter with this name.
    ///
    /// # Errors
    /// There is no such filter, or the name holds something else.
    pub async fn open(link: &Link, name: impl AsRef<[u8]>) -> Result<Self, RemoteError> {
        let filter = Self::named(link, name)?;
        let known = filter.look().await?;
        filter.serving(&known)?;
        Ok(filter)
    }

    /// Begins to build the next generation while the present one serves: see [`Build`].
    ///
    /// # Errors
    /// Another client is building, the plan is invalid, or a server fails.
    pub async fn begin_build(&self, plan: &FilterPlan, options: BuildOptions) -> Result<Build, RemoteError> {
        Build::next(self, plan, options).await
    }

    /// Removes the unfinished generation of a dead builder. Until then all insertions go to it as well, and
    /// if one of its shards is lost, no insertion succeeds. The next [`begin_build`](Self::begin_build) does
    /// the same. Returns `false` if there was nothing to remove.
    ///
    /// # Errors
    /// The builder is alive, or a server fails.
    pub async fn remove_dead_build(&self) -> Result<bool, RemoteError> {
        remove_dead(self).await
    }

    /// Looks up items and returns an answer for each. Sends one command per shard, in one pipeline per node.
    pub async fn may_contain<I: AsRef<[u8]>>(&self, items: &[I]) -> Answers {
        let answers = self.try_may_contain(items).await;
        answers.unwrap_or_else(|error| Answers::new(vec![Answer::NotReady; items.len()], Some(error)))
    }

    /// Inserts items and returns a result for each. Sends one command per shard, in one pipeline per node.
    ///
    /// While a generation is being built, or has just been replaced, items are inserted into both
    /// generations.
    pub async fn insert<I: AsRef<[u8]>>(&self, items: &[I]) -> Insertions {
        let inserted = self.try_insert(items).await;
        inserted.unwrap_or_else(|error| Insertions::new(vec![Inserted::NotReady; items.len()], Some(error)))
    }

    /// The keys of the shards that hold these items now, for inspection with other tools.
    ///
    /// # Errors
    /// There is no such filter, or its descriptor cannot be read.
    pub async fn shard_keys<I: AsRef<[u8]>>(&self, items: &[I]) -> Result<Vec<Vec<u8>>, RemoteError> {
        let known = self.known().await?;
        let generation = self.serving(&known)?;
        let shards = generation.measures.shards;
        let shard = |item: &I| ItemRoute::of(&generation.key, item.as_ref()).shard(shards);
        Ok(items.iter().map(|item| generation.shard_key(self.name(), shard(item))).collect())
    }

    /// Reports the parameters and the fill. Sends requests to every shard.
    ///
    /// # Errors
    /// There is no such filter, or its descriptor cannot be read.
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

    /// Removes the filter: first from the descriptor, then its shards from the servers.
    ///
    /// # Errors
    /// There is no such filter, another client is building, or a server fails.
    pub async fn delete(self) -> Result<(), RemoteError> {
        let known = self.look().await?;
        if known.descriptor.generations().next().is_none() {
            return Err(self.missing());
        }
        let token = lock_for_leases(&self, &known.descriptor).await?;
        let hidden = self.hide().await;
        unlock(&self, token).await;
        let (known, gone) = hidden?;
        self.wait_out(&gone).await;
        for generation in known.descriptor.generations() {
            self.remove_shards(generation).await?;
        }
        // If another client has created a new filter by now, its descriptor stays.
        self.link().swap(self.name().as_bytes(), Some(&gone.encode()), None).await?;
        Ok(())
    }

    /// Removes all generations from the descriptor. Returns the old and the new descriptor. The new one keeps
    /// the used numbers, and the lease during which clients may still use the old one.
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

    async fn try_may_contain<I: AsRef<[u8]>>(&self, items: &[I]) -> Result<Answers, RemoteError> {
        let mut known = self.known().await?;
        for _ in 0..MAX_ATTEMPTS {
            let generation = self.serving(&known)?;
            let answers = self.look_up(generation, items).await;
            if answers.error().is_none() && known.is_good() {
                return Ok(answers);
            }
            // No answer was given that could be wrong by now, and another read might take as long again.
            if answers.count(Answer::NotReady) == items.len() && is_unreachable(answers.error()) {
                return Ok(answers);
            }
            // Too late to be sure, or a shard failed: the generation that answered must still serve.
            let newer = self.look().await?;
            if newer.descriptor.serving.as_ref() == Some(generation) {
                return Ok(answers);
            }
            known = newer;
        }
        Err(RemoteError::Unsteady { attempts: MAX_ATTEMPTS })
    }

    async fn look_up<I: AsRef<[u8]>>(&self, generation: &Generation, items: &[I]) -> Answers {
        let jobs = jobs(generation, self.name(), items);
        let requests = jobs.iter().map(|job| job.lookup(generation, items)).collect();
        let replies = self.link().ask(requests).await;
        let (mut answers, mut error) = (vec![Answer::NotReady; items.len()], None);
        for (job, reply) in jobs.iter().zip(replies) {
            let reply = reply.map_err(|error| named(&job.key, error));
            match reply.and_then(|reply| job.answers(generation, &reply)) {
                Ok(of_job) => {
                    job.items.iter().zip(of_job).for_each(|(&index, answer)| answers[index] = answer);
                }
                Err(cause) => error = Some(cause),
            }
        }
        Answers::new(answers, error)
    }

    async fn try_insert<I: AsRef<[u8]>>(&self, items: &[I]) -> Result<Insertions, RemoteError> {
        let mut done: Vec<(Generation, Insertions)> = Vec::new();
        let mut known = self.known().await?;
        let first = self.serving(&known)?.clone();
        for _ in 0..MAX_ATTEMPTS {
            self.serving(&known)?;
            let is_done = |target: &&Generation| done.iter().any(|(generation, _)| generation == *target);
            let open: Vec<Generation> =
                known.descriptor.targets().filter(|target| !is_done(target)).cloned().collect();
            let inserted = self.insert_into(&open, items).await;
            done.extend(open.into_iter().zip(inserted));
            let is_clean = done.iter().all(|(_, inserted)| inserted.error().is_none());
            if is_clean && known.is_good() {
                return Ok(combine(&first, &done, items.len()));
            }
            // Too late to be sure, or a shard failed: must another generation have the items by now? Compare
            // more than the number, because a filter that was created again has the same numbers.
            known = self.look().await?;
            let is_done = |target: &Generation| done.iter().any(|(generation, _)| generation == target);
            // A read that took longer than the lease proves nothing about the present.
            if known.descriptor.targets().all(is_done) && known.is_good() {
                let is_target = |(generation, _): &(Generation, Insertions)| {
                    known.descriptor.targets().any(|target| target == generation)
                };
                self.clean_up(done.iter().filter(|of| !is_target(of)), items).await;
                done.retain(is_target);
                self.serving(&known)?;
                return Ok(combine(&first, &done, items.len()));
            }
        }
        Err(RemoteError::Unsteady { attempts: MAX_ATTEMPTS })
    }

    /// Inserts into several generations, with one batch of requests.
    async fn insert_into<I: AsRef<[u8]>>(&self, generations: &[Generation], items: &[I]) -> Vec<Insertions> {
        let jobs: Vec<Vec<Job>> =
            generations.iter().map(|generation| jobs(generation, self.name(), items)).collect();
        let of_generation = generations.iter().zip(&jobs);
        let requests = of_generation
            .flat_map(|(generation, jobs)| jobs.iter().map(|job| job.insertion(generation, items)))
            .collect();
        let mut replies = self.link().ask(requests).await.into_iter();
        let collected = generations.iter().zip(&jobs).map(|(generation, jobs)| {
            collect(generation, jobs, items.len(), replies.by_ref().take(jobs.len()))
        });
        collected.collect()
    }

    /// Inserts into one generation that is being built.
    pub(crate) async fn insert_into_one<I: AsRef<[u8]>>(
        &self,
        generation: &Generation,
        items: &[I],
    ) -> Result<(), RemoteError> {
        let inserted = self.insert_into(std::slice::from_ref(generation), items).await;
        match inserted.first().and_then(Insertions::error) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Removes strings that a late insertion created again after their generation was removed.
    async fn clean_up<'a, I: AsRef<[u8]>>(
        &self,
        gone: impl Iterator<Item = &'a (Generation, Insertions)>,
        items: &[I],
    ) {
        let plain = gone.filter(|(generation, inserted)| {
            generation.measures.plain.is_some() && inserted.error().is_some()
        });
        let mut keys: Vec<Vec<u8>> = plain
            .flat_map(|(generation, _)| jobs(generation, self.name(), items).into_iter().map(|job| job.key))
            .collect();
        keys.dedup();
        // If this fails, a few bytes stay that no client reads.
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
                    [Ok(ready), Ok(count)] => counted(generation, ready, count).ok_or(RemoteError::Shard {
                        key,
                        what: "it is missing, incomplete, or not part of this filter".into(),
                    }),
                    [Err(error), _] | [_, Err(error)] => Err(error.clone()),
                    _ => Err(RemoteError::Shard { key, what: "the server did not answer".into() }),
                };
                ShardFill { shard, items }
            }));
        }
        fill
    }

    /// Removes the shards of a generation that is no longer in use.
    pub(crate) async fn remove_shards(&self, generation: &Generation) -> Result<(), RemoteError> {
        let shards: Vec<u32> = (0..generation.measures.shards).collect();
        for some in shards.chunks(SHARDS_AT_ONCE) {
            let keys = some.iter().map(|&shard| generation.shard_key(self.name(), shard));
            let requests = keys.map(|key| Request::write("UNLINK", &key)).collect();
            self.link().ask(requests).await.into_iter().collect::<Result<Vec<Value>, _>>()?;
        }
        self.remove_images(generation).await
    }

    /// Removes the images that were on their way into the shards of a generation.
    pub(crate) async fn remove_images(&self, generation: &Generation) -> Result<(), RemoteError> {
        if generation.measures.plain.is_none() {
            return Ok(());
        }
        let shards: Vec<u32> = (0..generation.measures.shards).collect();
        for some in shards.chunks(SHARDS_AT_ONCE) {
            let keys = some.iter().map(|&shard| image_key(&generation.shard_key(self.name(), shard)));
            let requests = keys.map(|key| Request::write("UNLINK", &key)).collect();
            self.link().ask(requests).await.into_iter().collect::<Result<Vec<Value>, _>>()?;
        }
        Ok(())
    }

    /// Waits until no client uses a descriptor older than `descriptor`.
    pub(crate) async fn wait_out(&self, descriptor: &Descriptor) {
        let lease = Duration::from_millis(descriptor.lease_ms);
        // Clocks may differ by up to an eighth.
        sleep(lease + lease / 8 + Duration::from_millis(5)).await;
    }

    /// Returns the cached descriptor while it is valid, else reads it.
    async fn known(&self) -> Result<Known, RemoteError> {
        let asked_at = Instant::now();
        let mut cache = self.inner.known.lock().await;
        if let Some(known) = cache.known.as_ref().filter(|known| known.is_good()) {
            return Ok(known.clone());
        }
        // All other tasks wait here: they share the result of one read, also if it fails.
        if let Some((_, error)) = cache.failed.as_ref().filter(|(failed_at, _)| *failed_at >= asked_at) {
            return Err(error.clone());
        }
        match self.read().await {
            Ok(fresh) => {
                cache.known = Some(fresh.clone());
                Ok(fresh)
            }
            Err(error) => {
                cache.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Reads the descriptor from the server.
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

    /// The text under the filter's name; empty if there is none. Never read from a replica, which may be
    /// stale.
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

/// Does the error mean that no server answers?
fn is_unreachable(error: Option<&RemoteError>) -> bool {
    matches!(error, Some(RemoteError::Patience { .. } | RemoteError::Connect { .. }))
}

/// The results for the items in one generation.
fn collect(
    generation: &Generation,
    jobs: &[Job],
    items: usize,
    replies: impl Iterator<Item = Result<Value, RemoteError>>,
) -> Insertions {
    let (mut inserted, mut error) = (vec![Inserted::NotReady; items], None);
    for (job, reply) in jobs.iter().zip(replies) {
        let reply = reply.map_err(|error| named(&job.key, error));
        match reply.and_then(|reply| job.inserted(generation, &reply)) {
            Ok(of_job) => {
                if of_job.contains(&Inserted::Full) {
                    error = Some(RemoteError::Full { key: job.shown() });
                }
                job.items.iter().zip(of_job).for_each(|(&index, result)| inserted[index] = result);
            }
            Err(cause) => error = Some(cause),
        }
    }
    Insertions::new(inserted, error)
}

/// The results for the items in all generations. An item counts as inserted only if all generations have it.
fn combine(first: &Generation, done: &[(Generation, Insertions)], items: usize) -> Insertions {
    let error = done.iter().find_map(|(_, inserted)| inserted.error()).cloned();
    let result = |index: usize| {
        let all = || done.iter().filter_map(|(_, inserted)| inserted.as_slice().get(index).copied());
        if all().any(|inserted| inserted == Inserted::NotReady) {
            Inserted::NotReady
        } else if all().any(|inserted| inserted == Inserted::Full) {
            Inserted::Full
        } else {
            // The generation that served at the beginning decides whether the item is new.
            let knows = done.iter().find(|(generation, _)| generation == first);
            let knows = knows.and_then(|(_, inserted)| inserted.as_slice().get(index).copied());
            knows.or_else(|| all().next()).unwrap_or(Inserted::NotReady)
        }
    };
    Insertions::new((0..items).map(result).collect(), error)
}
