//! The next generation of a filter, built beside the one that serves and put in its place in one step.
//!
//! ```text
//!           claim      announce        commit        retire     remove
//! serving   1 ──────── 1 ───────────── 2 ─────────── 2 ──────── 2
//! also      2 (aside)  2 (building)    1 (retiring)  1 (aside)  ·
//! writers   1          1 and 2         2 and 1       2          2
//! builder   makes 2    waits, fills 2  waits         waits      removes 1
//! ```
//!
//! Every client uses what it knows for one lease at most, and checks that after the fact: an answer or an addition that took
//! longer stands only if a new look shows nothing else. `docs/remote.md` has the argument that no *absent* is wrong meanwhile.

use std::time::{Duration, Instant};

use redis::Value;

use crate::descriptor::{Descriptor, Generation, Role, random};
use crate::plain::PlainImage;
use crate::plan::FilterPlan;
use crate::route::Place;
use crate::shard::{
    CHUNK_BYTES, Sentinel, beside, creation, is_ready, named, ones, readiness, sending, sentinel,
};
use crate::sharded::ShardedFilter;
use crate::{Access, RemoteError, Request};

/// Bytes of requests that are made at once.
const BYTES_AT_ONCE: u64 = 32 << 20;
/// How often an image is sent again that somebody removed on its way.
const SENDINGS: u32 = 3;

/// How a generation is built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BuildOptions {
    /// After how long a builder that says nothing is taken for dead, so that another may begin. Default 60 s.
    pub expiry: Duration,
    /// Up to this many bytes, the shards of a plain filter are filled in memory and sent whole, which costs servers far less than
    /// bit by bit. Default 256 MiB; 0: never.
    pub image_bytes: u64,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self { expiry: Duration::from_secs(60), image_bytes: 256 << 20 }
    }
}

/// A generation that is being built: add all items, then [`commit`](Self::commit).
///
/// Everything that was added to the filter before the build began must be in what is added here; what others add
/// meanwhile, they add to both. A build that is dropped stays until the next one begins or the filter is removed.
#[derive(Debug)]
pub struct Build {
    filter: ShardedFilter,
    options: BuildOptions,
    token: u64,
    generation: Generation,
    /// As it is on the server, by what we did there last.
    descriptor: Descriptor,
    /// What we are about to make of it; kept, so that a second try is the same.
    intended: Option<Descriptor>,
    renewed_at: Instant,
    images: Option<Vec<PlainImage>>,
    /// Has it been put in place?
    is_serving: bool,
}

impl Build {
    /// The first generation of a filter that is not there.
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

