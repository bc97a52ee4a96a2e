//! Options: GetConfig and SetConfig.

use std::collections::BTreeMap;

use serde::ser::{Serialize, Serializer};

use super::call::Call;
use super::error::ApiError;
use super::response::Results;
use super::{Api, HandlerResult};
use crate::engine::{Config, OPTION_BYTES_MAX};
use crate::protocol::{body, long_list};

pub async fn options(api: Api, call: Call) -> HandlerResult {
    api.now(&call.envelope().await?)?;
    let config = api.engine.options().await?;
    let _permit = long_list::of_options(config).await?;
    Ok(Results::new(&OptionsView(config.all())))
}

/// Options with their values. These are parsed while they are serialized, so a long list of them delays no request.
struct OptionsView(BTreeMap<String, String>);

impl Serialize for OptionsView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let options = self.0.iter();
        serializer.collect_map(options.map(|(option, value)| (option, body::stored(value))))
    }
}

pub async fn option(api: Api, call: Call) -> HandlerResult {
    let option = call.name_up_to("option", OPTION_BYTES_MAX)?;
    api.now(&call.envelope().await?)?;
    match api.engine.options().await?.get(option) {
        Some(value) => Ok(Results::new(&body::stored(&value))),
        None => Err(ApiError::NoSuchOption {
            option: option.to_owned(),
        }),
    }
}

pub async fn set_option(api: Api, call: Call) -> HandlerResult {
    let (option, envelope) = (
        call.name_up_to("option", OPTION_BYTES_MAX)?,
        call.envelope().await?,
    );
    let (now, data) = (api.now(&envelope)?, envelope.data()?);
    let value = data.get();
    Config::check_sizes(option, value)?;
    let unset = value == "null";
    api.engine
        .configure(option, (!unset).then(|| value.to_owned()), now)
        .await?;
    Ok(Results::new(&data))
}

pub async fn unset_option(api: Api, call: Call) -> HandlerResult {
    let option = call.name_up_to("option", OPTION_BYTES_MAX)?;
    let now = api.now(&call.envelope().await?)?;
    api.engine.configure(option, None, now).await?;
    Ok(Results::new(&true))
}
