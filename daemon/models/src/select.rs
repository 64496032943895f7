//! Which GGUF file of a repository a reference means. A pure function of the reference and the list
//! of files.

use thiserror::Error;

use crate::reference::{Pick, is_gguf};

/// What a reference without file or quantization prefers.
const DEFAULT_QUANT: &str = "Q4_K_M";

/// Says why no single file could be chosen.
#[derive(Debug, Error)]
pub enum ChoiceError {
    /// The repository holds no GGUF model at all.
    #[error("{repo} holds no GGUF file")]
    NoGguf {
        /// The repository.
        repo: String,
    },
    /// No file matches.
    #[error("{repo} has no GGUF file that matches `{wanted}`; it has {}", list(.available))]
    NoMatch {
        /// The repository.
        repo: String,
        /// The file or quantization asked for.
        wanted: String,
        /// The GGUF files that are there.
        available: Vec<String>,
    },
    /// More than one file matches.
    #[error("`{wanted}` matches several files of {repo}; name one of {}", list(.matches))]
    Ambiguous {
        /// The repository.
        repo: String,
        /// The quantization asked for.
        wanted: String,
        /// The files that match.
        matches: Vec<String>,
    },
    /// No file was asked for and there is no default.
    #[error(
        "{repo} has several GGUF files and none is {DEFAULT_QUANT}; name one as {repo}:FILE, of {}",
        list(.available)
    )]
    NoDefault {
        /// The repository.
        repo: String,
        /// The GGUF files that are there.
        available: Vec<String>,
    },
    /// The file is one part of a model split over several.
    #[error(
        "{file} of {repo} is one part of a split model, which Tandem cannot load; choose a model \
         in one file, or join the parts with llama-gguf-split --merge and name the result's path"
    )]
    Split {
        /// The repository.
        repo: String,
        /// The part.
        file: String,
    },
}

/// Chooses the file of `repo` that `pick` means among all its `files`.
pub(crate) fn choose(repo: &str, pick: &Pick, files: &[String]) -> Result<String, ChoiceError> {
    let repo = repo.to_owned();
    let models: Vec<&String> = files.iter().filter(|file| is_model(file)).collect();
    let names = |files: &[&String]| files.iter().map(|&file| file.clone()).collect::<Vec<_>>();
    let with = |quant: &str| {
        models
            .iter()
            .copied()
            .filter(|file| carries(file, quant))
            .collect::<Vec<_>>()
    };

    let (wanted, matches) = match pick {
        Pick::File(name) => (
            name.as_str(),
            files.iter().filter(|file| *file == name).collect(),
        ),
        Pick::Quant(quant) => (quant.as_str(), with(quant)),
        Pick::Default if models.len() == 1 => ("", models.clone()),
        Pick::Default => (DEFAULT_QUANT, with(DEFAULT_QUANT)),
    };
    match (matches.as_slice(), pick) {
        ([file], _) => whole(&repo, file).map(|()| (*file).clone()),
        ([], _) if models.is_empty() => Err(ChoiceError::NoGguf { repo }),
        ([], Pick::Default) => Err(ChoiceError::NoDefault {
            repo,
            available: names(&models),
        }),
        ([], _) => Err(ChoiceError::NoMatch {
            repo,
            wanted: wanted.to_owned(),
            available: names(&models),
        }),
        // The parts of one split model are many files too, but choosing one of them would not help.
        ([first, ..], _) if matches.iter().all(|file| is_part(file)) => Err(ChoiceError::Split {
            repo,
            file: (*first).clone(),
        }),
        (several, _) => Err(ChoiceError::Ambiguous {
            repo,
            wanted: wanted.to_owned(),
            matches: names(several),
        }),
    }
}

/// Refuses a file that is one part of a split model.
pub(crate) fn whole(repo: &str, file: &str) -> Result<(), ChoiceError> {
    if is_part(file) {
        return Err(ChoiceError::Split {
            repo: repo.to_owned(),
            file: file.to_owned(),
        });
    }
    Ok(())
}

/// Whether `file` is a language model: image projectors and importance matrices come as GGUF too.
fn is_model(file: &str) -> bool {
    let name = base(file).to_ascii_lowercase();
    is_gguf(&name) && !name.starts_with("mmproj") && !name.contains("imatrix")
}

/// Whether the name ends as in `model-00001-of-00003.gguf`.
fn is_part(file: &str) -> bool {
    let Some(stem) = is_gguf(file).then(|| &file[..file.len() - 5]) else {
        return false;
    };
    let numeric = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((rest, total)) = stem.rsplit_once("-of-") else {
        return false;
    };
    numeric(total)
        && rest
            .rsplit_once('-')
            .is_some_and(|(_, index)| numeric(index))
}

/// Whether the name of `file` holds `quant` as a whole word, so that `Q4_K` is not found in
/// `Q4_K_M`.
fn carries(file: &str, quant: &str) -> bool {
    let (name, quant) = (base(file).to_ascii_lowercase(), quant.to_ascii_lowercase());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.match_indices(&quant).any(|(at, _)| {
        !name[..at].ends_with(is_word) && !name[at + quant.len()..].starts_with(is_word)
    })
}

fn base(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// At most twenty names, for a message.
fn list(names: &[String]) -> String {
    let shown = names
        .iter()
        .take(20)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(20) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
