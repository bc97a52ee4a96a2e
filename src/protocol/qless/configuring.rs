//! Options: GetConfig and SetConfig.

use std::collections::BTreeMap;

use super::answer::{Answer, json_text};
use super::call::Call;
use super::refusal::Refusal;
use super::{Front, Outcome};
use crate::engine::OPTION_BYTES_MAX;

pub async fn options(front: Front, call: Call) -> Outcome {
    front.now(&call.envelope()?)?;
    let all = front.engine.options().await?.all();
    let all: BTreeMap<_, _> = all
        .iter()
        .map(|(option, value)| (option, json_text(value)))
        .collect();
    Ok(Answer::new(&all))
}

pub async fn option(front: Front, call: Call) -> Outcome {
    let option = call.name_up_to("option", OPTION_BYTES_MAX)?;
    front.now(&call.envelope()?)?;
    match front.engine.options().await?.get(option) {
        Some(value) => Ok(Answer::new(&json_text(&value))),
        None => Err(Refusal::NoSuchOption {
            option: option.to_owned(),
        }),
    }
}

pub async fn set_option(front: Front, call: Call) -> Outcome {
    let (option, envelope) = (
        call.name_up_to("option", OPTION_BYTES_MAX)?,
        call.envelope()?,
    );
    let (now, data) = (front.now(&envelope)?, envelope.data()?);
    let value = data.get();
    let unset = value == "null";
    front
        .engine
        .configure(option, (!unset).then(|| value.to_owned()), now)
        .await?;
    Ok(Answer::new(&data))
}

pub async fn unset_option(front: Front, call: Call) -> Outcome {
    let option = call.name_up_to("option", OPTION_BYTES_MAX)?;
    let now = front.now(&call.envelope()?)?;
    front.engine.configure(option, None, now).await?;
    Ok(Answer::new(&true))
}
