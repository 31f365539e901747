mod retries;
mod shedding;
