//! Ways to break an input.

use crate::random::Random;

/// Larger inputs are slower and seldom say more.
pub(crate) const MOST_BYTES: usize = 64 << 10;

/// Numbers at which programs change their minds.
const EDGES: [u64; 17] = [
    0,
    1,
    2,
    3,
    7,
    31,
    32,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// Returns `input` with a few things changed; `other` is another input to take parts of.
pub(crate) fn mutate(input: &[u8], other: &[u8], words: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..1 << random.below(5) {
        step(&mut bytes, other, words, random);
    }
    bytes.truncate(MOST_BYTES);
    bytes
}

fn step(bytes: &mut Vec<u8>, other: &[u8], words: &[&[u8]], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    match random.below(12) {
        0 => flip(bytes, random),
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.bits() as u8;
            }
        }
        2 | 3 => {
            let (value, size) = (*random.pick(&EDGES), 1 << random.below(4));
            overwrite(bytes, at, &value.to_le_bytes()[..size]);
        }
        4 => nudge(bytes, at, random),
        5 => {
            let end = (at + random.length(1024)).min(bytes.len());
            bytes.drain(at..end);
        }
        6 => {
            let end = (at + random.length(256)).min(bytes.len());
            let part = bytes[at..end].to_vec();
            // Depth and length come from repetition.
            for _ in 0..1 << random.below(if part.len() < 16 { 12 } else { 4 }) {
                insert(bytes, at, &part);
            }
        }
        7 => {
            let part: Vec<u8> = (0..random.length(64))
                .map(|_| random.bits() as u8)
                .collect();
            insert(bytes, at, &part);
        }
        8 | 9 if !words.is_empty() => {
            let word = random.pick(words);
            if random.below(3) == 0 {
                overwrite(bytes, at, word);
            } else {
                insert(bytes, at, word);
            }
        }
        10 => bytes.truncate(at),
        _ => {
            let from = random.below(other.len() + 1);
            let to = (from + random.length(4096)).min(other.len());
            if random.below(2) == 0 {
                overwrite(bytes, at, &other[from..to]);
            } else {
                insert(bytes, at, &other[from..to]);
            }
        }
    }
}

fn flip(bytes: &mut [u8], random: &mut Random) {
    if !bytes.is_empty() {
        let bit = random.below(8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

/// Adds a little to a number of some size, in either byte order.
fn nudge(bytes: &mut [u8], at: usize, random: &mut Random) {
    let size = 1 << random.below(4);
    let Some(place) = bytes.get_mut(at..at + size) else {
        return;
    };
    if random.below(4) == 0 {
        place.reverse();
    }
    let mut number = [0; 8];
    number[..size].copy_from_slice(place);
    let change = (random.below(65) as u64).wrapping_sub(32);
    let number = u64::from_le_bytes(number).wrapping_add(change);
    place.copy_from_slice(&number.to_le_bytes()[..size]);
}

fn overwrite(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    let end = at + part.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[at..end].copy_from_slice(part);
}

fn insert(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    if bytes.len() + part.len() <= MOST_BYTES {
        bytes.splice(at..at, part.iter().copied());
    }
}

/// Returns the smallest input found, by leaving parts out, that still `fails`.
pub(crate) fn smaller(input: &[u8], mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut best = input.to_vec();
    let mut tries = 0;
    let mut part = best.len().next_power_of_two() / 2;
    while part > 0 {
        let mut at = 0;
        while at < best.len() && tries < 2000 {
            let mut shorter = best.clone();
            shorter.drain(at..(at + part).min(best.len()));
            tries += 1;
            if fails(&shorter) {
                best = shorter;
            } else {
                at += part;
            }
        }
        part /= 2;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_made_small() {
        let input = b"a long text with a needle in it, and much after that".to_vec();
        let small = smaller(&input, |bytes| bytes.windows(6).any(|it| it == b"needle"));
        assert_eq!(small, b"needle");
    }

    #[test]
    fn every_input_stays_bounded() {
        let mut random = Random::new(1);
        let mut input = vec![7; 100];
        for _ in 0..20_000 {
            input = mutate(&input, b"another one", &[b"word"], &mut random);
            assert!(input.len() <= MOST_BYTES);
        }
    }
}
