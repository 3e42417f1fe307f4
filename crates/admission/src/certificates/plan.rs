//! What is to be done next for the certificates: a pure function of what the watches showed.

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;

use super::authority::Authority;

/// The Secret of the authority, as far as it matters.
pub struct Stored {
    pub resource_version: String,
    pub authority: Result<Authority, String>,
}

impl Stored {
    pub fn of(secret: Secret) -> Self {
        Self {
            resource_version: secret.metadata.resource_version.unwrap_or_default(),
            authority: Authority::read(&secret.data.unwrap_or_default()),
        }
    }
}

/// The webhook configuration, as far as it matters.
pub struct Configuration {
    pub uid: String,
    pub webhooks: Vec<Trust>,
}

/// What one webhook of the configuration trusts.
pub struct Trust {
    pub webhook: String,
    pub bundle: Vec<u8>,
}

impl Configuration {
    pub fn of(configuration: MutatingWebhookConfiguration) -> Self {
        let webhooks = configuration.webhooks.unwrap_or_default().into_iter().map(|webhook| Trust {
            webhook: webhook.name,
            bundle: webhook.client_config.ca_bundle.unwrap_or_default().0,
        });
        Self { uid: configuration.metadata.uid.unwrap_or_default(), webhooks: webhooks.collect() }
    }
}

/// The certificate that this process serves with.
pub struct InUse {
    pub authority: Authority,
    pub renew_at: Timestamp,
}

#[derive(PartialEq, Eq)]
pub enum Next<'a> {
    /// Without a configuration nobody calls, and nothing owns the Secret.
    AwaitConfiguration,
    /// There is no Secret. It goes when the configuration goes, so that an uninstalled chart leaves nothing behind.
    Create {
        owner: &'a str,
    },
    /// The authority nears its end (`after`), or the Secret is of no use, for this reason.
    Replace {
        resource_version: &'a str,
        after: Result<&'a Authority, &'a str>,
    },
    /// These webhooks do not trust the authority yet.
    Trust {
        authority: &'a Authority,
        webhooks: Vec<&'a str>,
    },
    /// A certificate that all trust can be served.
    Sign {
        authority: &'a Authority,
    },
    Rest {
        until: Timestamp,
    },
}

pub fn next<'a>(
    stored: Option<&'a Stored>,
    configuration: Option<&'a Configuration>,
    in_use: Option<&InUse>,
    now: Timestamp,
) -> Next<'a> {
    let Some(configuration) = configuration else {
        return Next::AwaitConfiguration;
    };
    let Some(Stored { resource_version, authority }) = stored else {
        return Next::Create { owner: &configuration.uid };
    };
    let authority = match authority {
        Ok(authority) if now < authority.renew_at() => authority,
        Ok(ending) => return Next::Replace { resource_version, after: Ok(ending) },
        Err(reason) => return Next::Replace { resource_version, after: Err(reason) },
    };
    let bundle = authority.bundle();
    let outdated = configuration.webhooks.iter().filter(|trust| trust.bundle != bundle);
    let webhooks: Vec<_> = outdated.map(|trust| &*trust.webhook).collect();
    if !webhooks.is_empty() {
        return Next::Trust { authority, webhooks };
    }
    match in_use {
        Some(in_use) if in_use.authority == *authority && now < in_use.renew_at => {
            Next::Rest { until: in_use.renew_at.min(authority.renew_at()) }
        }
        _ => Next::Sign { authority },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::ToSpan;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn stored(authority: Result<Authority, String>) -> Stored {
        Stored { resource_version: "7".to_owned(), authority }
    }

    fn trusting(bundles: &[&[u8]]) -> Configuration {
        let webhooks =
            bundles.iter().enumerate().map(|(i, bundle)| Trust { webhook: format!("w{i}"), bundle: bundle.to_vec() });
        Configuration { uid: "c1".to_owned(), webhooks: webhooks.collect() }
    }

    #[test]
    fn from_nothing_to_a_certificate_and_through_a_renewal() {
        assert!(next(None, None, None, now()) == Next::AwaitConfiguration);
        assert!(next(None, Some(&trusting(&[b""])), None, now()) == Next::Create { owner: "c1" });

        let authority = Authority::generate(now()).unwrap();
        let (secret, bundle) = (stored(Ok(authority.clone())), authority.bundle());
        let fresh = trusting(&[b"", &bundle, b"another"]);
        let expected = Next::Trust { authority: &authority, webhooks: vec!["w0", "w2"] };
        assert!(next(Some(&secret), Some(&fresh), None, now()) == expected, "only where it differs");

        let trusted = trusting(&[&bundle, &bundle]);
        assert!(next(Some(&secret), Some(&trusted), None, now()) == Next::Sign { authority: &authority });
        let soon = now() + 24.hours();
        let in_use = InUse { authority: authority.clone(), renew_at: soon };
        assert!(next(Some(&secret), Some(&trusted), Some(&in_use), now()) == Next::Rest { until: soon });
        assert!(next(Some(&secret), Some(&trusted), Some(&in_use), soon) == Next::Sign { authority: &authority });

        let ends = Next::Replace { resource_version: "7", after: Ok(&authority) };
        assert!(next(Some(&secret), Some(&trusted), Some(&in_use), authority.renew_at()) == ends);
        let renewed = authority.renewed(now()).unwrap();
        let secret = stored(Ok(renewed.clone()));
        let trust_first = Next::Trust { authority: &renewed, webhooks: vec!["w0", "w1"] };
        assert!(next(Some(&secret), Some(&trusted), Some(&in_use), now()) == trust_first, "before it is served");
        let trusted = trusting(&[&renewed.bundle()]);
        assert!(next(Some(&secret), Some(&trusted), Some(&in_use), now()) == Next::Sign { authority: &renewed });
    }

    #[test]
    fn a_secret_of_no_use_is_replaced_and_a_wiped_bundle_restored() {
        let (garbage, configuration) = (stored(Err("it has no tls.crt".to_owned())), trusting(&[b""]));
        let replace = Next::Replace { resource_version: "7", after: Err("it has no tls.crt") };
        assert!(next(Some(&garbage), Some(&configuration), None, now()) == replace);

        let authority = Authority::generate(now()).unwrap();
        let in_use = InUse { authority: authority.clone(), renew_at: now() + 24.hours() };
        let (secret, wiped) = (stored(Ok(authority.clone())), trusting(&[b""]));
        let restore = Next::Trust { authority: &authority, webhooks: vec!["w0"] };
        assert!(next(Some(&secret), Some(&wiped), Some(&in_use), now()) == restore);
    }
}
