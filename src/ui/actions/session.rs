//! Sign-in and sign-out. Their handlers (`http/login.rs`) write their own audit entries, because no user is
//! authenticated before the sign-in or after the sign-out.

use super::{Action, Target};
use crate::auth::Role;
use crate::ui::urls::LOGIN;

pub static SIGN_IN: Action = Action::new("sign_in", LOGIN, Role::Viewer, |_| Target::none());

pub static SIGN_OUT: Action =
    Action::new("sign_out", "/ui/logout", Role::Viewer, |_| Target::none());
