//! Metadata values in memory.

/// Characters of a string that messages show.
const SHOWN: usize = 80;

/// A string that a file brings, cut to so many characters: what is passed on has to fit where it is sent.
pub(crate) fn shown(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// One metadata value. Numeric arrays stay in the file's bytes, so that no value takes more than its place there.
#[derive(Debug)]
pub(super) enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(Vec<u8>),
    Texts(Strings),
    Numbers {
        kind: Scalar,
        bytes: Vec<u8>,
    },
    /// An array of arrays. No model needs one: it is checked, passed over and not kept.
    Nested,
}

impl Value {
    /// The value itself, for messages: on one line, escaped, and cut where it is long.
    pub(super) fn show(&self) -> String {
        match self {
            Self::Unsigned(n) => n.to_string(),
            Self::Signed(n) => n.to_string(),
            Self::Float(x) => format!("{x}"),
            Self::Bool(b) => b.to_string(),
            Self::Text(text) => {
                let text = String::from_utf8_lossy(text);
                format!("\"{}\"", shown(&text, SHOWN).escape_debug())
            }
            other => other.describe(),
        }
    }

    /// A single number, or 0 or 1 for a truth value.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Unsigned(n) => Some(*n as f64),
            Self::Signed(n) => Some(*n as f64),
            Self::Float(x) => Some(*x),
            Self::Bool(b) => Some(f64::from(u8::from(*b))),
            _ => None,
        }
    }

    /// The numbers of a value that is one or an array of them.
    pub(super) fn numbers(&self) -> Option<Vec<f64>> {
        match self {
            Self::Numbers { kind, bytes } => bytes
                .chunks_exact(kind.size())
                .map(|bytes| kind.decode(bytes).number())
                .collect(),
            single => single.number().map(|number| vec![number]),
        }
    }

    /// Whether nothing is there: no string, no element, or an empty one.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Texts(texts) => texts.is_empty(),
            Self::Numbers { bytes, .. } => bytes.is_empty(),
            _ => false,
        }
    }

    /// What the value is, for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Unsigned(n) => format!("the number {n}"),
            Self::Signed(n) => format!("the number {n}"),
            Self::Float(x) => format!("the number {x:?}"),
            Self::Bool(b) => format!("{b}"),
            Self::Text(text) => format!("a string of {} bytes", text.len()),
            Self::Texts(texts) => format!("{} strings", texts.len()),
            Self::Numbers { kind, bytes } => {
                format!("an array of {} {kind:?} values", bytes.len() / kind.size())
            }
            Self::Nested => "an array of arrays".to_owned(),
        }
    }
}

/// The fixed-size value types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scalar {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    U64,
    I64,
    F64,
}

/// A value type as numbered in the file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Scalar(Scalar),
    Text,
    Array,
}

impl Kind {
    pub(super) fn from_number(number: u32) -> Option<Self> {
        Some(Self::Scalar(match number {
            0 => Scalar::U8,
            1 => Scalar::I8,
            2 => Scalar::U16,
            3 => Scalar::I16,
            4 => Scalar::U32,
            5 => Scalar::I32,
            6 => Scalar::F32,
            7 => Scalar::Bool,
            8 => return Some(Self::Text),
            9 => return Some(Self::Array),
            10 => Scalar::U64,
            11 => Scalar::I64,
            12 => Scalar::F64,
            _ => return None,
        }))
    }
}

impl Scalar {
    /// Bytes of one value.
    pub(super) fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Reads one value from exactly `size()` little-endian bytes.
    pub(super) fn decode(self, bytes: &[u8]) -> Value {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let unsigned = u64::from_le_bytes(word);
        // Shifting up and back extends the sign of the narrower types.
        let unused_bits = 64 - 8 * self.size() as u32;
        let signed = (unsigned << unused_bits).cast_signed() >> unused_bits;
        match self {
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Value::Unsigned(unsigned),
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => Value::Signed(signed),
            Self::F32 => Value::Float(f32::from_bits(unsigned as u32).into()),
            Self::F64 => Value::Float(f64::from_bits(unsigned)),
            Self::Bool => Value::Bool(unsigned != 0),
        }
    }
}

/// An array of byte strings, packed; mostly UTF-8, which GGUF asks for and files do not always keep to.
#[derive(Debug, Default, Hash)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    pub(super) fn with_capacity(strings: usize) -> Self {
        Self {
            bytes: Vec::new(),
            ends: Vec::with_capacity(strings),
        }
    }

    /// The buffer to append the next string to; [`Self::close`] ends it.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(super) fn close(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// Number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no string.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at an index.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        Some(&self.bytes[start..end])
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at).unwrap_or_default())
    }
}
