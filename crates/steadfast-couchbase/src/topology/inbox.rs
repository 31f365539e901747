//! What a tracker is told between its rounds.
//!
//! News of the same kind replace each other, so a server that floods its client
//! with notifications fills no queue.

use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Inbox {
    asked: Mutex<bool>,
    news: Notify,
}

impl Inbox {
    /// Somebody has reason to believe that there is a newer config.
    pub(crate) fn ask_for_config(&self) {
        *self.asked.lock() = true;
        self.news.notify_one();
    }

    /// Completes when somebody asked. Dropping the future loses nothing.
    pub(crate) async fn asked(&self) {
        loop {
            if std::mem::take(&mut *self.asked.lock()) {
                return;
            }
            self.news.notified().await;
        }
    }
}
