//! The packed form is what [`LAYOUT_VERSION`] says: files of packed weights outlive the program that wrote them.

use tandem_kernels::check::blocks::{Random, random_blocks};
use tandem_kernels::{Format, Isa, LAYOUT_VERSION, PackedMatrix};

/// Fingerprints of a packed matrix of 20 outputs, in strips of 8 and of 16, in version 1.
const FINGERPRINTS: &[(Format, [u64; 2])] = &[
    (Format::F32, [0x2846_7352_a03d_6c9e, 0x2846_7352_a03d_6c9e]),
    (Format::F16, [0x97e0_2d31_2859_c999, 0x97e0_2d31_2859_c999]),
    (Format::BF16, [0x3ccb_0754_6334_a78c, 0x3ccb_0754_6334_a78c]),
    (Format::Q4_0, [0x363f_8a0c_d57e_b491, 0xe5c1_62ff_d757_4be5]),
    (Format::Q4_1, [0xc958_e46f_275b_cb20, 0x4f49_9424_4ef5_2624]),
    (Format::Q5_0, [0xc4cd_a3f5_bb87_a0b3, 0x77aa_738b_0966_7eeb]),
    (Format::Q5_1, [0xd192_e3f3_3bfe_7879, 0x299a_e525_be84_0381]),
    (Format::Q8_0, [0x4fbf_fc92_cd7b_f406, 0x9db7_b7d8_3112_bed6]),
    (Format::Q2K, [0xf900_6b53_e477_8d1d, 0xf900_6b53_e477_8d1d]),
    (Format::Q3K, [0xf632_c3f5_c81f_bdf7, 0xf632_c3f5_c81f_bdf7]),
    (Format::Q4K, [0x3b3f_7262_6723_21e4, 0x73a1_0266_f66c_7d64]),
    (Format::Q5K, [0x99a5_68f7_71a7_5ecf, 0x5f6b_8348_3ab1_ef2f]),
    (Format::Q6K, [0x16cb_5afc_2f50_c410, 0x0a06_8be2_95f9_c194]),
    (
        Format::IQ4NL,
        [0x363f_8a0c_d57e_b491, 0xe5c1_62ff_d757_4be5],
    ),
    (
        Format::IQ4XS,
        [0xcf0b_e3b2_3a4d_318b, 0x159b_6bde_092a_360b],
    ),
    (Format::IQ3S, [0xc759_4426_5e10_3884, 0xc759_4426_5e10_3884]),
    (
        Format::IQ3XXS,
        [0xc5a8_b77f_0226_5602, 0xc5a8_b77f_0226_5602],
    ),
    (Format::IQ2S, [0xf4e7_7114_69a3_42ae, 0xf4e7_7114_69a3_42ae]),
    (
        Format::IQ2XS,
        [0xa1ad_de73_6c29_1145, 0xa1ad_de73_6c29_1145],
    ),
    (
        Format::IQ2XXS,
        [0xadf7_a91d_079f_a971, 0xadf7_a91d_079f_a971],
    ),
    (Format::IQ1M, [0x7f70_e3b4_3287_a2cd, 0x7f70_e3b4_3287_a2cd]),
    (Format::IQ1S, [0x0733_c0a7_e46f_344c, 0x0733_c0a7_e46f_344c]),
    (
        Format::TQ1_0,
        [0xeba2_f7e1_eae4_3f1f, 0xeba2_f7e1_eae4_3f1f],
    ),
    (
        Format::TQ2_0,
        [0xa88a_05ac_2aa0_034b, 0xa88a_05ac_2aa0_034b],
    ),
    (
        Format::MXFP4,
        [0x130d_4cab_5842_a26e, 0x130d_4cab_5842_a26e],
    ),
];

/// FNV-1a.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Instruction sets with strips of 8 and of 16 outputs, where the CPU has them.
fn sets() -> [Option<Isa>; 2] {
    let available = Isa::available();
    let has = |isa: Isa| available.contains(&isa).then_some(isa);
    [has(Isa::Portable), has(Isa::Avx512Vnni)]
}

#[test]
fn the_packed_form_changes_with_its_version_only() {
    assert_eq!(
        LAYOUT_VERSION, 1,
        "write the fingerprints of the new version"
    );
    let mut changed = String::new();
    for format in Format::ALL {
        let weights = random_blocks(format, 20 * 512, &mut Random(1));
        let known = FINGERPRINTS.iter().find(|(known, _)| *known == format);
        for (strip, isa) in sets().into_iter().enumerate() {
            let Some(isa) = isa else { continue };
            let packed = PackedMatrix::pack_for(isa, format, 20, 512, &weights);
            let found = fingerprint(packed.expect("the shape is right").as_bytes());
            if known.map(|(_, fingerprints)| fingerprints[strip]) != Some(found) {
                changed += &format!("{format:?} on {isa}: {found:#018x}\n");
            }
        }
    }
    assert!(
        changed.is_empty(),
        "packed otherwise than version {LAYOUT_VERSION} says: raise it; a new format has only to be entered here:\n{changed}"
    );
}
