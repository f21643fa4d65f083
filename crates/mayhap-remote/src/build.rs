//! Builds the next generation of a filter while the present one serves, and swaps it in with one step.
//!
//! ```text
//!           claim      announce        commit        retire     remove
//! serving   1 ──────── 1 ───────────── 2 ─────────── 2 ──────── 2
//! also      2 (aside)  2 (building)    1 (retiring)  1 (aside)  ·
//! writers   1          1 and 2         2 and 1       2          2
//! builder   makes 2    waits, fills 2  waits         waits      removes 1
//! ```
//!
//! Every client uses a descriptor for at most one lease, and checks that afterwards: an answer or an
//! insertion that took longer counts only if a new read of the descriptor shows no change. `docs/remote.md`
//! proves that no *no* is wrong during the swap.

use std::time::{Duration, Instant};

use redis::Value;

use crate::descriptor::{Descriptor, Generation, Role, random};
use crate::plain::PlainImage;
use crate::plan::FilterPlan;
use crate::route::ItemRoute;
use crate::shard::{
    CHUNK_BYTES, Sentinel, creation, image_key, is_ready, named, ones, readiness, sending, sentinel,
};
use crate::sharded::ShardedFilter;
use crate::{Access, RemoteError, Request};

/// The number of bytes per batch of requests.
const BYTES_AT_ONCE: u64 = 32 << 20;
/// How many times an image is sent if it is removed before it is joined to its shard.
const SENDINGS: u32 = 3;

/// Options for building a generation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BuildOptions {
    /// How long a builder may be silent before another may take over. Default 60 s.
    pub expiry: Duration,
    /// If all shards of a plain filter fit in this many bytes, they are filled in memory and sent whole. That
    /// costs the servers far less than single bits. Default 256 MiB; 0 disables.
    pub image_bytes: u64,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self { expiry: Duration::from_secs(60), image_bytes: 256 << 20 }
    }
}

/// A generation that is being built: insert all items, then [`commit`](Self::commit).
///
/// The caller must insert every item that was inserted into the filter before the build began. Items that
/// other clients insert during the build go to both generations. A build that is dropped stays until the next
/// one begins or the filter is removed.
#[derive(Debug)]
pub struct Build {
    filter: ShardedFilter,
    options: BuildOptions,
    token: u64,
    generation: Generation,
    /// The descriptor on the server, as we wrote it last.
    descriptor: Descriptor,
    /// The next descriptor. It is kept so that a retry writes the same one.
    intended: Option<Descriptor>,
    renewed_at: Instant,
    images: Option<Vec<PlainImage>>,
    /// Does this generation serve?
    is_serving: bool,
}

impl Build {
    /// Begins the first generation of a new filter.
    pub(crate) async fn first(
        filter: &ShardedFilter,
        plan: &FilterPlan,
        options: BuildOptions,
    ) -> Result<Self, RemoteError> {
        plan.measure()?;
        let lease_ms = plan.lease_ms()?;
        let bytes = filter.read_bytes().await?;
        let found = match bytes.is_empty() {
            true => {
                Descriptor { stamp: 0, lease_ms, next: 1, builder: None, serving: None, also: Vec::new() }
            }
            false => filter.look().await?.descriptor.as_ref().clone(),
        };
        if found.serving.is_some() {
            return Err(RemoteError::Exists { name: filter.name().to_string() });
        }
        Self::begin(filter, plan, options, found, bytes).await
    }

    /// Begins the next generation of an existing filter.
    pub(crate) async fn next(
        filter: &ShardedFilter,
        plan: &FilterPlan,
        options: BuildOptions,
    ) -> Result<Self, RemoteError> {
        plan.measure()?;
        let known = filter.look().await?;
        if known.descriptor.serving.is_none() {
            return Err(filter.missing());
        }
        let bytes = known.bytes.as_ref().clone();
        Self::begin(filter, plan, options, known.descriptor.as_ref().clone(), bytes).await
    }

