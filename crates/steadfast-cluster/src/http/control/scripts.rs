//! Scripts.

use super::{ControlError, HttpRequest, body};
use crate::cluster::TestCluster;
use crate::http::script::{Script, ScriptSpec};

/// Adds the script in the body.
pub(super) fn add(request: &HttpRequest, cluster: &TestCluster) -> Result<u64, ControlError> {
    let spec: ScriptSpec = body(request)?;
    let script =
        Script::try_from(spec).map_err(|error| ControlError::Invalid(error.to_string()))?;
    Ok(cluster.scripts().add(script))
}
