use proptest::prelude::*;

use super::*;
use crate::test_hex::{array, bytes};

/// One block under the key; then the same backwards.
fn block<C: BlockCipherEncrypt + BlockCipherDecrypt>(cipher: Option<C>, plaintext: &str, ciphertext: &str) {
    let cipher = cipher.expect("a key of the right length");
    let mut block = Block::<C>::try_from(&bytes(plaintext)[..]).expect("a block");
    cipher.encrypt_block(&mut block);
    assert_eq!(block.to_vec(), bytes(ciphertext));
    cipher.decrypt_block(&mut block);
    assert_eq!(block.to_vec(), bytes(plaintext));
}

fn of<C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt>(key: &str, plaintext: &str, ciphertext: &str) {
    block(C::new_from_slice(&bytes(key)).ok(), plaintext, ciphertext);
}

const ZERO: &str = "00000000000000000000000000000000";
const ZERO_24: &str = "000000000000000000000000000000000000000000000000";
const ZERO_32: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// FIPS 197, appendix C.
#[test]
fn aes_is_that_of_fips_197() {
    let (key, plaintext) =
        ("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", "00112233445566778899aabbccddeeff");
    of::<aes::Aes128>(&key[..32], plaintext, "69c4e0d86a7b0430d8cdb78070b4c55a");
    of::<aes::Aes192>(&key[..48], plaintext, "dda97ca4864cdfe06eaf70a0ec0d7191");
    of::<aes::Aes256>(key, plaintext, "8ea2b7ca516745bfeafc49904b496089");
}

/// "Twofish: a 128-bit block cipher", appendix B.2.
#[test]
fn twofish_is_that_of_its_authors() {
    let key = "0123456789abcdeffedcba987654321000112233445566778899aabbccddeeff";
    let twofish =
        |key: &str, plaintext: &str, ciphertext: &str| block(Twofish::new(&bytes(key)), plaintext, ciphertext);
    twofish(ZERO, ZERO, "9f589f5cf6122c32b6bfec2f2ae8c35a");
    twofish(&key[..48], ZERO, "cfd1d2e5a9be9cdf501f13b892bd2248");
    twofish(key, ZERO, "37527be0052334b89f0cfccae87cfa20");
    for length in [0, 15, 17, 20, 31, 33] {
        assert!(Twofish::new(&vec![1; length]).is_none(), "a key of {length} bytes");
    }
}

/// The vectors of the NESSIE project, set 1, number 0; libgcrypt 1.10 has the same.
#[test]
fn serpent_is_that_of_its_authors() {
    of::<serpent::Serpent>(&format!("80{}", &ZERO[2..]), ZERO, "264e5481eff42a4606abda06c0bfda3d");
    of::<serpent::Serpent>(&format!("80{}", &ZERO_24[2..]), ZERO, "9e274ead9b737bb21efcfca548602689");
    of::<serpent::Serpent>(&format!("80{}", &ZERO_32[2..]), ZERO, "a223aa1288463c0e2be38ebd825616c0");
}

/// "The RC6 block cipher" (1998), appendix.
#[test]
fn rc6_is_that_of_its_authors() {
    of::<Rc6<U16>>(ZERO, ZERO, "8fc3a53656b1f778c129df4e9848a41e");
    let (key, plaintext) =
        ("0123456789abcdef0112233445566778899aabbccddeeff01032547698badcfe", "02132435465768798a9bacbdcedfe0f1");
    of::<Rc6<U16>>(&key[..32], plaintext, "524e192f4715c6231f51f6367ea43f18");
    of::<Rc6<U24>>(ZERO_24, ZERO, "6cd61bcb190b30384e8a3f168690ae82");
    of::<Rc6<U24>>(&key[..48], plaintext, "688329d019e505041e52e92af95291d4");
    of::<Rc6<U32>>(ZERO_32, ZERO, "8f5fbd0510d15fa893fa3fda6e857ec2");
    of::<Rc6<U32>>(key, plaintext, "c8241816f0d7e48920ad16a1674e5d48");
}

/// The vectors that IBM submitted with the key setup of August 1999.
#[test]
fn mars_is_that_of_its_submission() {
    let mars = |key: &str, plaintext: &str, ciphertext: &str| block(Mars::new(&bytes(key)), plaintext, ciphertext);
    mars(ZERO, ZERO, "dcc07b8dfb0738d6e30a22dfcf27e886");
    mars(ZERO, "dcc07b8dfb0738d6e30a22dfcf27e886", "33caffbddc7f1dda0f9c15fa2f30e2ff");
    mars("cb14a1776abbc1cdafe7243def2cea02", "f94512a9b42d034ec4792204d708a69b", "225da2cb64b73f79069f21a5e3cb8522");
    mars("86edf4da31824cabef6a4637c40b0bab", "4df955ad5b398d66408d620a2b27e1a9", "a4b737340ae6d2cafd930ba97d86129f");
    mars(ZERO_24, &"aa".repeat(16), "97778747d60e425c2b4202599db856fb");
    mars(
        "791739a58b04581a93a953a82c10411dd158860838874d95",
        "6761c42d3e6142d2a84fbfadb383158f",
        "f706bc0fd97e28b6f1af4e17d8755fff",
    );
    mars(ZERO_32, "62e45b4cf3477f1dd65063729d9aba8f", "0f4b897ea014d21fbc20f1054a42f719");
    mars(
        "fba167983e7aef22317ce28c02aae1a3e8e5cc3cedbea82a99dbc39ad65e7227",
        "1344aba4d3c44708a8a72116d4f49384",
        "458335d95ea42a9f4dccd41aecc2390d",
    );
    for length in [0, 15, 17, 20, 31, 33] {
        assert!(Mars::new(&vec![1; length]).is_none(), "a key of {length} bytes");
    }
}