    async fn begin(
        filter: &ShardedFilter,
        plan: &FilterPlan,
        mut options: BuildOptions,
        found: Descriptor,
        bytes: Vec<u8>,
    ) -> Result<Self, RemoteError> {
        // Long enough for the longest wait between two renewals.
        options.expiry = options.expiry.max(Duration::from_millis(found.lease_ms * 4));
        let token = random()?;
        let key = mayhap::SecretKey::random().map_err(|_| RemoteError::Randomness)?;
        let generation = Generation::new(found.next, plan.measure()?, key);
        lock(filter, token, options.expiry).await?;
        let images = images(&generation, options.image_bytes);
        let mut build = Self {
            filter: filter.clone(),
            options,
            token,
            generation,
            descriptor: found,
            intended: None,
            renewed_at: Instant::now(),
            images,
            is_serving: false,
        };
        if let Err(error) = build.claim(&bytes).await {
            unlock(filter, token).await;
            return Err(error);
        }
        if let Err(error) = build.make().await {
            // No client uses these shards. If they cannot be removed now, the next builder finds them.
            if build.give_up().await.is_err() {
                unlock(filter, token).await;
            }
            return Err(error);
        }
        Ok(build)
    }

    /// Claims the next generation number. A previous builder loses its build.
    async fn claim(&mut self, bytes: &[u8]) -> Result<(), RemoteError> {
        let claimed = self.descriptor.changed(|descriptor| {
            descriptor.next += 1;
            descriptor.builder = Some(self.token);
        })?;
        let (name, from) = (self.filter.name().as_bytes(), (!bytes.is_empty()).then_some(bytes));
        if !self.filter.link().swap(name, from, Some(&claimed.encode())).await? {
            return Err(RemoteError::Overtaken { generation: self.generation.number });
        }
        self.descriptor = claimed;
        Ok(())
    }

    async fn make(&mut self) -> Result<(), RemoteError> {
        self.clear_aside().await?;
        // Listed before its first shard exists, so that the next builder finds the shards if we die.
        let generation = self.generation.clone();
        self.step(|descriptor| descriptor.also.push((Role::Aside, generation))).await?;
        self.create_shards().await?;
        self.announce().await
    }

    /// Removes the shards of all generations with the role aside, then their entries in the descriptor.
    async fn clear_aside(&mut self) -> Result<(), RemoteError> {
        let aside: Vec<Generation> = self.descriptor.of_role(Role::Aside).cloned().collect();
        if aside.is_empty() {
            return Ok(());
        }
        // Until then some clients still insert into them, and would create removed strings again.
        self.filter.wait_out(&self.descriptor).await;
        for generation in &aside {
            self.filter.remove_shards(generation).await?;
        }
        self.step(|descriptor| descriptor.also.retain(|(role, _)| *role != Role::Aside)).await
    }

    /// Creates the empty shards, before any client knows of them. Their keys are unique to this generation.
    async fn create_shards(&mut self) -> Result<(), RemoteError> {
        let (generation, name) = (self.generation.clone(), self.filter.name().clone());
        let (mut requests, mut bytes) = (Vec::new(), 0);
        for shard in 0..generation.measures.shards {
            let key = generation.shard_key(&name, shard);
            for request in creation(&generation, &key) {
                bytes += generation.measures.plain.map_or(100, |_| CHUNK_BYTES);
                requests.push(request);
                if bytes >= BYTES_AT_ONCE {
                    self.create(std::mem::take(&mut requests)).await?;
                    bytes = 0;
                }
            }
        }
        self.create(requests).await?;
        self.insert_sentinel(Sentinel::Made).await
    }

