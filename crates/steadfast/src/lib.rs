//! Retry handling that is safe, bounded and explained.
