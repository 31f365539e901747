//! The macro that declares a struct of options.
//!
//! An option is a field, a default, a setter, and a sentence of documentation. The
//! macro takes the four side by side, so that none is forgotten or contradicts the
//! others.

/// Declares a struct of options. Each line begins with how the option is set:
/// `plain` as its type, `into` as anything that becomes it, `own` by a method
/// that is written by hand.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $Options:ident {
            $( $(#[doc = $doc:literal])+ $how:ident $name:ident: $type:ty = $default:expr; )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone)]
        #[non_exhaustive]
        pub struct $Options {
            $( $(#[doc = $doc])+ pub $name: $type, )*
        }

        impl Default for $Options {
            fn default() -> Self {
                Self { $( $name: $default, )* }
            }
        }

        impl $Options {
            /// The defaults.
            pub fn new() -> Self {
                Self::default()
            }

            $( $crate::options::settings::setter! {
                $(#[doc = $doc])+ $how $name: $type
            } )*
        }

        impl std::fmt::Debug for $Options {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct(stringify!($Options));
                $( $crate::options::settings::show! { shown self $how $name } )*
                shown.finish_non_exhaustive()
            }
        }
    };
}

macro_rules! setter {
    ($(#[doc = $doc:literal])+ plain $name:ident: $type:ty) => {
        $(#[doc = $doc])+
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = $name;
            self
        }
    };
    ($(#[doc = $doc:literal])+ into $name:ident: $type:ty) => {
        $(#[doc = $doc])+
        #[must_use]
        pub fn $name(mut self, $name: impl Into<$type>) -> Self {
            self.$name = $name.into();
            self
        }
    };
    ($(#[doc = $doc:literal])+ own $name:ident: $type:ty) => {};
}

macro_rules! show {
    ($shown:ident $self:ident own $name:ident) => {};
    ($shown:ident $self:ident $how:ident $name:ident) => {
        $shown.field(stringify!($name), &$self.$name);
    };
}

pub(crate) use {setter, settings, show};
