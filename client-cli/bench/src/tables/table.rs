//! Rows and columns.

/// The cells of a row.
pub type Cells = Vec<String>;

/// A table with a title, and notes below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Names of the columns; the first column names the rows.
    pub header: Cells,
    /// The rows; missing cells are empty.
    pub rows: Vec<Cells>,
    /// How it is to be read.
    pub notes: Vec<String>,
}

impl Table {
    pub(crate) fn new(
        title: impl Into<String>,
        header: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            title: title.into(),
            header: header.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Writes it in columns, the first to the left and others to the right.
    #[must_use]
    pub fn terminal(&self) -> String {
        let widths = self.widths();
        let mut text = format!("{}\n", self.title);
        text.push_str(&line(&self.header, &widths));
        let total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        text.push_str(&format!("{}\n", "─".repeat(total)));
        for row in &self.rows {
            text.push_str(&line(row, &widths));
        }
        for note in &self.notes {
            text.push_str(&wrapped(note, "  "));
        }
        text
    }

    /// Writes it as a Markdown section.
    #[must_use]
    pub fn markdown(&self) -> String {
        let row = |cells: &[String]| {
            let cells: Vec<String> = (0..self.header.len())
                .map(|column| {
                    cells
                        .get(column)
                        .map_or_else(String::new, |cell| cell.replace('|', "\\|"))
                })
                .collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut text = format!("## {}\n\n{}", self.title, row(&self.header));
        let rules = (0..self.header.len()).map(|column| if column == 0 { "---" } else { "---:" });
        text.push_str(&format!("|{}|\n", rules.collect::<Vec<_>>().join("|")));
        for cells in &self.rows {
            text.push_str(&row(cells));
        }
        for note in &self.notes {
            text.push_str(&format!("\n{note}\n"));
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        (0..self.header.len())
            .map(|column| {
                let rows = self.rows.iter().chain([&self.header]);
                rows.filter_map(|row| row.get(column))
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect()
    }
}

/// Breaks a text into lines that a terminal shows whole.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    const WIDTH: usize = 100;
    let mut lines = vec![indent.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if line.len() > indent.len() && line.chars().count() + word.chars().count() >= WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            if line.len() > indent.len() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let empty = String::new();
    let padded: Vec<String> = widths
        .iter()
        .enumerate()
        .map(|(column, width)| {
            let cell = cells.get(column).unwrap_or(&empty);
            if column == 0 {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        })
        .collect();
    format!("{}\n", padded.join("  ").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("Speed", ["method", "a|b", "c"]);
        table.row(["none", "1.0", "–"]);
        table.row(["draft model", "×12.5"]);
        table.note("a note");
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        assert_eq!(
            table().terminal(),
            "Speed\nmethod         a|b  c\n─────────────────────\nnone           1.0  –\ndraft model  ×12.5\n  a note\n"
        );
    }

    #[test]
    fn long_notes_are_broken_between_words() {
        let text = wrapped(&"word ".repeat(40), "  ");
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.starts_with("  word")));
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
    }

    #[test]
    fn markdown_has_a_cell_for_every_column() {
        assert_eq!(
            table().markdown(),
            "## Speed\n\n| method | a\\|b | c |\n|---|---:|---:|\n| none | 1.0 | – |\n| draft model | ×12.5 |  |\n\na note\n"
        );
    }
}
