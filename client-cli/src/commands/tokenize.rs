//! `tandem tokenize`: text as token ids.

use serde_json::json;
use tandem_client::v1::TokenizeRequest;

use super::input;
use crate::args::TokenizeArgs;
use crate::failure::Failure;
use crate::output::{Output, json_text};
use crate::{json, startup};

pub(crate) async fn run(args: TokenizeArgs) -> Result<(), Failure> {
    let text = match args.text.is_empty() {
        false => args.text.join(" "),
        true => input::piped()?.ok_or_else(|| {
            Failure::Usage("there is no text; give it as arguments or on standard input".to_owned())
        })?,
    };
    let client = startup::client(&args.target, false).await?;
    let request = TokenizeRequest {
        pair: args.target.pair,
        text,
        parse_special: args.parse_special,
        add_bos: args.add_bos,
    };
    let answer = client.tokenize(request).await?;
    let mut output = Output::new();
    if args.json {
        return output.json(&json::tokens(&answer));
    }
    if args.pieces {
        let lines: String = answer
            .token_ids
            .iter()
            .zip(&answer.pieces)
            .map(|(id, piece)| {
                format!(
                    "{id}\t{}\n",
                    json_text(&json!(String::from_utf8_lossy(piece)))
                )
            })
            .collect();
        return output.text(&lines);
    }
    let ids: Vec<String> = answer.token_ids.iter().map(u32::to_string).collect();
    output.line(&ids.join(" "))
}
