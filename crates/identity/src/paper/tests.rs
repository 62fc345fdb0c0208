use super::spki::public_key;
use super::*;
use crate::test_hex::{array, bytes};

/// FIPS 186-2, appendix 5: key, secret number and signature of "abc".
const FIPS_X: &str = "2070b3223dba372fde1c0ffc7b2e3b498b260614";
const FIPS_Y: &str = "19131871d75b1612a819f29d78d1b0d7346f7aa77bb62a859bfd6c5675da9d21\
                      2d3a36ef1672ef660b8c7c255cc0ec74858fba33f44c06699630a76b030ee333";
const FIPS_K: &str = "358dad571462710f50e254cf1a376b2bdeaadfbf";
const FIPS_INVERSE: &str = "0d5167298202e49b4116ac104fc3f415ae52f917";
const FIPS_SIGNATURE: &str = "8bac1ab66410435cb7181f95b16ab97c92b341c041e2345f1f56df2458f426d155b4ba2db6dcd8c8";

/// RFC 6979, appendix A.2.1.
const RFC_X: &str = "411602cb19a6ccc34494d79d98ef1e7ed5af25f7";
const RFC_Y: &str = "5df5e01ded31d0297e274e1691c192fe5868fef9e19a84776454b100cf16f653\
                     92195a38b90523e2542ee61871c0440cb87c322fc4b4d2ec5e1e7ec766e1be8d\
                     4ce935437dc11c3c8fd426338933ebfe739cb3465f4d3668c5e473508253b1e6\
                     82f65cbdc4fae93c2ea212390e54905a86e2223170b44eaa7da5dd9ffcfb7f3b";

fn key(length: KeyLength, x: &str) -> SigningKey {
    SigningKey::from_block(&[&[length.record_number()][..], &bytes(x)].concat()).expect("a key")
}

fn fips() -> SigningKey {
    key(KeyLength::Bits512, FIPS_X)
}

fn rfc() -> SigningKey {
    key(KeyLength::Bits1024, RFC_X)
}

#[test]
fn the_example_of_fips_186_2() {
    let signer = fips();
    assert_eq!(signer.public().bytes(), bytes(FIPS_Y));
    let group = arithmetic(KeyLength::Bits512);
    let k = group.scalar(&bytes(FIPS_K)).expect("below q");
    let inverse = group.invert(&k).expect("not zero");
    assert_eq!(group.bytes(&inverse).to_vec(), bytes(FIPS_INVERSE));
    signer.pairs().push(Pair { r: group.exponential(&k), inverse });
    assert_eq!(signer.sign(b"abc").expect("signed"), bytes(FIPS_SIGNATURE));
    assert_eq!(signer.public().verify(b"abc", &bytes(FIPS_SIGNATURE)), Ok(()));
    assert_ne!(signer.sign(b"abc").expect("signed"), bytes(FIPS_SIGNATURE), "a pair serves once");
}

#[test]
fn without_pairs_signatures_are_those_of_rfc_6979() {
    let signer = rfc();
    assert_eq!(signer.public().bytes(), bytes(RFC_Y));
    for (message, signature) in [
        ("sample", "2e1a0c2562b2912caaf89186fb0f42001585da5529efb6b0aff2d7a68eb70ca313022253b9a88df5"),
        ("test", "42ab2052fd43e123f0607f115052a67dcd9c5c77183916b0230d45b9931491d4c6b0bd2fb4aaf088"),
    ] {
        assert_eq!(signer.sign(message.as_bytes()).expect("signed"), bytes(signature), "{message}");
        assert_eq!(signer.public().verify(message.as_bytes(), &bytes(signature)), Ok(()));
    }
}

#[test]
fn pairs_are_bounded_and_each_serves_one_signature() {
    for signer in [fips(), rfc()] {
        let mut made = 0;
        while signer.wants_pairs() {
            made += 1;
            signer.make_pairs(&[made; PAIR_RANDOM_LEN], PAIRS_PER_BATCH);
        }
        signer.make_pairs(&[made + 1; PAIR_RANDOM_LEN], PAIRS_PER_BATCH);
        assert_eq!(signer.pairs().len(), PAIRS_AHEAD_MAX);
        let signatures: std::collections::BTreeSet<_> =
            (0..PAIRS_AHEAD_MAX).map(|_| signer.sign(b"ARP").expect("signed")).collect();
        let halves: std::collections::BTreeSet<_> = signatures.iter().map(|one| one[..SCALAR_LEN].to_vec()).collect();
        assert_eq!((signatures.len(), halves.len()), (PAIRS_AHEAD_MAX, PAIRS_AHEAD_MAX));
        assert!(signatures.iter().all(|one| signer.public().verify(b"ARP", one).is_ok()));
        assert!(signer.pairs().is_empty() && signer.wants_pairs());
    }
}

