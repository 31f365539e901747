//! What is known of an operation's last attempt, for its error.
//!
//! Kept by every operation that waits for its next attempt, of which there may be
//! a great many. So what only failures have is in a box, and of an answer only
//! what it says: the frame itself would keep the whole receive buffer alive.

use std::sync::Arc;
use std::time::Duration;

use steadfast_wire::frame_info::ResponseFrameInfo;
use steadfast_wire::{ErrorBody, Frame, Status};

use super::connection::Connection;
use crate::error::KvContext;

/// The last attempt.
#[derive(Default)]
pub(super) struct Last {
    pub(super) connection: Option<Arc<Connection>>,
    pub(super) opaque: Option<u32>,
    status: Option<Status>,
    said: Option<Box<Said>>,
}

/// What few attempts have, of those that did not succeed.
#[derive(Default)]
struct Said {
    body: Option<ErrorBody>,
    server_duration: Option<Duration>,
    /// The path at which it failed, by the place that the user gave it.
    path: Option<usize>,
    /// What there is to say beyond the kind of the error.
    note: Option<String>,
}

impl Last {
    /// Another attempt was taken by a connection, under this opaque.
    #[inline]
    pub(super) fn begin(&mut self, opaque: u32) {
        self.opaque = Some(opaque);
        self.status = None;
        if self.said.is_some() {
            self.said = None;
        }
    }

    /// It was answered so, and that is not success.
    #[cold]
    pub(super) fn answered(&mut self, answer: &Frame) {
        self.status = Some(answer.status());
        if let Some(duration) = server_duration(answer) {
            self.said.get_or_insert_default().server_duration = Some(duration);
        }
        // With this status comes a config, which is long and no explanation.
        if answer.status() != Status::NotMyVbucket
            && let Ok(Some(body)) = ErrorBody::of(answer)
        {
            self.said.get_or_insert_default().body = Some(body);
        }
    }

    #[cold]
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.said.get_or_insert_default().note = Some(note.into());
    }

    #[cold]
    pub(super) fn at_path(&mut self, index: usize) {
        self.said.get_or_insert_default().path = Some(index);
    }

    pub(super) fn take_note(&mut self) -> Option<String> {
        self.said.as_mut()?.note.take()
    }

    pub(super) fn server_duration(&self) -> Option<Duration> {
        self.said.as_ref()?.server_duration
    }

    pub(super) fn context(&self) -> KvContext {
        let said = self.said.as_deref();
        let body = said.and_then(|said| said.body.as_ref());
        let connection = self.connection.as_ref();
        let map = connection.and_then(|connection| connection.error_map.as_deref());
        let definition = self.status.and_then(|status| map?.get(status));
        KvContext {
            status: self.status,
            opaque: self.opaque,
            error_map_name: definition.map(|it| it.name.clone()),
            error_map_description: definition.map(|it| it.description.clone()),
            error_map_attributes: definition.map(|it| it.attributes),
            reference: body.and_then(|body| body.reference.clone()),
            server_text: body.and_then(|body| body.context.clone()),
            dispatched_to: connection.map(|it| it.peer.clone()),
            dispatched_from: connection.map(|it| it.local.clone()),
            path_index: said.and_then(|said| said.path),
        }
    }
}

/// How long the server says that it took.
pub(crate) fn server_duration(answer: &Frame) -> Option<Duration> {
    answer.response_frame_infos().find_map(|info| match info {
        Ok(ResponseFrameInfo::ServerDuration(duration)) => Some(duration.duration()),
        Ok(_) | Err(_) => None,
    })
}
