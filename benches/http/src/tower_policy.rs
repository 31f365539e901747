//! A policy for tower's own retry, as its documentation has it: with a budget.

use std::future;
use std::sync::Arc;

use http::{Request, Response};
use tower::retry::Policy;
use tower::retry::budget::{Budget, TpsBudget};

#[derive(Clone, Default)]
pub(crate) struct UnlessServerFails {
    budget: Arc<TpsBudget>,
}

impl<B: Clone, R, E> Policy<Request<B>, Response<R>, E> for UnlessServerFails {
    type Future = future::Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<B>,
        result: &mut Result<Response<R>, E>,
    ) -> Option<Self::Future> {
        match result {
            Ok(answer) if !answer.status().is_server_error() => {
                self.budget.deposit();
                None
            }
            Ok(_) | Err(_) => self.budget.withdraw().then(|| future::ready(())),
        }
    }

    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        Some(request.clone())
    }
}