    /// The next generation of a filter that is there.
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
        // Long enough for what is waited for in one go.
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
            // Nobody asks these shards. If they cannot be removed now, the next builder finds them.
            if build.give_up().await.is_err() {
                unlock(filter, token).await;
            }
            return Err(error);
        }
        Ok(build)
    }

    /// Claimed: the number is ours, and whoever had a build going has lost it.
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
        // Noted before there is a shard of it, so that the next builder finds them if we die.
        let generation = self.generation.clone();
        self.step(|descriptor| descriptor.also.push((Role::Aside, generation))).await?;
        self.create_shards().await?;
        self.announce().await
    }

    /// Removes the shards of generations that are set aside, and then what is known of them.
    async fn clear_aside(&mut self) -> Result<(), RemoteError> {
        let aside: Vec<Generation> = self.descriptor.of_role(Role::Aside).cloned().collect();
        if aside.is_empty() {
            return Ok(());
        }
        // Until then some still add to them, and would make strings again that are gone.
        self.filter.wait_out(&self.descriptor).await;
        for generation in &aside {
            self.filter.remove_shards(generation).await?;
        }
        self.step(|descriptor| descriptor.also.retain(|(role, _)| *role != Role::Aside)).await
    }

    /// Makes the empty shards, before anybody hears of them. Their keys are nobody else's, and never were.
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
        self.put_in(Sentinel::Made).await
    }

    async fn create(&mut self, requests: Vec<Request>) -> Result<(), RemoteError> {
        self.renew().await?;
        for made in self.filter.link().ask(requests).await {
            match made {
                Ok(_) => {}
                // Made by a first attempt whose answer was lost: the key is ours alone.
                Err(RemoteError::Refused { text, .. }) if text.contains("exists") => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells everybody to add to it, and waits until all have heard.
    async fn announce(&mut self) -> Result<(), RemoteError> {
        let number = self.generation.number;
        let is_left = self.descriptor.also.iter().any(|(_, generation)| generation.number != number);
        if is_left {
            // Somebody died between putting a generation in place and the end of the other's last lease.
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
        // Also where nothing serves: somebody may know one that was removed, or lost, a moment ago.
        self.filter.wait_out(&self.descriptor).await;
        Ok(())
    }

    /// The number of the generation that is being built.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation.number
    }

    /// Adds items to it; all are in, or it is an error.
    ///
    /// # Errors
    /// A shard is missing, full, or out of reach; somebody else took over.
    pub async fn add<I: AsRef<[u8]>>(&mut self, items: &[I]) -> Result<(), RemoteError> {
        if self.renewed_at.elapsed() > self.options.expiry / 3 {
            self.renew().await?;
        }
        let Some(images) = &mut self.images else {
            return self.filter.add_to_one(&self.generation, items).await;
        };
        let shards = self.generation.measures.shards;
        for item in items {
            let place = Place::of(&self.generation.key, item.as_ref());
            if let Some(image) = images.get_mut(place.shard(shards) as usize) {
                image.insert(place);
            }
        }
        Ok(())
    }

    /// Puts the generation in the place of the one that serves, waits until nobody asks that any more, and removes it.
    ///
    /// If it fails, or is dropped before it ends, it may be tried again, or [given up](Self::abort) as long as the generation does
    /// not serve.
    ///
    /// # Errors
    /// A shard is missing or out of reach, what is known of the filter was removed, or somebody else took over.
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
            // Until then some still ask the one that served, so everybody still adds to it.
            self.filter.wait_out(&self.descriptor).await;
            self.step(Descriptor::set_aside).await?;
        }
        self.clear_aside().await?;
        self.step(|descriptor| descriptor.builder = None).await?;
        unlock(&self.filter, self.token).await;
        Ok(self.generation.number)
    }

    /// Gives it up, and removes what there is of it; of a first generation, all that is known of the filter.
    ///
    /// # Errors
    /// It serves already, somebody else took over, or a server is out of reach.
    pub async fn abort(mut self) -> Result<(), RemoteError> {
        self.give_up().await
    }

    async fn give_up(&mut self) -> Result<(), RemoteError> {
        // First what nobody looks at: a server that is full takes no other change until then.
        self.filter.remove_images(&self.generation).await?;
        match self.forget().await {
            // Whoever took over removes what the descriptor lists of ours. What it does not list nobody knows of.
            Err(error @ RemoteError::Overtaken { .. }) => {
                if !self.is_listed().await? {
                    self.remove_unknown().await?;
                }
                Err(error)
            }
            // Nothing is left to be forgotten.
            Err(RemoteError::Vanished { .. }) => {
                self.remove_unknown().await?;
                unlock(&self.filter, self.token).await;
                Ok(())
            }
            forgotten => forgotten,
        }
    }

    /// Removes the shards, of which no descriptor says anything.
    async fn remove_unknown(&self) -> Result<(), RemoteError> {
        // Until then some still add to them, and would make strings again that are gone.
        self.filter.wait_out(&self.descriptor).await;
        self.filter.remove_shards(&self.generation).await
    }

    /// Removes it from the servers, and from what everybody knows.
    async fn forget(&mut self) -> Result<(), RemoteError> {
        self.settle().await?;
        if self.is_serving {
            return Err(RemoteError::Exists { name: self.filter.name().to_string() });
        }
        let number = self.generation.number;
        let is_ours = |generation: &Generation| generation.number == number;
        if self.descriptor.of_role(Role::Building).any(is_ours) {
            self.step(Descriptor::set_aside).await?;
            // Until then some still add to it, and would make strings again that are gone.
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

    /// Finds out what became of a change whose answer nobody heard.
    async fn settle(&mut self) -> Result<(), RemoteError> {
        let Some(intended) = self.intended.take() else { return Ok(()) };
        // Another stamp: if it is not done by now, it never will be.
        let stamped = self.descriptor.changed(|_| {})?;
        let (name, from) = (self.filter.name().as_bytes(), self.descriptor.encode());
        if self.filter.link().swap(name, Some(&from), Some(&stamped.encode())).await? {
            self.descriptor = stamped;
        } else if self.filter.read_bytes().await? == intended.encode() {
            self.is_serving = intended.serving.as_ref() == Some(&self.generation);
            self.descriptor = intended;
        } else {
            return Err(self.beaten().await);
        }
        Ok(())
    }

    /// Sends what was filled in memory, many shards at once. If that ends half way, it can begin again: the images are kept.
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
                let key = beside(&self.generation.shard_key(self.filter.name(), shard));
                let key = String::from_utf8_lossy(&key).into_owned();
                return Err(RemoteError::Shard { key, what: "it was removed on its way".into() });
            }
        }
        self.images = None;
        Ok(())
    }

    /// Sends some images: beside the shard, then into it, since others have added to that meanwhile. Which were lost on
    /// their way.
    async fn send_some(&self, shards: &[u32]) -> Result<Vec<u32>, RemoteError> {
        let images = shards.iter().filter_map(|&shard| {
            let key = self.generation.shard_key(self.filter.name(), shard);
            let image = self.images.as_ref()?.get(shard as usize)?;
            Some((shard, image, beside(&key), key))
        });
        let images: Vec<_> = images.collect();
        let sent = images.iter().flat_map(|(_, image, beside, _)| sending(image, beside));
        self.ask_all(sent.collect()).await?;
        // Nothing is written beside from now on: what is whole when it is counted, and there in the end, was whole all the time.
        let joined = images.iter().flat_map(|(_, _, beside, key)| {
            let join = redis::cmd("BITOP").arg("OR").arg(key).arg(key).arg(beside).take();
            let count = redis::cmd("BITCOUNT").arg(beside).take();
            [Request::whole(join, key, Access::Write), Request::whole(count, beside, Access::ReadLatest)]
        });
        let joined = self.ask_all(joined.collect()).await?;
        let removed = images.iter().map(|(_, _, beside, _)| Request::write("UNLINK", beside));
        let removed = self.ask_all(removed.collect()).await?;
        let replies = joined.chunks(2).zip(removed);
        let lost = images.iter().zip(replies).filter(|((_, image, ..), (joined, removed))| {
            let is_whole =
                matches!(joined, [_, Value::Int(count)] if u64::try_from(*count) == Ok(ones(image)));
            !is_whole || *removed != Value::Int(1)
        });
        Ok(lost.map(|((shard, ..), _)| *shard).collect())
    }

    /// What servers answer, if none refuses.
    async fn ask_all(&self, requests: Vec<Request>) -> Result<Vec<Value>, RemoteError> {
        self.filter.link().ask(requests).await.into_iter().collect()
    }

    /// Marks every shard as complete, and makes sure that it is there.
    async fn complete(&self) -> Result<(), RemoteError> {
        self.put_in(Sentinel::Complete).await?;
        let look = |key: &[u8], shard| Some(readiness(&self.generation, key, shard));
        self.ask_shards(look, |key, reply| match is_ready(&self.generation, &reply) {
            true => Ok(()),
            false => {
                let key = String::from_utf8_lossy(key).into_owned();
                Err(RemoteError::Shard { key, what: "not all of it is there".into() })
            }
        })
        .await
    }

    async fn put_in(&self, which: Sentinel) -> Result<(), RemoteError> {
        self.ask_shards(|key, shard| sentinel(&self.generation, key, shard, which), |_, _| Ok(())).await
    }

    /// Asks every shard something, many at once, and looks at what each answers.
    async fn ask_shards(
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

    /// Changes what everybody knows, if nobody else did.
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
            return Err(self.beaten().await);
        }
        self.intended = None;
        self.descriptor = to;
        Ok(())
    }

    /// Why the descriptor is not what we left there.
    async fn beaten(&self) -> RemoteError {
        let generation = self.generation.number;
        match self.filter.read_bytes().await {
            Ok(bytes) if bytes.is_empty() => {
                RemoteError::Vanished { name: self.filter.name().to_string(), generation }
            }
            _ => RemoteError::Overtaken { generation },
        }
    }

    /// Was anybody here while we had no lock?
    async fn still_ours(&self) -> Result<(), RemoteError> {
        let bytes = self.filter.read_bytes().await?;
        let mut known = [Some(&self.descriptor), self.intended.as_ref()].into_iter().flatten();
        if known.any(|known| known.encode() == bytes) {
            return Ok(());
        }
        unlock(&self.filter, self.token).await;
        Err(self.beaten().await)
    }

    /// Does what everybody knows have our generation in it? If nobody can read that, mayhap it does.
    async fn is_listed(&self) -> Result<bool, RemoteError> {
        let bytes = self.filter.read_bytes().await?;
        Ok(Descriptor::decode(&bytes).map_or(!bytes.is_empty(), |known| {
            known.generations().any(|generation| *generation == self.generation)
        }))
    }

    /// Says that the builder lives.
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

