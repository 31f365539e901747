//! Commands that set a connection up.

use bytes::BytesMut;
use steadfast_wire::error_map::ErrorMapRequest;
use steadfast_wire::hello::FeatureSet;
use steadfast_wire::sasl::Mechanism;
use steadfast_wire::{Encode, Frame, Status};

use super::response::KvResponse;
use super::session::{Flow, Handled, Session};
use crate::cluster::node::Membership;
use crate::sasl::{self, SaslResponse};
use crate::topology::config::NO_VERSION;

impl Session {
    /// Grants what is asked for and offered. Asking again starts over.
    pub(super) fn hello(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let asked = FeatureSet::decode(frame.value()).map_err(|_| Status::InvalidArguments)?;
        self.features = asked.intersection(self.shared.offered_features());
        let mut granted = BytesMut::new();
        for feature in self.features.iter() {
            feature
                .append_to(&mut granted)
                .map_err(|_| Status::InternalError)?;
        }
        self.done(frame, KvResponse::with_value(&granted), out)
    }

    pub(super) fn sasl_list(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let list = Mechanism::write_list(&Mechanism::ALL);
        self.done(frame, KvResponse::with_value(list.as_bytes()), out)
    }

    pub(super) fn sasl_auth(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        // A new authentication ends the old one at once.
        self.user = None;
        self.sasl = None;
        let mechanism = Mechanism::from_name(frame.key()).ok_or(Status::AuthError)?;
        let step = sasl::start(mechanism, frame.value(), &self.shared.users);
        self.answer_step(frame, step, out)
    }

    pub(super) fn sasl_step(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let server = self.sasl.take().ok_or(Status::InvalidArguments)?;
        let step = sasl::step(server, frame.value());
        self.answer_step(frame, step, out)
    }

    fn answer_step(&mut self, frame: &Frame, step: SaslResponse, out: &mut BytesMut) -> Handled {
        match step {
            SaslResponse::Continue(challenge, server) => {
                self.sasl = Some(server);
                let response = KvResponse::with_value(&challenge);
                self.writer()
                    .write(frame, Status::AuthContinue, response, out);
                Ok(Flow::Done)
            }
            SaslResponse::Done(user, message) => {
                // The user before may have had rights that this one lacks.
                self.bucket = self
                    .bucket
                    .take()
                    .filter(|bucket| user.rights.may_open(&bucket.name));
                self.user = Some(user);
                self.done(frame, KvResponse::with_value(&message), out)
            }
            SaslResponse::Refused => {
                tracing::info!(connection = self.id, "authentication refused");
                Err(Status::AuthError)
            }
        }
    }

    /// Opens a bucket: 0x24 for one that is not this user's, whether it exists or not; 0x01 for
    /// one that the user may open and this node does not have, or not yet (D4).
    pub(super) fn select_bucket(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let name = std::str::from_utf8(frame.key()).map_err(|_| Status::InvalidArguments)?;
        let user = self.user.as_ref().ok_or(Status::AccessError)?;
        if !user.rights.may_open(name) {
            return Err(Status::AccessError);
        }
        let bucket = self.shared.bucket(name).ok_or(Status::KeyNotFound)?;
        if self.node.membership() != Membership::Member {
            return Err(Status::KeyNotFound);
        }
        self.bucket = Some(bucket);
        self.known_map = NO_VERSION;
        self.done(frame, KvResponse::default(), out)
    }

    pub(super) fn get_error_map(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let asked = ErrorMapRequest::decode(frame.value()).map_err(|_| Status::InvalidArguments)?;
        let map = self
            .shared
            .error_map
            .to_json(asked.version)
            .ok_or(Status::InvalidArguments)?;
        self.done(frame, KvResponse::with_json(&map), out)
    }
}
