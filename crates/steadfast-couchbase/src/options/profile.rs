//! Sets of options with a name.

use std::time::Duration;

use super::ClusterOptions;

/// A set of options for a kind of environment (SDK RFC 0074).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// A developer's machine that reaches its cluster over the internet: 20 s for
    /// key-value operations and connecting, 2 minutes for all else. Not for
    /// production, where such timeouts only hide an outage.
    WanDevelopment,
}

impl ClusterOptions {
    /// Applies a profile. Options that are set afterwards replace its own. In a
    /// connection string, `profile=wan_development` is applied before the other
    /// options.
    ///
    /// ```
    /// use std::time::Duration;
    /// use steadfast_couchbase::options::{ClusterOptions, Profile};
    ///
    /// let options = ClusterOptions::new().profile(Profile::WanDevelopment);
    /// assert_eq!(options.kv_timeout, Duration::from_secs(20));
    /// ```
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.apply_profile(profile);
        self
    }

    pub(crate) fn apply_profile(&mut self, profile: Profile) {
        match profile {
            Profile::WanDevelopment => {
                let (short, long) = (Duration::from_secs(20), Duration::from_secs(120));
                self.connect_timeout = short;
                self.kv_timeout = short;
                self.kv_durable_timeout = short;
                self.query_timeout = long;
                self.analytics_timeout = long;
                self.search_timeout = long;
                self.view_timeout = long;
                self.management_timeout = long;
            }
        }
    }
}
