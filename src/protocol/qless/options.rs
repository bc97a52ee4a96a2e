//! Options: GetConfig and SetConfig.

use std::collections::BTreeMap;

use super::call::Call;
use super::error::ApiError;
use super::response::Results;
use super::{Api, Outcome};
use crate::engine::OPTION_BYTES_MAX;
use crate::protocol::body;

pub async fn options(api: Api, call: Call) -> Outcome {
    api.now(&call.envelope()?)?;
    let all = api.engine.options().await?.all();
    let all: BTreeMap<_, _> = all
        .iter()
        .map(|(option, value)| (option, body::stored(value)))
        .collect();
    Ok(Results::new(&all))
}

pub async fn option(api: Api, call: Call) -> Outcome {
    let option = call.name_up_to("option", OPTION_BYTES_MAX)?;
    api.now(&call.envelope()?)?;
    match api.engine.options().await?.get(option) {
        Some(value) => Ok(Results::new(&body::stored(&value))),
        None => Err(ApiError::NoSuchOption {
            option: option.to_owned(),
        }),
    }
}

pub async fn set_option(api: Api, call: Call) -> Outcome {
    let (option, envelope) = (
        call.name_up_to("option", OPTION_BYTES_MAX)?,
        call.envelope()?,
    );
    let (now, data) = (api.now(&envelope)?, envelope.data()?);
    let value = data.get();
    let unset = value == "null";
    api.engine
        .configure(option, (!unset).then(|| value.to_owned()), now)
        .await?;
    Ok(Results::new(&data))
}

pub async fn unset_option(api: Api, call: Call) -> Outcome {
    let option = call.name_up_to("option", OPTION_BYTES_MAX)?;
    let now = api.now(&call.envelope()?)?;
    api.engine.configure(option, None, now).await?;
    Ok(Results::new(&true))
}
