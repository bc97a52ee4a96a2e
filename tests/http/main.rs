//! The server as its clients meet it: the real program, over real HTTP, held to the table of the
//! qless interface and to the examples of the document it comes from.

#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;

#[cfg(test)]
mod add;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod clock;
#[cfg(test)]
mod command;
#[cfg(test)]
mod complete;
#[cfg(test)]
mod config;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod crowd;
#[cfg(test)]
mod depends;
#[cfg(test)]
mod envelope;
#[cfg(test)]
mod fail;
#[cfg(test)]
mod get;
#[cfg(test)]
mod heartbeat;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod meta;
#[cfg(test)]
mod names;
#[cfg(test)]
mod order;
#[cfg(test)]
mod priority;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod seed;
#[cfg(test)]
mod stats;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod workers;
