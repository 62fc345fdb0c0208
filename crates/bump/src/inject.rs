//! Panics at chosen points in the middle of a bump's work, for the fuzz target that shows what
//! becomes of them (record 0068). Without the feature `inject`, which no program has, a point is
//! nothing.

/// A place where a panic may be injected: wherever books, messages or randomness are touched.
#[cfg(not(feature = "inject"))]
#[inline(always)]
pub(crate) fn point() {}

#[cfg(feature = "inject")]
pub use armed::{arm, disarm, point};

#[cfg(feature = "inject")]
mod armed {
    use std::cell::Cell;

    thread_local! {
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// The point after `points` more of them panics.
    pub fn arm(points: u32) {
        LEFT.set(Some(points));
    }

    /// No point panics any more; how many were left, if none did.
    pub fn disarm() -> Option<u32> {
        LEFT.take()
    }

    /// Panics if it is this one's turn.
    #[track_caller]
    pub fn point() {
        match LEFT.get() {
            None => {}
            Some(0) => {
                LEFT.set(None);
                std::panic::panic_any("injected");
            }
            Some(left) => LEFT.set(Some(left - 1)),
        }
    }
}
