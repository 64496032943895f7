//! Colours, twice: as they are drawn, for light pages, and what a style sheet makes of them on dark ones.

use plotters::style::RGBColor;

use crate::method::Method;

/// A colour on light pages and its counterpart on dark ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ink(u32, u32);

pub(super) const PAPER: Ink = Ink(0xFF_FF_FF, 0x0D_11_17);
pub(super) const BAND: Ink = Ink(0xF3_F5_F8, 0x16_1C_24);
pub(super) const TEXT: Ink = Ink(0x1F_23_28, 0xE6_ED_F3);
pub(super) const MUTED: Ink = Ink(0x5A_64_70, 0x9D_A7_B1);
pub(super) const GRID: Ink = Ink(0xD8_DE_E5, 0x2F_36_3E);
pub(super) const BLUE: Ink = Ink(0x09_69_DA, 0x58_A6_FF);
pub(super) const ORANGE: Ink = Ink(0xBC_4C_01, 0xF0_88_3E);
pub(super) const PURPLE: Ink = Ink(0x82_50_DF, 0xBC_8C_FE);
pub(super) const OCHRE: Ink = Ink(0x9A_67_01, 0xD2_99_22);
pub(super) const GREEN: Ink = Ink(0x1A_7F_38, 0x3F_B9_51);
pub(super) const RED: Ink = Ink(0xCF_22_2F, 0xFF_7B_73);
pub(super) const GREY: Ink = Ink(0x8C_95_9F, 0x6E_76_82);

/// All colours. No two may be the same on light pages, since the style sheet tells them by that.
const ALL: [Ink; 12] = [
    PAPER, BAND, TEXT, MUTED, GRID, BLUE, ORANGE, PURPLE, OCHRE, GREEN, RED, GREY,
];

impl Ink {
    pub(super) fn light(self) -> RGBColor {
        let [_, red, green, blue] = self.0.to_be_bytes();
        RGBColor(red, green, blue)
    }
}

/// The colour of a method, the same in every chart.
pub(super) fn of(method: Method) -> Ink {
    match method {
        Method::None => GREY,
        Method::Draft => BLUE,
        Method::Own => ORANGE,
        Method::Tree => PURPLE,
        Method::SelfTree => OCHRE,
        Method::Lookup => GREEN,
        Method::Default => RED,
    }
}

/// Adds the style sheet to a drawing: presentation attributes give way to it.
pub(super) fn adapt(svg: &str) -> String {
    let rules: String = ALL
        .iter()
        .map(|Ink(light, dark)| {
            format!("[fill=\"#{light:06X}\"]{{fill:#{dark:06X}}}[stroke=\"#{light:06X}\"]{{stroke:#{dark:06X}}}")
        })
        .collect();
    let style = format!("<style>@media (prefers-color-scheme:dark){{{rules}}}</style>");
    match svg
        .find("<svg")
        .and_then(|start| Some(start + svg[start..].find('>')? + 1))
    {
        Some(end) => format!("{}{style}{}", &svg[..end], &svg[end..]),
        None => svg.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_has_one_counterpart() {
        for (index, ink) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.0 != ink.0), "{ink:?}");
        }
        for method in Method::ALL {
            assert!(ALL.contains(&of(method)));
        }
    }

    /// Contrast of two colours, as the guidelines for accessible pages reckon it.
    fn contrast(one: u32, other: u32) -> f64 {
        let luminance = |colour: u32| {
            let [_, rgb @ ..] = colour.to_be_bytes();
            let linear = rgb.map(|part| {
                let part = f64::from(part) / 255.0;
                if part <= 0.04045 {
                    part / 12.92
                } else {
                    ((part + 0.055) / 1.055).powf(2.4)
                }
            });
            0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_and_marks_stand_out_on_both_papers() {
        for ink in [TEXT, MUTED, BLUE, ORANGE, PURPLE, OCHRE, GREEN, RED] {
            for paper in [PAPER, BAND] {
                assert!(
                    contrast(ink.0, paper.0) >= 4.4,
                    "{ink:?} on light {paper:?}"
                );
                assert!(contrast(ink.1, paper.1) >= 4.4, "{ink:?} on dark {paper:?}");
            }
        }
    }

    #[test]
    fn the_style_sheet_comes_first_in_the_drawing() {
        let svg = adapt("<svg width=\"1\"><rect fill=\"#FFFFFF\"/></svg>");
        assert!(
            svg.starts_with("<svg width=\"1\"><style>@media (prefers-color-scheme:dark){"),
            "{svg}"
        );
        assert!(
            svg.ends_with("</style><rect fill=\"#FFFFFF\"/></svg>"),
            "{svg}"
        );
    }
}
