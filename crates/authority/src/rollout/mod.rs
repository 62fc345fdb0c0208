//! From reports of hosts to a decision: what would break if a group of hosts enforced, and whether
//! a group that enforces on trial may go on (records 0088 and 0089).
//!
//! Reading order: `report` (what a host tells), `forecast` (what follows from reports), `told` (the
//! site's record beside the reports), `trial` (a group enforces).

pub mod forecast;
pub mod report;
pub mod told;
pub mod trial;
