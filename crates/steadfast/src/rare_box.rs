//! A box for values that are rarely there.

use std::fmt;

/// A value on the heap that is rarely there, and costs one pointer and one
/// comparison when it is not.
///
/// It is `Option<Box<T>>` but for its destructor: that of the option is too
/// large to be inlined, so that every first-try success would pay for calls
/// which find nothing to do.
pub(crate) struct RareBox<T>(Option<Box<T>>);

impl<T> RareBox<T> {
    pub(crate) const NONE: Self = Self(None);

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    pub(crate) fn set(&mut self, value: T) {
        self.0 = Some(Box::new(value));
    }

    #[cold]
    pub(crate) fn get_or_default(&mut self) -> &mut T
    where
        T: Default,
    {
        self.0.get_or_insert_default()
    }
}

impl<T> Drop for RareBox<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.is_some() {
            bury(self.0.take());
        }
    }
}

#[cold]
#[inline(never)]
fn bury<T>(value: Option<Box<T>>) {
    drop(value);
}

impl<T> Default for RareBox<T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T: Clone> Clone for RareBox<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: fmt::Debug> fmt::Debug for RareBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
