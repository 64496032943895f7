//! Memory, mapped files and limits of the system: what is lost is one pair, for a time, with a reason.