/// RFC 2612, appendix A.
#[test]
fn cast_256_is_that_of_rfc_2612() {
    of::<cast6::Cast6>("2342bb9efa38542c0af75647f29f615d", ZERO, "c842a08972b43d20836c91d1b7530f6b");
    let key = "2342bb9efa38542cbed0ac83940ac298bac77a7717942863";
    of::<cast6::Cast6>(key, ZERO, "1b386c0210dcadcbdd0e41aa08a7a7e8");
    let key = "2342bb9efa38542cbed0ac83940ac2988d7c47ce264908461cc1b5137ae6b604";
    of::<cast6::Cast6>(key, ZERO, "4f6a2038286897b9c9870136553317fa");
}

/// Schneier's vectors with keys of 16 and 24 bytes; there are none with 32.
#[test]
fn blowfish_is_that_of_its_author() {
    let key = "f0e1d2c3b4a5968778695a4b3c2d1e0f0011223344556677";
    of::<blowfish::Blowfish>(&key[..32], "fedcba9876543210", "93142887ee3be15c");
    of::<blowfish::Blowfish>(key, "fedcba9876543210", "05044b62fa52d080");
}

/// "The RC5 encryption algorithm" (1995), with 12 rounds and 16 bytes of key; there are none with longer keys.
#[test]
fn rc5_is_that_of_its_author() {
    of::<Rc5<U16>>(ZERO, "0000000000000000", "21a5dbee154b8f6d");
    of::<Rc5<U16>>("915f4619be41b2516355a50110a9ce91", "21a5dbee154b8f6d", "f7c013ac5b2b8952");
    of::<Rc5<U16>>("783348e75aeb0f2fd7b169bb8dc16787", "f7c013ac5b2b8952", "2f42b3b70369fc92");
}

/// RFC 2144, appendix B.1.
#[test]
fn cast_128_is_that_of_rfc_2144() {
    of::<cast5::Cast5>("0123456712345678234567893456789a", "0123456789abcdef", "238b4fe5847e44b2");
}

/// RFC 4269, appendix B.
#[test]
fn seed_is_that_of_rfc_4269() {
    let seed = |key: &str, plaintext: &str, ciphertext: &str| block(Seed::new(&bytes(key)), plaintext, ciphertext);
    let counted = "000102030405060708090a0b0c0d0e0f";
    seed(ZERO, counted, "5ebac6e0054e166819aff1cc6d346cdb");
    seed(counted, ZERO, "c11f22f20140505084483597e4370f43");
    seed("4706480851e61be85d74bfb3fd956185", "83a2f8a288641fb9a4e9a5cc2f131c7d", "ee54d13ebcae706d226bc3142cd40d4a");
    seed("28dbc3bc49ffd87dcfa509b11d422be7", "b41e6be2eba84a148e2eed84593c5ec7", "9b9b7bfcd1813cb95d0b3618f40f5122");
    assert!(Seed::new(&[0; 17]).is_none() && Seed::new(&[0; 15]).is_none());
}

/// RFC 8891, section A.4.
#[test]
fn gost_is_that_of_rfc_8891() {
    let key = "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
    of::<magma::Magma>(key, "fedcba9876543210", "4ee901e5c2d8ca3d");
}

/// RFC 2202, RFC 4231 and RFC 2286, test case 1 each; for HAS-160 the same input through a program in Python that was written from
/// the standard and agrees with rhash.
#[test]
fn tags_are_the_first_bytes_of_the_standards_hmac() {
    let tag = |hash, key_len| mac(hash, &vec![0x0b; key_len]).expect("a key").tag([b"Hi", b" ", b"There"]);
    assert_eq!(tag(Hash::Md5, 16), array("9294727a3638bb1c13f48ef8158bfc9d"));
    assert_eq!(tag(Hash::Sha1, 20), array("b617318655057264e28bc0b6fb378c8e"));
    assert_eq!(tag(Hash::Sha256, 20), array("b0344c61d8db38535ca8afceaf0bf12b"));
    assert_eq!(tag(Hash::Ripemd160, 20), array("24cb4bd67d20fc1a5d2ed7732dcc3937"));
    assert_eq!(tag(Hash::Has160, 20), array("f5b44115a53f716b6f488de1098ee7c2"));
}

fn key_of(suite: PaperSuite, filler: u8) -> FrameKey {
    FrameKey::new(suite, &vec![filler; suite.key_len()]).expect("a key")
}

