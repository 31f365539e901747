//! The request that the audit asks for.

use std::env::var;

use reqwest::{Client, Method, Request};

/// Makes the request.
///
/// # Errors
/// If a variable is missing or invalid, or the file cannot be read.
pub fn request(client: &Client) -> anyhow::Result<Request> {
    let method: Method = var("AUDIT_METHOD")?.parse()?;
    let mut request = client.request(method.clone(), var("AUDIT_URL")?);
    if method != Method::GET {
        request = request.body(std::fs::read(var("AUDIT_FILE")?)?);
    }
    match var("AUDIT_KEY")?.as_str() {
        "" => {}
        key => request = request.header("Idempotency-Key", key),
    }
    Ok(request.build()?)
}