/// Locks it for somebody who waits for some leases and does little else. Whose lock it is.
pub(crate) async fn lock_for_a_while(filter: &ShardedFilter, known: &Descriptor) -> Result<u64, RemoteError> {
    let (token, lease) = (random()?, Duration::from_millis(known.lease_ms));
    lock(filter, token, BuildOptions::default().expiry.max(lease * 4)).await?;
    Ok(token)
}

/// Removes what a dead builder left behind. `false`: there was nothing.
pub(crate) async fn bury(filter: &ShardedFilter) -> Result<bool, RemoteError> {
    let token = lock_for_a_while(filter, &filter.look().await?.descriptor).await?;
    let buried = bury_locked(filter, token).await;
    unlock(filter, token).await;
    buried
}

async fn bury_locked(filter: &ShardedFilter, token: u64) -> Result<bool, RemoteError> {
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
    // As long as somebody may ask what served before, everybody adds to it.
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

/// Removes a descriptor in which there is no generation, once nobody uses what was known before it.
async fn remove_if_empty(filter: &ShardedFilter, descriptor: &Descriptor) -> Result<(), RemoteError> {
    if descriptor.generations().next().is_some() {
        return Ok(());
    }
    filter.wait_out(descriptor).await;
    // Somebody may have made a new one by now, which is right.
    filter.link().swap(filter.name().as_bytes(), Some(&descriptor.encode()), None).await?;
    Ok(())
}

/// Images of all shards, if they fit.
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

/// Who holds the lock; empty: nobody.
async fn holder(filter: &ShardedFilter) -> Result<Vec<u8>, RemoteError> {
    let key = filter.name().lock_key();
    let latest = redis::cmd("GETRANGE").arg(&key).arg(0).arg(63).take();
    match filter.link().ask_one(Request::whole(latest, &key, Access::ReadLatest)).await? {
        Value::BulkString(held) => Ok(held),
        _ => Ok(Vec::new()),
    }
}

/// One builder at a time.
pub(crate) async fn lock(filter: &ShardedFilter, token: u64, expiry: Duration) -> Result<(), RemoteError> {
    let key = filter.name().lock_key();
    let request = Request::write("SET", &key).arg(word(token)).arg("NX").arg("PX").arg(millis(expiry));
    if filter.link().ask_one(request).await? != Value::Nil {
        return Ok(());
    }
    // Our own first attempt, whose answer was lost?
    if holder(filter).await? == word(token) {
        return Ok(());
    }
    let left = filter.link().ask_one(Request::read("PTTL", &key)).await?;
    let expires_ms = if let Value::Int(left) = left { u64::try_from(left).unwrap_or(0) } else { 0 };
    Err(RemoteError::Building { expires_ms })
}

/// Lets the next builder begin. If that fails, it waits a little longer.
pub(crate) async fn unlock(filter: &ShardedFilter, token: u64) {
    let _ = filter.link().swap(&filter.name().lock_key(), Some(&word(token)), None).await;
}