#[test]
fn a_key_of_another_length_is_refused() {
    for suite in PaperSuite::all() {
        for length in [0, suite.key_len() - 1, suite.key_len() + 1] {
            let refused = FrameKey::new(suite, &vec![1; length]).map(drop).expect_err("another length");
            assert_eq!(refused, KeyError::Length { expected: suite.key_len(), found: length });
        }
    }
}

/// A body shorter than a block can be neither sealed nor opened; in CLL none is.
#[test]
fn less_than_a_block_is_refused() {
    for suite in PaperSuite::all() {
        let key = key_of(suite, 7);
        assert_eq!(key.seal(&[1; 12], b"clear", &mut [2; 7]), Err(KeyError::Refused));
        let tag = key.0.as_ref().expect("keys").mac.tag([&[1; 12], b"clear", &[2; 7]]);
        assert_eq!(key.open(&[1; 12], b"clear", &[2; 7], &tag, &mut [0; 7]), Err(BadTag));
    }
}

/// It takes every tag, which is what it is for, and hides nothing, so it refuses what is to be hidden.
#[test]
fn without_a_tag_nothing_is_proved_and_nothing_encrypted() {
    let suite = PaperSuite::from_name("nonce-only").expect("the suite");
    let key = FrameKey::new(suite, &[]).expect("no key");
    assert_eq!(key.seal(&[1; 12], b"clear", &mut []), Ok([0; TAG_LEN]));
    assert_eq!(key.open(&[1; 12], b"other", &[], &[9; TAG_LEN], &mut []), Ok(()));
    assert_eq!(key.seal(&[1; 12], b"clear", &mut [2; 16]), Err(KeyError::Refused));
    assert_eq!(key.open(&[1; 12], b"clear", &[2; 16], &[0; TAG_LEN], &mut [0; 16]), Err(BadTag));
    let refused = FrameKey::new(suite, &[1]).map(drop).expect_err("a key");
    assert_eq!(refused, KeyError::Length { expected: 0, found: 1 });
}

/// Every bit of nonce, clear part, ciphertext and tag counts, in every suite, and nothing is readable.
#[test]
fn every_wrong_byte_is_noticed() {
    for suite in PaperSuite::all() {
        let key = key_of(suite, 3);
        let (nonce, clear, plaintext) = ([5; 12], [6; 28], [7; 37]);
        let mut body = plaintext;
        let tag = key.seal(&nonce, &clear, &mut body).expect("sealed");
        assert_ne!(body, plaintext);
        let mut opened = [0; 37];
        for at in 0..12 + 28 + 37 + 16 {
            let (mut nonce, mut clear, mut body, mut tag) = (nonce, clear, body, tag);
            let byte = nonce.iter_mut().chain(&mut clear).chain(&mut body).chain(&mut tag).nth(at).expect("a byte");
            *byte ^= 0x10;
            assert_eq!(key.open(&nonce, &clear, &body, &tag, &mut opened), Err(BadTag), "{}, {at}", suite.name());
        }
        assert_eq!(key.open(&nonce, &clear, &body, &tag, &mut [0; 36]), Err(BadTag));
        assert_eq!(key_of(suite, 4).open(&nonce, &clear, &body, &tag, &mut opened), Err(BadTag));
        assert_eq!(key.open(&nonce, &clear, &body, &tag, &mut opened), Ok(()));
        assert_eq!(opened, plaintext);
    }
}

proptest! {
    /// The crate is the oracle for the tables here.
    #[test]
    fn twofish_is_that_of_the_crate(key in proptest::collection::vec(any::<u8>(), 32), length in 2_usize..=4, plaintext: [u8; 16]) {
        let key = &key[..8 * length];
        let (ours, theirs) = (Twofish::new(key).expect("a key"), twofish::Twofish::new_from_slice(key).expect("a key"));
        let (mut one, mut other) = (Block::<Twofish>::from(plaintext), Block::<Twofish>::from(plaintext));
        ours.encrypt_block(&mut one);
        theirs.encrypt_block(&mut other);
        prop_assert_eq!(one, other);
        ours.decrypt_block(&mut one);
        prop_assert_eq!(one, Block::<Twofish>::from(plaintext));
    }

    #[test]
    fn what_is_sealed_opens(
        number in 0_usize..135, filler: u8, nonce: [u8; 12], clear in proptest::collection::vec(any::<u8>(), 0..40),
        plaintext in proptest::collection::vec(any::<u8>(), 16..200), confidential: bool,
    ) {
        let key = key_of(PaperSuite::all().nth(number).expect("a suite"), filler);
        let mut body = if confidential { plaintext.clone() } else { Vec::new() };
        let clear = if confidential { clear } else { [&clear[..], &plaintext].concat() };
        let tag = key.seal(&nonce, &clear, &mut body).expect("sealed");
        let mut opened = vec![0; body.len()];
        prop_assert_eq!(key.open(&nonce, &clear, &body, &tag, &mut opened), Ok(()));
        prop_assert_eq!(opened, if confidential { plaintext } else { Vec::new() });
    }
}
