//! Checks that every added job is completed exactly once.

use std::collections::HashMap;

use super::Result;

/// The state of a job.
#[derive(Clone, Copy, Default)]
struct Entry {
    added: bool,
    completed: bool,
}

#[derive(Default)]
pub struct Ledger(HashMap<u128, Entry>);

impl Ledger {
    /// Records that a job was added. Another connection can have recorded its completion before.
    pub fn added(&mut self, id: &str) -> Result<()> {
        let entry = self.entry(id)?;
        if std::mem::replace(&mut entry.added, true) {
            return Err(format!("ID {id} was used twice").into());
        }
        Ok(())
    }

    pub fn completed(&mut self, id: &str) -> Result<()> {
        let entry = self.entry(id)?;
        if std::mem::replace(&mut entry.completed, true) {
            return Err(format!("job {id} was completed twice").into());
        }
        Ok(())
    }

    /// Checks at the end that all jobs are completed.
    pub fn close(&self) -> Result<()> {
        match self
            .0
            .iter()
            .find(|(_, entry)| !(entry.added && entry.completed))
        {
            Some((id, Entry { added: true, .. })) => Err(format!("job {id:032x} was lost").into()),
            Some((id, _)) => Err(format!("job {id:032x} was completed but never added").into()),
            None => Ok(()),
        }
    }

    fn entry(&mut self, id: &str) -> Result<&mut Entry> {
        let number =
            u128::from_str_radix(id, 16).map_err(|_| format!("not a hexadecimal ID: {id:?}"))?;
        Ok(self.0.entry(number).or_default())
    }
}
