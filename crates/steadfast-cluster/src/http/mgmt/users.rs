//! Users and their roles.

use serde_json::{Value, json};

use super::super::{HttpRequest, HttpResponse, HttpSession};
use super::refused;
use crate::clock::iso_8601;
use crate::users::roles::{self, Role};
use crate::users::{Profile, User};

/// The shortest password that a real server accepts.
const MIN_PASSWORD: usize = 6;

pub(super) fn who_am_i(user: &User) -> HttpResponse {
    HttpResponse::json(200, &describe(user))
}

pub(super) fn roles() -> HttpResponse {
    HttpResponse::json(200, &roles::all())
}

pub(super) fn list(session: &HttpSession) -> HttpResponse {
    let users = &session.shared.users;
    let names = users.names();
    let found = names.iter().filter_map(|name| users.get(name));
    let found = found.filter(|user| !user.is_built_in());
    HttpResponse::json(200, &found.map(|user| describe(&user)).collect())
}

pub(super) fn one(
    method: &str,
    name: &str,
    request: &HttpRequest,
    session: &HttpSession,
) -> HttpResponse {
    let users = &session.shared.users;
    if users.get(name).is_some_and(|user| user.is_built_in()) {
        // The administrator is not a local user, and must not lock everybody out.
        return match method {
            "PUT" => {
                let sentence = format!("{name} is the built-in administrator");
                refused(400, [("name", sentence)])
            }
            _ => unknown(),
        };
    }
    match method {
        "GET" => match users.get(name) {
            Some(user) => HttpResponse::json(200, &describe(&user)),
            None => unknown(),
        },
        "PUT" => put(name, request, session),
        "DELETE" if users.remove(name) => HttpResponse::json(200, &json!("")),
        "DELETE" => unknown(),
        _ => HttpResponse::text(405, "Method Not Allowed"),
    }
}

pub(super) fn change_password(
    request: &HttpRequest,
    session: &HttpSession,
    user: &User,
) -> HttpResponse {
    match request.parameter("password") {
        Some(password) if password.len() >= MIN_PASSWORD => {
            let profile = user.profile.clone();
            let users = &session.shared.users;
            users.put_with_profile(&user.name, password, user.rights.clone(), profile);
            HttpResponse::text(200, "")
        }
        _ => too_short(),
    }
}

/// Makes a user, or gives one other roles; a user who exists keeps the password if there is no
/// new one.
fn put(name: &str, request: &HttpRequest, session: &HttpSession) -> HttpResponse {
    let roles = match Role::parse_list(request.parameter("roles").unwrap_or_default()) {
        Ok(roles) => roles,
        Err(unknown) => return unassignable(&unknown),
    };
    if let Some(role) = roles.iter().find(|role| !session.shared.has_target(role)) {
        return unassignable(&role.to_string());
    }
    if request
        .parameter("groups")
        .is_some_and(|groups| !groups.is_empty())
    {
        return HttpResponse::unsupported("groups of users");
    }
    let users = &session.shared.users;
    let rights = roles::rights(&roles);
    let profile = Profile {
        display_name: request.parameter("name").unwrap_or_default().to_owned(),
        roles: Some(roles.iter().map(Role::to_string).collect()),
    };
    match request.parameter("password") {
        Some(password) if password.len() < MIN_PASSWORD => return too_short(),
        Some(password) => users.put_with_profile(name, password, rights, profile),
        None if users.change(name, rights, profile) => {}
        None => return too_short(),
    }
    HttpResponse::json(200, &json!(""))
}

fn describe(user: &User) -> Value {
    let roles = match &user.profile.roles {
        Some(roles) => roles.iter().filter_map(|role| Role::parse(role)).collect(),
        None => roles::from_rights(&user.rights),
    };
    let roles: Vec<Value> = roles.iter().map(Role::to_json).collect();
    let mut shown = json!({
        "id": user.name,
        "domain": if user.is_built_in() { "admin" } else { "local" },
        "name": user.profile.display_name,
        "roles": roles,
        "groups": [],
        "external_groups": [],
    });
    if !user.is_built_in() {
        shown["password_change_date"] = iso_8601(user.password_changed).into();
    }
    shown
}

fn unassignable(role: &str) -> HttpResponse {
    let sentence = format!(
        "Cannot assign roles to user because the following roles are unknown, malformed or role \
         parameters are undefined: [{role}]"
    );
    refused(400, [("roles", sentence)])
}

fn unknown() -> HttpResponse {
    HttpResponse::json(404, &json!("Unknown user."))
}

fn too_short() -> HttpResponse {
    let sentence = format!("The password must be at least {MIN_PASSWORD} characters long.");
    refused(400, [("password", sentence)])
}
