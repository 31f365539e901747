//! Facts about an operation's last attempt, for its error and its reports.
//!
//! Every operation that waits for its next attempt keeps them, and thousands may
//! wait. So details that only failures have are boxed, and the response is not
//! kept: its frame would keep the whole receive buffer alive.

use std::sync::Arc;
use std::time::Duration;

use steadfast_wire::frame_info::ResponseFrameInfo;
use steadfast_wire::{ErrorBody, Frame, Status};

use crate::error::KvContext;
use crate::kv::connection::Connection;
use crate::observe::Dispatch;
use crate::server_text::{bounded, one_line};

/// The last attempt.
#[derive(Default)]
pub(super) struct LastAttempt {
    pub(super) connection: Option<Arc<Connection>>,
    pub(super) opaque: Option<u32>,
    pub(super) status: Option<Status>,
    details: Option<Box<Details>>,
}

/// Details that only some failed attempts have.
#[derive(Default)]
struct Details {
    body: Option<ErrorBody>,
    server_duration: Option<Duration>,
    /// The path that failed, as an index into the user's list.
    path: Option<usize>,
    /// Text to add to the kind of the error.
    note: Option<String>,
}

impl LastAttempt {
    /// Starts another attempt, which a connection accepted under this opaque.
    #[inline]
    pub(super) fn begin(&mut self, opaque: u32) {
        self.opaque = Some(opaque);
        self.status = None;
        if self.details.is_some() {
            self.details = None;
        }
    }

    /// Records a response other than success.
    #[cold]
    pub(super) fn record(&mut self, response: &Frame) {
        if let Some(duration) = server_duration(response) {
            self.details.get_or_insert_default().server_duration = Some(duration);
        }
        // The body of this status is a config, not an explanation.
        if response.status() != Status::NotMyVbucket
            && let Ok(Some(mut body)) = ErrorBody::of(response)
        {
            for text in [&mut body.context, &mut body.reference] {
                *text = text.take().as_deref().and_then(one_line);
            }
            self.details.get_or_insert_default().body = Some(body);
        }
    }

    #[cold]
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.details.get_or_insert_default().note = Some(note.into());
    }

    #[cold]
    pub(super) fn at_path(&mut self, index: usize) {
        self.details.get_or_insert_default().path = Some(index);
    }

    pub(super) fn noted(&self) -> Option<String> {
        self.details.as_ref()?.note.clone()
    }

    pub(super) fn server_duration(&self) -> Option<Duration> {
        self.details.as_ref()?.server_duration
    }

    /// Describes the attempt for its span. A success has a response.
    #[cold]
    pub(super) fn dispatch(&self, response: Option<&Frame>) -> Dispatch {
        let status = response.map(Frame::status).or(self.status);
        let connection = self.connection.as_ref();
        Dispatch {
            node: connection.map(|connection| connection.peer.clone()),
            remote: connection.and_then(|connection| connection.remote),
            connection: connection.map(|connection| connection.id.clone()),
            id: self.opaque.map(|opaque| format!("{opaque:#x}")),
            status: status.map(|status| format!("{:#06x}", status.code())),
            server_duration: match response {
                Some(response) => server_duration(response),
                None => self.server_duration(),
            },
        }
    }

    pub(super) fn context(&self) -> KvContext {
        let details = self.details.as_deref();
        let body = details.and_then(|details| details.body.as_ref());
        let connection = self.connection.as_ref();
        let map = connection.and_then(|connection| connection.error_map.as_deref());
        let definition = self.status.and_then(|status| map?.get(status));
        KvContext {
            status: self.status,
            opaque: self.opaque,
            error_map_name: definition.map(|it| bounded(&it.name)),
            error_map_description: definition.map(|it| bounded(&it.description)),
            error_map_attributes: definition.map(|it| it.attributes),
            reference: body.and_then(|body| body.reference.clone()),
            server_text: body.and_then(|body| body.context.clone()),
            dispatched_to: connection.map(|it| it.peer.clone()),
            dispatched_from: connection.map(|it| it.local.clone()),
            path_index: details.and_then(|details| details.path),
            server_duration: self.server_duration(),
            connection: connection.map(Arc::downgrade).unwrap_or_default(),
        }
    }
}

/// The time that the server reports for an operation.
pub(crate) fn server_duration(response: &Frame) -> Option<Duration> {
    response.response_frame_infos().find_map(|info| match info {
        Ok(ResponseFrameInfo::ServerDuration(duration)) => Some(duration.duration()),
        Ok(_) | Err(_) => None,
    })
}