/// Two hosts with one seed, as in a simulation, do not share secret numbers, or one could be computed from the other's key.
#[test]
fn one_source_of_randomness_gives_different_keys_different_pairs() {
    let (one, other) = (fips(), key(KeyLength::Bits512, &"11".repeat(SCALAR_LEN)));
    let first = |signer: &SigningKey| {
        signer.make_pairs(&[7; PAIR_RANDOM_LEN], 1);
        signer.sign(b"x").expect("signed")[..SCALAR_LEN].to_vec()
    };
    assert_ne!(first(&one), first(&other));
}

#[test]
fn only_the_right_signature_of_the_right_length_counts() {
    let signer = fips();
    let good = bytes(FIPS_SIGNATURE);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(signer.public().verify(b"abc", &bad).is_err(), "byte {at}");
    }
    let q = bytes("c773218c737ec8ee993b4f2ded30f48edace915f");
    for bad in [&good[1..], &[&good[..], &[0]].concat(), &[0; SIGNATURE_LEN], &[], &[&q[..], &good[20..]].concat()] {
        assert!(signer.public().verify(b"abc", bad).is_err());
    }
    assert!(signer.public().verify(b"abd", &good).is_err());
    assert!(rfc().public().verify(b"abc", &good).is_err());
}

#[test]
fn numbers_outside_of_the_group_are_no_keys() {
    let good = bytes(FIPS_Y);
    assert!(PublicKey::new(KeyLength::Bits512, &good).is_some());
    let p = bytes(
        "8df2a494492276aa3d25759bb06869cbeac0d83afb8d0cf7cbb8324f0d7882e5\
         d0762fc5b7210eafc2e9adac32ab7aac49693dfbf83724c2ec0736ee31c80291",
    );
    let (mut before, mut two, mut one) = (p.clone(), vec![0; 64], vec![0; 64]);
    (before[63], two[63], one[63]) = (0x90, 2, 1);
    for bad in [&p, &one, &vec![0; 64], &vec![0xff; 64], &good[1..].to_vec(), &vec![]] {
        assert!(PublicKey::new(KeyLength::Bits512, bad).is_none(), "{bad:?}");
    }
    // No powers of g: a certificate with one is none.
    for other in [&before, &two] {
        let key = PublicKey::new(KeyLength::Bits512, other).expect("in range");
        assert_eq!(public_key(&key.to_spki().expect("encoded")), None, "{other:?}");
    }
    assert!(PublicKey::new(KeyLength::Bits1024, &good).is_none());
    let q = "c773218c737ec8ee993b4f2ded30f48edace915f";
    for x in [q, &"00".repeat(SCALAR_LEN), &"ff".repeat(SCALAR_LEN)] {
        assert!(SigningKey::from_block(&[&[3][..], &bytes(x)].concat()).is_err(), "{x}");
    }
    assert!(SigningKey::from_block(&[&[5][..], &bytes(FIPS_X)].concat()).is_err());
    assert!(SigningKey::from_block(&[]).is_err() && SigningKey::from_block(&[3; 20]).is_err());
}

#[test]
fn new_keys_lie_in_the_group_whatever_the_randomness() {
    for length in KeyLength::ALL {
        for random in [[0; KEY_RANDOM_LEN], [0xff; KEY_RANDOM_LEN], array(&"5a".repeat(KEY_RANDOM_LEN))] {
            let signer = SigningKey::from_block(&new_key_block(length, &random)).expect("a key");
            let public = PublicKey::new(length, signer.public().bytes());
            // Random zeros give x = 1 and y = g, which is in the group, too.
            assert_eq!(public.as_ref(), Some(signer.public()));
            assert_eq!(public_key(&signer.public().to_spki().expect("encoded")), public);
        }
    }
}

#[test]
fn a_key_with_other_primes_or_of_another_kind_is_not_read() {
    let spki = fips().public().to_spki().expect("encoded");
    assert_eq!(public_key(&spki).as_ref(), Some(fips().public()));
    for at in 0..spki.len() {
        let mut other = spki.clone();
        other[at] ^= 1;
        assert_eq!(public_key(&other), None, "byte {at}");
    }
    assert_eq!(public_key(&spki[..spki.len() - 1]), None);
}
