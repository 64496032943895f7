//! Ways to decode, by name.

use std::error::Error;

use tandem_engine::policy::Policy;

/// One way to decode.
pub(crate) struct Method {
    pub(crate) name: String,
    pub(crate) speculation: bool,
    pub(crate) policy: Policy,
    /// Most siblings.
    pub(crate) width: Option<usize>,
    /// Whether the text so far is searched.
    pub(crate) lookup: bool,
}

/// Those that run where none is named.
pub(crate) const METHODS: &str = "plain,goodput,threshold,fixed 1,fixed 2,fixed 4,fixed 7";

/// Plain decoding, the default policy with trees or with chains alone, thresholds, or a fixed length.
pub(crate) fn method(name: &str) -> Result<Method, Box<dyn Error>> {
    let (speculation, policy, width) = match name {
        "plain" => (false, Policy::Goodput, None),
        "goodput" => (true, Policy::Goodput, None),
        "chains" => (true, Policy::Goodput, Some(1)),
        "no lookup" => (true, Policy::Goodput, None),
        "threshold" => (true, Policy::Threshold, None),
        other => {
            let length = other.strip_prefix("fixed ").and_then(|n| n.parse().ok());
            let length = length.ok_or_else(|| format!("no method is called `{other}`"))?;
            (true, Policy::Fixed(length), None)
        }
    };
    Ok(Method {
        name: name.to_owned(),
        speculation,
        policy,
        width,
        lookup: name != "no lookup",
    })
}
