//! What befalls the service, and when.

use std::fmt;

use serde::Serialize;

/// Spells of trouble, one after the other.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Weather {
    name: &'static str,
    spells: Vec<Spell>,
}

/// A trouble, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spell {
    /// When it begins, in seconds.
    #[serde(rename = "from_s")]
    pub from: f64,
    /// When it ends.
    #[serde(rename = "until_s")]
    pub until: f64,
    /// What it is.
    pub trouble: Trouble,
}

/// What can befall a service.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Trouble {
    /// Nobody listens: connections are refused, and no byte leaves.
    Refusing,
    /// Requests arrive, and nothing ever comes back.
    Silent,
    /// This share of the requests is worked on, and answered with an error.
    Failing {
        /// From 0 to 1.
        share: f64,
    },
    /// Everything takes so many times as long.
    Slow {
        /// At least 1.
        factor: f64,
    },
    /// Requests are let in at this share of what the service could do; the others are told to
    /// come back later.
    Throttling {
        /// From 0 to 1.
        share: f64,
        /// How much later, in seconds, if the service says.
        #[serde(rename = "hint_s")]
        hint: Option<f64>,
    },
}

impl Weather {
    /// Nothing happens.
    pub fn calm() -> Self {
        Self {
            name: "calm",
            spells: Vec::new(),
        }
    }

    /// Nobody listens for twenty seconds.
    pub fn outage() -> Self {
        Self::calm()
            .named("outage")
            .with(20.0, 40.0, Trouble::Refusing)
    }

    /// Nobody answers for twenty seconds.
    pub fn silence() -> Self {
        Self::calm()
            .named("silence")
            .with(20.0, 40.0, Trouble::Silent)
    }

    /// A third of the strength for twenty seconds.
    pub fn brownout() -> Self {
        Self::calm()
            .named("brownout")
            .with(20.0, 40.0, Trouble::Slow { factor: 3.0 })
    }

    /// A second in which nobody listens.
    pub fn blip() -> Self {
        Self::calm()
            .named("blip")
            .with(20.0, 21.0, Trouble::Refusing)
    }

    /// Three of ten requests fail, for forty seconds.
    pub fn errors() -> Self {
        Self::calm()
            .named("errors")
            .with(20.0, 60.0, Trouble::Failing { share: 0.3 })
    }

    /// Four tenths of what the service could do are let in, for twenty seconds; the others are
    /// told to come back after two.
    pub fn throttling() -> Self {
        let trouble = Trouble::Throttling {
            share: 0.4,
            hint: Some(2.0),
        };
        Self::calm().named("throttling").with(20.0, 40.0, trouble)
    }

    /// All that have a name.
    pub fn all() -> Vec<Self> {
        vec![
            Self::calm(),
            Self::blip(),
            Self::outage(),
            Self::silence(),
            Self::brownout(),
            Self::errors(),
            Self::throttling(),
        ]
    }

    /// The same with a trouble more. Where two overlap, the first holds.
    #[must_use]
    pub fn with(mut self, from: f64, until: f64, trouble: Trouble) -> Self {
        self.spells.push(Spell {
            from,
            until,
            trouble,
        });
        self
    }

    /// The name, for those that have one.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The troubles.
    pub fn spells(&self) -> &[Spell] {
        &self.spells
    }

    /// What is the matter at a time.
    pub(crate) fn at(&self, seconds: f64) -> Option<Trouble> {
        let spell = self.spells.iter().find(|spell| spell.contains(seconds))?;
        Some(spell.trouble)
    }

    /// When all is over.
    pub(crate) fn end(&self) -> f64 {
        self.spells
            .iter()
            .map(|spell| spell.until)
            .fold(0.0, f64::max)
    }

    fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }
}

impl Spell {
    pub(crate) fn contains(&self, seconds: f64) -> bool {
        (self.from..self.until).contains(&seconds)
    }
}

impl fmt::Display for Weather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.spells.is_empty() {
            return f.write_str("nothing happens");
        }
        for (at, spell) in self.spells.iter().enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            let Spell {
                from,
                until,
                trouble,
            } = spell;
            write!(f, "{separator}{trouble}, from {from} s to {until} s")?;
        }
        Ok(())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refusing => f.write_str("connections are refused"),
            Self::Silent => f.write_str("nothing is answered"),
            Self::Failing { share } => write!(f, "{:.0} % of the requests fail", share * 100.0),
            Self::Slow { factor } => write!(f, "everything takes {factor} times as long"),
            Self::Throttling { share, hint } => {
                write!(f, "{:.0} % of the capacity are let in", share * 100.0)?;
                match hint {
                    Some(hint) => write!(f, ", the others told to come back after {hint} s"),
                    None => f.write_str(", the others told to come back later"),
                }
            }
        }
    }
}