    async fn create(&mut self, requests: Vec<Request>) -> Result<(), RemoteError> {
        self.renew().await?;
        for made in self.filter.link().ask(requests).await {
            match made {
                Ok(_) => {}
                // Created by a first attempt whose answer was lost: no other client uses this key.
                Err(RemoteError::Refused { text, .. }) if text.contains("exists") => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes all clients insert into this generation, and waits until all of them do.
    async fn announce(&mut self) -> Result<(), RemoteError> {
        let number = self.generation.number;
        let is_left = self.descriptor.also.iter().any(|(_, generation)| generation.number != number);
        if is_left {
            // A builder died after its commit, before the last lease on the previous generation ended.
            self.filter.wait_out(&self.descriptor).await;
        }
        self.step(|descriptor| {
            descriptor.set_aside();
            let ours = descriptor.also.iter_mut().filter(|(_, generation)| generation.number == number);
            ours.for_each(|(role, _)| *role = Role::Building);
        })
        .await?;
        if is_left {
            return self.clear_aside().await;
        }
        // Also if nothing serves: a client may know a generation that was removed or lost a moment ago.
        self.filter.wait_out(&self.descriptor).await;
        Ok(())
    }

    /// The number of this generation.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation.number
    }

    /// Inserts items into this generation. Fails unless all of them are inserted.
    ///
    /// # Errors
    /// A shard is missing, full, or out of reach; or another client took over the build.
    pub async fn insert<I: AsRef<[u8]>>(&mut self, items: &[I]) -> Result<(), RemoteError> {
        if self.renewed_at.elapsed() > self.options.expiry / 3 {
            self.renew().await?;
        }
        let Some(images) = &mut self.images else {
            return self.filter.insert_into_one(&self.generation, items).await;
        };
        let shards = self.generation.measures.shards;
        for item in items {
            let route = ItemRoute::of(&self.generation.key, item.as_ref());
            if let Some(image) = images.get_mut(route.shard(shards) as usize) {
                image.insert(route);
            }
        }
        Ok(())
    }

    /// Makes this generation serve, waits until no client uses the previous one, and removes that. Returns
    /// the number of this generation.
    ///
    /// If this fails, or its future is dropped, it may be called again. Or the build may be
    /// [aborted](Self::abort) while the generation does not serve.
    ///
    /// # Errors
    /// A shard is missing or out of reach, the descriptor was removed, or another client took over the build.
    pub async fn commit(&mut self) -> Result<u64, RemoteError> {
        if !self.is_serving {
            self.renew().await?;
            self.send_images().await?;
            self.complete().await?;
            self.renew().await?;
            let generation = self.generation.clone();
            self.step(|descriptor| {
                let before = descriptor.serving.replace(generation);
                descriptor.also = before.into_iter().map(|before| (Role::Retiring, before)).collect();
            })
            .await?;
            self.is_serving = true;
        }
        if self.descriptor.of_role(Role::Retiring).next().is_some() {
            // Until then some clients still read the previous generation, so all clients still insert into
            // it.
            self.filter.wait_out(&self.descriptor).await;
            self.step(Descriptor::set_aside).await?;
        }
        self.clear_aside().await?;
        self.step(|descriptor| descriptor.builder = None).await?;
        unlock(&self.filter, self.token).await;
        Ok(self.generation.number)
    }

    /// Ends the build and removes its shards. For a first generation, it removes the descriptor as well.
    ///
    /// # Errors
    /// The generation serves already, another client took over the build, or a server is out of reach.
    pub async fn abort(mut self) -> Result<(), RemoteError> {
        self.give_up().await
    }

    async fn give_up(&mut self) -> Result<(), RemoteError> {
        // First the images, which no client reads: a server without free memory accepts no other change until
        // then.
        self.filter.remove_images(&self.generation).await?;
        match self.forget().await {
            // The client that took over removes our shards if the descriptor lists them. If it does not, only
            // we know them.
            Err(error @ RemoteError::Overtaken { .. }) => {
                if !self.is_listed().await? {
                    self.remove_unknown().await?;
                }
                Err(error)
            }
            // The descriptor is gone, so there is no entry to remove.
            Err(RemoteError::Vanished { .. }) => {
                self.remove_unknown().await?;
                unlock(&self.filter, self.token).await;
                Ok(())
            }
            forgotten => forgotten,
        }
    }

    /// Removes the shards, which no descriptor lists.
    async fn remove_unknown(&self) -> Result<(), RemoteError> {
        // Until then some clients still insert into them, and would create removed strings again.
        self.filter.wait_out(&self.descriptor).await;
        self.filter.remove_shards(&self.generation).await
    }

    /// Removes the shards from the servers and the generation from the descriptor.
    async fn forget(&mut self) -> Result<(), RemoteError> {
        self.settle().await?;
        if self.is_serving {
            return Err(RemoteError::Exists { name: self.filter.name().to_string() });
        }
        let number = self.generation.number;
        let is_ours = |generation: &Generation| generation.number == number;
        if self.descriptor.of_role(Role::Building).any(is_ours) {
            self.step(Descriptor::set_aside).await?;
            // Until then some clients still insert into it, and would create removed strings again.
            self.filter.wait_out(&self.descriptor).await;
        }
        self.filter.remove_shards(&self.generation).await?;
        self.step(|descriptor| {
            descriptor.also.retain(|(_, generation)| !is_ours(generation));
            descriptor.builder = None;
        })
        .await?;
        remove_if_empty(&self.filter, &self.descriptor).await?;
        unlock(&self.filter, self.token).await;
        Ok(())
    }

    /// Finds out whether a change took effect if its answer was lost.
    async fn settle(&mut self) -> Result<(), RemoteError> {
        let Some(intended) = self.intended.take() else { return Ok(()) };
        // With a new stamp the lost change can no longer take effect.
        let stamped = self.descriptor.changed(|_| {})?;
        let (name, from) = (self.filter.name().as_bytes(), self.descriptor.encode());
        if self.filter.link().swap(name, Some(&from), Some(&stamped.encode())).await? {
            self.descriptor = stamped;
        } else if self.filter.read_bytes().await? == intended.encode() {
            self.is_serving = intended.serving.as_ref() == Some(&self.generation);
            self.descriptor = intended;
        } else {
            return Err(self.lost_race().await);
        }
        Ok(())
    }

    /// Sends the images, many shards at a time. If this fails, it can start again: the images are kept.
    async fn send_images(&mut self) -> Result<(), RemoteError> {
        let Some(plain) = self.generation.measures.plain.filter(|_| self.images.is_some()) else {
            return Ok(());
        };
        let at_once = usize::try_from((BYTES_AT_ONCE / plain.bytes()).clamp(1, 1024)).unwrap_or(1);
        let shards: Vec<u32> = (0..self.generation.measures.shards).collect();
        for some in shards.chunks(at_once) {
            if self.renewed_at.elapsed() > self.options.expiry / 3 {
                self.renew().await?;
            }
            let mut open = some.to_vec();
            for _ in 0..SENDINGS {
                open = self.send_some(&open).await?;
            }
            if let Some(&shard) = open.first() {
                let key = image_key(&self.generation.shard_key(self.filter.name(), shard));
                let key = String::from_utf8_lossy(&key).into_owned();
                return Err(RemoteError::Shard { key, what: "it was removed while it was sent".into() });
            }
        }
        self.images = None;
        Ok(())
    }

    /// Sends some images: first to a key of their own, then joined to the shard, because other clients have
    /// inserted into the shard by now. Returns the shards whose image was lost before it was joined.
    async fn send_some(&self, shards: &[u32]) -> Result<Vec<u32>, RemoteError> {
        let images = shards.iter().filter_map(|&shard| {
            let key = self.generation.shard_key(self.filter.name(), shard);
            let image = self.images.as_ref()?.get(shard as usize)?;
            Some((shard, image, image_key(&key), key))
        });
        let images: Vec<_> = images.collect();
        let sent = images.iter().flat_map(|(_, image, image_key, _)| sending(image, image_key));
        self.send_all(sent.collect()).await?;
        // From now on the images are not written. One that is complete when counted, and exists at the end,
        // was complete all the time.
        let joined = images.iter().flat_map(|(_, _, image_key, key)| {
            let join = redis::cmd("BITOP").arg("OR").arg(key).arg(key).arg(image_key).take();
            let count = redis::cmd("BITCOUNT").arg(image_key).take();
            [Request::whole(join, key, Access::Write), Request::whole(count, image_key, Access::ReadLatest)]
        });
        let joined = self.send_all(joined.collect()).await?;
        let removed = images.iter().map(|(_, _, image_key, _)| Request::write("UNLINK", image_key));
        let removed = self.send_all(removed.collect()).await?;
        let replies = joined.chunks(2).zip(removed);
        let lost = images.iter().zip(replies).filter(|((_, image, ..), (joined, removed))| {
            let is_whole =
                matches!(joined, [_, Value::Int(count)] if u64::try_from(*count) == Ok(ones(image)));
            !is_whole || *removed != Value::Int(1)
        });
        Ok(lost.map(|((shard, ..), _)| *shard).collect())
    }

    /// Sends requests and returns the replies, or the first error.
    async fn send_all(&self, requests: Vec<Request>) -> Result<Vec<Value>, RemoteError> {
        self.filter.link().ask(requests).await.into_iter().collect()
    }

    /// Marks every shard as complete, and checks that it exists.
    async fn complete(&self) -> Result<(), RemoteError> {
        self.insert_sentinel(Sentinel::Complete).await?;
        let look = |key: &[u8], shard| Some(readiness(&self.generation, key, shard));
        self.send_to_shards(look, |key, reply| match is_ready(&self.generation, &reply) {
            true => Ok(()),
            false => {
                let key = String::from_utf8_lossy(key).into_owned();
                Err(RemoteError::Shard { key, what: "a part of it is missing".into() })
            }
        })
        .await
    }

    async fn insert_sentinel(&self, which: Sentinel) -> Result<(), RemoteError> {
        self.send_to_shards(|key, shard| sentinel(&self.generation, key, shard, which), |_, _| Ok(())).await
    }

    /// Sends a request to every shard, many at a time, and passes each reply to `look`.
    async fn send_to_shards(
        &self,
        request: impl Fn(&[u8], u32) -> Option<Request>,
        look: impl Fn(&[u8], Value) -> Result<(), RemoteError>,
    ) -> Result<(), RemoteError> {
        let shards: Vec<u32> = (0..self.generation.measures.shards).collect();
        for some in shards.chunks(1024) {
            let key = |&shard: &u32| self.generation.shard_key(self.filter.name(), shard);
            let asked = some.iter().map(|shard| (key(shard), *shard));
            let (keys, requests): (Vec<_>, Vec<_>) =
                asked.filter_map(|(key, shard)| request(&key, shard).map(|request| (key, request))).unzip();
            for (reply, key) in self.filter.link().ask(requests).await.into_iter().zip(keys) {
                look(&key, reply.map_err(|error| named(&key, error))?)?;
            }
        }
        Ok(())
    }

    /// Changes the descriptor, unless another client changed it.
    async fn step(&mut self, change: impl FnOnce(&mut Descriptor)) -> Result<(), RemoteError> {
        let to = match self.intended.take() {
            Some(intended) => intended,
            None => self.descriptor.changed(change)?,
        };
        self.intended = Some(to.clone());
        let name = self.filter.name().as_bytes();
        let from = self.descriptor.encode();
        if !self.filter.link().swap(name, Some(&from), Some(&to.encode())).await? {
            self.intended = None;
            return Err(self.lost_race().await);
        }
        self.intended = None;
        self.descriptor = to;
        Ok(())
    }

    /// Returns the reason why the descriptor is not the one we wrote.
    async fn lost_race(&self) -> RemoteError {
        let generation = self.generation.number;
        match self.filter.read_bytes().await {
            Ok(bytes) if bytes.is_empty() => {
                RemoteError::Vanished { name: self.filter.name().to_string(), generation }
            }
            _ => RemoteError::Overtaken { generation },
        }
    }

    /// Fails if another client changed the descriptor while we had no lock.
    async fn still_ours(&self) -> Result<(), RemoteError> {
        let bytes = self.filter.read_bytes().await?;
        let mut known = [Some(&self.descriptor), self.intended.as_ref()].into_iter().flatten();
        if known.any(|known| known.encode() == bytes) {
            return Ok(());
        }
        unlock(&self.filter, self.token).await;
        Err(self.lost_race().await)
    }

    /// Does the descriptor list our generation? If it cannot be decoded, assume that it does.
    async fn is_listed(&self) -> Result<bool, RemoteError> {
        let bytes = self.filter.read_bytes().await?;
        Ok(Descriptor::decode(&bytes).map_or(!bytes.is_empty(), |known| {
            known.generations().any(|generation| *generation == self.generation)
        }))
    }

    /// Renews the lock, which shows that the builder is alive.
    async fn renew(&mut self) -> Result<(), RemoteError> {
        let key = self.filter.name().lock_key();
        let held = holder(&self.filter).await?;
        if held.is_empty() {
            lock(&self.filter, self.token, self.options.expiry).await?;
            self.still_ours().await?;
        } else if held == word(self.token) {
            let request = Request::write("PEXPIRE", &key).arg(millis(self.options.expiry));
            self.filter.link().ask_one(request).await?;
        } else {
            return Err(RemoteError::Overtaken { generation: self.generation.number });
        }
        self.renewed_at = Instant::now();
        Ok(())
    }
}

/// Locks the filter for an operation that only waits for a few leases. Returns the token of the lock.
pub(crate) async fn lock_for_leases(filter: &ShardedFilter, known: &Descriptor) -> Result<u64, RemoteError> {
    let (token, lease) = (random()?, Duration::from_millis(known.lease_ms));
    lock(filter, token, BuildOptions::default().expiry.max(lease * 4)).await?;
    Ok(token)
}

/// Removes the unfinished generations of a dead builder. Returns `false` if there are none.
pub(crate) async fn remove_dead(filter: &ShardedFilter) -> Result<bool, RemoteError> {
    let token = lock_for_leases(filter, &filter.look().await?.descriptor).await?;
    let removed = remove_dead_locked(filter, token).await;
    unlock(filter, token).await;
    removed
}

async fn remove_dead_locked(filter: &ShardedFilter, token: u64) -> Result<bool, RemoteError> {
    let known = filter.look().await?;
    let left: Vec<Generation> =
        known.descriptor.also.iter().map(|(_, generation)| generation.clone()).collect();
    if left.is_empty() {
        return Ok(false);
    }
    let name = filter.name().as_bytes();
    let claimed = known.descriptor.changed(|descriptor| descriptor.builder = Some(token))?;
    let overtaken = RemoteError::Overtaken { generation: known.descriptor.next };
    if !filter.link().swap(name, Some(&known.bytes), Some(&claimed.encode())).await? {
        return Err(overtaken);
    }
    // While a client may still read the previous generation, all clients must insert into it.
    filter.wait_out(&claimed).await;
    let aside = claimed.changed(Descriptor::set_aside)?;
    if !filter.link().swap(name, Some(&claimed.encode()), Some(&aside.encode())).await? {
        return Err(overtaken);
    }
    filter.wait_out(&aside).await;
    for generation in &left {
        filter.remove_shards(generation).await?;
    }
    let cleared = aside.changed(|descriptor| {
        descriptor.also.clear();
        descriptor.builder = None;
    })?;
    if !filter.link().swap(name, Some(&aside.encode()), Some(&cleared.encode())).await? {
        return Err(overtaken);
    }
    remove_if_empty(filter, &cleared).await?;
    Ok(true)
}

/// Removes a descriptor without generations, after all older descriptors have expired in the clients.
async fn remove_if_empty(filter: &ShardedFilter, descriptor: &Descriptor) -> Result<(), RemoteError> {
    if descriptor.generations().next().is_some() {
        return Ok(());
    }
    filter.wait_out(descriptor).await;
    // If another client has created a new filter by now, its descriptor stays.
    filter.link().swap(filter.name().as_bytes(), Some(&descriptor.encode()), None).await?;
    Ok(())
}

/// Images of all shards, if they fit in `limit` bytes.
fn images(generation: &Generation, limit: u64) -> Option<Vec<PlainImage>> {
    let plain = generation.measures.plain?;
    let shards = generation.measures.shards;
    let fits = plain.bytes().checked_mul(u64::from(shards)).is_some_and(|bytes| bytes <= limit);
    fits.then(|| (0..shards).map(|_| PlainImage::new(plain)).collect())
}

fn word(token: u64) -> Vec<u8> {
    format!("{token:016x}").into_bytes()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}

/// The token of the client that holds the lock; empty if there is none.
async fn holder(filter: &ShardedFilter) -> Result<Vec<u8>, RemoteError> {
    let key = filter.name().lock_key();
    let latest = redis::cmd("GETRANGE").arg(&key).arg(0).arg(63).take();
    match filter.link().ask_one(Request::whole(latest, &key, Access::ReadLatest)).await? {
        Value::BulkString(held) => Ok(held),
        _ => Ok(Vec::new()),
    }
}

/// Takes the build lock. Only one client builds at a time.
pub(crate) async fn lock(filter: &ShardedFilter, token: u64, expiry: Duration) -> Result<(), RemoteError> {
    let key = filter.name().lock_key();
    let request = Request::write("SET", &key).arg(word(token)).arg("NX").arg("PX").arg(millis(expiry));
    if filter.link().ask_one(request).await? != Value::Nil {
        return Ok(());
    }
    // Is it our own lock, from a first attempt whose answer was lost?
    if holder(filter).await? == word(token) {
        return Ok(());
    }
    let left = filter.link().ask_one(Request::read("PTTL", &key)).await?;
    let expires_ms = if let Value::Int(left) = left { u64::try_from(left).unwrap_or(0) } else { 0 };
    Err(RemoteError::Building { expires_ms })
}

/// Releases the build lock. If that fails, the next builder waits until the lock expires.
pub(crate) async fn unlock(filter: &ShardedFilter, token: u64) {
    let _ = filter.link().swap(&filter.name().lock_key(), Some(&word(token)), None).await;
}
