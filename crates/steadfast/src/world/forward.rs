//! Methods of worlds that pass on to another world.

/// Implements the methods of a [`World`](super::World) by an inner one's.
macro_rules! forward {
    ($self:ident => $inner:expr) => {
        fn now(&$self) -> std::time::Instant {
            $inner.now()
        }

        fn roll(&$self) -> $crate::world::Roll {
            $inner.roll()
        }

        fn observe(&$self, event: &$crate::event::RetryEvent<'_>) {
            $inner.observe(event);
        }

        fn block(&$self, delay: std::time::Duration) {
            $inner.block(delay);
        }
    };
}

pub(super) use forward;
