//! A macro for sets of codes that the other side may extend.

/// Defines an enum of known codes with a variant that keeps every unknown one.
///
/// The documentation of a variant is also what `description` says of it at run time, so that an
/// error message and the docs cannot drift apart.
///
/// The number inside `Unknown` has a private constructor: `from_code` is the only way in, so a
/// known code can never hide there and equality means equality of codes.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $repr:ident, unknown $unknown:ident {
            $( $(#[doc = $doc:literal])+ $variant:ident = $code:literal $text:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $(
                $(#[doc = $doc])+
                #[doc = concat!("\n\n`", stringify!($code), "`, `", $text, "`.")]
                $variant,
            )*
            /// A code that this version has no name for, kept as it came.
            Unknown($unknown),
        }

        #[doc = concat!("A code that no named variant of [`", stringify!($name), "`] stands for.")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $unknown($repr);

        impl $name {
            /// Every code with a name, in ascending order.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),*];

            /// The variant for a code; never fails, because unknown codes are kept.
            #[inline]
            pub const fn from_code(code: $repr) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    other => Self::Unknown($unknown(other)),
                }
            }

            /// The number on the wire.
            #[inline]
            pub const fn code(self) -> $repr {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Unknown(unknown) => unknown.0,
                }
            }

            /// The name, unless the code is unknown.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some($text),)*
                    Self::Unknown(_) => None,
                }
            }

            /// Returns the meaning in a sentence, unless the code is unknown.
            pub const fn description(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => Some(concat!($($doc),+).trim_ascii()),)*
                    Self::Unknown(_) => None,
                }
            }
        }

        impl $unknown {
            /// The number on the wire.
            pub const fn code(self) -> $repr {
                self.0
            }
        }

        impl From<$repr> for $name {
            #[inline]
            fn from(code: $repr) -> Self {
                Self::from_code(code)
            }
        }

        impl From<$name> for $repr {
            #[inline]
            fn from(value: $name) -> Self {
                value.code()
            }
        }

        /// The name and the number, or just the number of an unknown code.
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => write!(f, "{name} ({:#04x})", self.code()),
                    None => write!(f, "unknown ({:#04x})", self.code()),
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl std::fmt::Debug for $unknown {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:#04x}", self.0)
            }
        }
    };
}

pub(crate) use open_enum;

#[cfg(test)]
mod tests {
    use crate::{Feature, Opcode, ServerOpcode, Status};

    macro_rules! holds_for {
        ($name:ident, $repr:ident) => {
            let mut last = None;
            for known in $name::KNOWN {
                assert_eq!($name::from_code(known.code()), *known);
                assert!(known.name().is_some());
                assert!(last < Some(known.code()), "{known} is out of order");
                last = Some(known.code());
            }
            for code in 0..=$repr::MAX {
                let value = $name::from_code(code);
                assert_eq!(value.code(), code);
                assert_eq!(matches!(value, $name::Unknown(_)), value.name().is_none());
                assert_eq!($name::KNOWN.contains(&value), value.name().is_some());
            }
        };
    }

    #[test]
    fn every_code_round_trips() {
        holds_for!(Status, u16);
        holds_for!(Feature, u16);
        holds_for!(Opcode, u8);
        holds_for!(ServerOpcode, u8);
    }

    #[test]
    fn a_code_is_described_by_its_documentation() {
        assert_eq!(
            Status::Locked.description(),
            Some("The document is locked.")
        );
        assert_eq!(Status::from_code(0xfff0).description(), None);
    }

    #[test]
    fn a_code_prints_its_name_and_its_number() {
        assert_eq!(Status::Locked.to_string(), "LOCKED (0x09)");
        assert_eq!(Status::from_code(0xfff0).to_string(), "unknown (0xfff0)");
        assert_eq!(format!("{:?}", Opcode::Get), "GET (0x00)");
    }
}
