//! Requests and pages together.
