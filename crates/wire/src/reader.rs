//! A cursor over bytes that never reads past their end.

use crate::{Error, Field};

/// Reads fields one after the other; every read that would pass the end is [`Error::Truncated`] with the field's name.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    field: Field,
}

impl<'a> Reader<'a> {
    /// A reader over `bytes`; errors name `field`.
    #[must_use]
    pub fn new(bytes: &'a [u8], field: Field) -> Self {
        Reader { rest: bytes, field }
    }

    /// Changes the field that errors name from here on.
    pub fn now_reading(&mut self, field: Field) {
        self.field = field;
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// [`Error::Truncated`] when fewer are left.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(Error::Truncated(self.field))?;
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    ///
    /// # Errors
    /// [`Error::Truncated`] when fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Error::Truncated(self.field))?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next byte.
    ///
    /// # Errors
    /// [`Error::Truncated`] at the end.
    pub fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    /// The next two bytes in network order.
    ///
    /// # Errors
    /// [`Error::Truncated`] when fewer are left.
    pub fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// The next four bytes in network order.
    ///
    /// # Errors
    /// [`Error::Truncated`] when fewer are left.
    pub fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// The next eight bytes in network order.
    ///
    /// # Errors
    /// [`Error::Truncated`] when fewer are left.
    pub fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Whatever is left.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}
