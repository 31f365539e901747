//! Sends cluster maps: on request, with "not my vbucket", and pushed.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use steadfast_wire::config::ConfigVersion;
use steadfast_wire::{Datatype, Feature, Frame, FrameBuilder, ServerOpcode, Status};

use super::response::KvResponse;
use super::session::{Handled, Session};
use crate::topology::config::Config;

impl Session {
    /// The map of the selected bucket, or of the cluster; nothing if the client has it already.
    pub(super) fn get_cluster_config(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let config = self.current_config();
        if !frame.extras().is_empty() {
            let known =
                ConfigVersion::decode(frame.extras()).map_err(|_| Status::InvalidArguments)?;
            self.known_map = self.known_map.max(known);
            if known >= config.version {
                return self.done(frame, KvResponse::default(), out);
            }
        }
        self.known_map = config.version;
        let (value, datatype) = self.config_body(&config);
        self.done(
            frame,
            KvResponse {
                datatype,
                value: &value,
                ..KvResponse::default()
            },
            out,
        )
    }

    /// Says that a vbucket is elsewhere, with the map that says where, unless the client has it.
    pub(super) fn refuse_vbucket(&mut self, frame: &Frame, out: &mut BytesMut) {
        let config = self.current_config();
        let dedupe = self
            .features
            .contains(Feature::DedupeNotMyVbucketClustermap);
        if dedupe && self.known_map >= config.version {
            self.writer()
                .write(frame, Status::NotMyVbucket, KvResponse::default(), out);
            return;
        }
        self.known_map = config.version;
        let (value, datatype) = self.config_body(&config);
        let response = KvResponse {
            datatype,
            value: &value,
            ..KvResponse::default()
        };
        self.writer()
            .write(frame, Status::NotMyVbucket, response, out);
    }

    /// Tells a client that asked for it about a map that it does not have yet.
    pub(super) fn push_config(&mut self, out: &mut BytesMut) {
        let brief = self
            .features
            .contains(Feature::ClustermapChangeNotificationBrief);
        let full = self
            .features
            .contains(Feature::ClustermapChangeNotification);
        let wants = (brief || full) && self.features.contains(Feature::Duplex);
        let config = self.current_config();
        if !wants || self.user.is_none() || self.known_map >= config.version {
            return;
        }
        let (value, datatype) = if brief {
            // The client will ask for the map, and is not known to have it before.
            (Bytes::new(), Datatype::RAW)
        } else {
            self.known_map = config.version;
            self.config_body(&config)
        };
        let name = self.bucket.as_ref().map_or("", |bucket| &bucket.name);
        let pushed = FrameBuilder::server_request(ServerOpcode::ClustermapChangeNotification)
            .datatype(datatype)
            .extras(config.version)
            .key(name)
            .value(value)
            .encode(out);
        if let Err(error) = pushed {
            tracing::error!(%error, "cannot encode a cluster map");
        }
    }

    fn current_config(&self) -> Arc<Config> {
        match &self.bucket {
            Some(bucket) => bucket.config(),
            None => self.shared.global_config(),
        }
    }

    fn config_body(&self, config: &Config) -> (Bytes, Datatype) {
        let Some(body) = config.body(self.node.id) else {
            return (Bytes::new(), Datatype::RAW);
        };
        if self.features.contains(Feature::SnappyEverywhere) {
            (body.snappy().clone(), Datatype::JSON | Datatype::SNAPPY)
        } else {
            (body.json().clone(), Datatype::JSON)
        }
    }
}
