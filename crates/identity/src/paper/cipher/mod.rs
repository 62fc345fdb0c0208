//! Block ciphers of the CLL paper's Table 1 that no well-kept crate has, written from their definitions.
//!
//! For measuring only: they look tables up by secret values, so that whoever shares the processor's cache can read keys.

mod mars;
mod seed;

use cipher::consts::{U1, U16};
use cipher::inout::InOut;
use cipher::{
    Block, BlockCipherDecBackend, BlockCipherDecClosure, BlockCipherDecrypt, BlockCipherEncBackend,
    BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, ParBlocksSizeUser,
};

pub(super) use self::mars::Mars;
pub(super) use self::seed::Seed;

/// A cipher of blocks of 16 bytes, as four words.
pub(super) trait Words {
    fn encrypt(&self, block: [u32; 4]) -> [u32; 4];
    fn decrypt(&self, block: [u32; 4]) -> [u32; 4];
    fn word(bytes: [u8; 4]) -> u32;
    fn bytes(word: u32) -> [u8; 4];
}

/// What the traits of the `cipher` crate want of one.
pub(super) struct OfWords<W>(W);

impl<W: Words> OfWords<W> {
    fn convert(&self, mut block: InOut<'_, '_, Block<Self>>, convert: impl Fn(&W, [u32; 4]) -> [u32; 4]) {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(block.get_in().as_chunks().0) {
            *word = W::word(*bytes);
        }
        let converted = convert(&self.0, words);
        for (place, word) in block.get_out().as_chunks_mut().0.iter_mut().zip(converted) {
            *place = W::bytes(word);
        }
    }
}

impl<W> BlockSizeUser for OfWords<W> {
    type BlockSize = U16;
}

impl<W> ParBlocksSizeUser for OfWords<W> {
    type ParBlocksSize = U1;
}

impl<W: Words> BlockCipherEncBackend for OfWords<W> {
    fn encrypt_block(&self, block: InOut<'_, '_, Block<Self>>) {
        self.convert(block, W::encrypt);
    }
}

impl<W: Words> BlockCipherEncrypt for OfWords<W> {
    fn encrypt_with_backend(&self, closure: impl BlockCipherEncClosure<BlockSize = U16>) {
        closure.call(self);
    }
}

impl<W: Words> BlockCipherDecBackend for OfWords<W> {
    fn decrypt_block(&self, block: InOut<'_, '_, Block<Self>>) {
        self.convert(block, W::decrypt);
    }
}

impl<W: Words> BlockCipherDecrypt for OfWords<W> {
    fn decrypt_with_backend(&self, closure: impl BlockCipherDecClosure<BlockSize = U16>) {
        closure.call(self);
    }
}
