//! SIGKILL of anything at any moment of a pod's life. The moments and the victims come from a seed that is printed:
//! SEED=… repeats them, ROUNDS=… makes it longer.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use tokio::sync::watch;

use super::cycle::{self, MOMENTS, Moment};
use crate::{alone, victims};

fn from_env(name: &str) -> Result<Option<u64>> {
    std::env::var(name).ok().map(|value| value.parse().with_context(|| format!("{name}={value}"))).transpose()
}

/// One of so many, for this seed, round and question.
fn choice(of: usize, question: (u64, usize, &str)) -> usize {
    let mut hasher = DefaultHasher::new();
    question.hash(&mut hasher);
    (hasher.finish() % of as u64) as usize
}

async fn kill_at_random(rounds: usize) -> Result<()> {
    let seed = match from_env("SEED")? {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64,
    };
    let rounds = from_env("ROUNDS")?.map_or(rounds, |rounds| rounds as usize);
    println!("{rounds} rounds with SEED={seed}");
    alone(async |namespace| {
        let victims = victims::all(&namespace);
        for round in 0..rounds {
            let victim = &victims[choice(victims.len(), (seed, round, "victim"))];
            let moment = MOMENTS[choice(MOMENTS.len(), (seed, round, "moment"))];
            let (sender, mut now) = watch::channel(Moment::Beginning);
            let begun = Instant::now();
            let strike = async {
                now.wait_for(|now| *now >= moment).await.context("the cycle has failed")?;
                victim.kill().await
            };
            let lived = async {
                let lived = cycle::run(&namespace, round, &sender).await;
                drop(sender); // nobody need wait for a moment that won't come
                lived
            };
            let told = || format!("round {round} of SEED={seed}: {} killed at {moment:?}", victim.name());
            let (lived, struck) = tokio::join!(lived, strike);
            lived.with_context(told)?;
            struck.with_context(told)?;
            println!("{}: {:.1?}", told(), begun.elapsed());
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn nothing_is_lost_doubled_or_rerun_whatever_is_killed_whenever() -> Result<()> {
    kill_at_random(6).await
}

#[tokio::test]
#[ignore = "soak"]
async fn nothing_is_lost_doubled_or_rerun_in_many_rounds_of_kills() -> Result<()> {
    kill_at_random(60).await
}
