//! The command line as users type it.

use clap::CommandFactory;
use clap::error::ErrorKind;
use tandem_client::Message;

use super::*;

fn parse(line: &str) -> Result<Command, ErrorKind> {
    Cli::try_parse_from(line.split_whitespace())
        .map(|cli| cli.command)
        .map_err(|error| error.kind())
}

fn run_args(line: &str) -> RunArgs {
    match parse(line) {
        Ok(Command::Run(args)) => args,
        other => panic!("`{line}` is {other:?}"),
    }
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn sampling_flags_reach_the_request() {
    let line = "tandem run hello there --temperature 0.7 --top-k 40 --top-p 0.9 --min-p 0.05 --repetition-penalty 1.1 \
                --presence-penalty -0.5 --frequency-penalty 0.25 --logit-bias 5=-100 --logit-bias 6=1.5 --seed 9 \
                --max-tokens 32 --stop END --stop ## --ignore-eos --logprobs 3 --pair small --draft-length 4 --timeout 500ms";
    let args = run_args(line);
    assert_eq!(args.prompt, ["hello", "there"]);
    let expected = GenerateRequest::user("x")
        .pair("small")
        .sampling(v1::SamplingParams {
            temperature: Some(0.7),
            top_k: Some(40),
            top_p: Some(0.9),
            min_p: Some(0.05),
            repetition_penalty: Some(1.1),
            presence_penalty: Some(-0.5),
            frequency_penalty: Some(0.25),
            logit_bias: [(5, -100.0), (6, 1.5)].into(),
            seed: Some(9),
            max_tokens: Some(32),
            stop: vec!["END".to_owned(), "##".to_owned()],
            stop_token_ids: Vec::new(),
            ignore_eos: true,
            logprobs: Some(3),
        })
        .speculation(v1::Speculation::On)
        .draft_length(4)
        .deadline(Duration::from_millis(500));
    assert_eq!(args.generation.apply(GenerateRequest::user("x")), expected);
}

#[test]
fn what_is_not_given_stays_absent() {
    let args = run_args("tandem run hi");
    let request = args
        .generation
        .apply(GenerateRequest::chat(Vec::<Message>::new()));
    let expected = GenerateRequest::chat(Vec::<Message>::new())
        .sampling(v1::SamplingParams::default())
        .speculation(v1::Speculation::On);
    assert_eq!(request, expected);
}

#[test]
fn speculation_flags() {
    let speculation = |line| run_args(line).generation.apply(GenerateRequest::text(""));
    let wanted = |speculation| {
        GenerateRequest::text("")
            .sampling(v1::SamplingParams::default())
            .speculation(speculation)
    };
    assert_eq!(
        speculation("tandem run x --no-draft"),
        wanted(v1::Speculation::Off)
    );
    assert_eq!(
        speculation("tandem run x --require-draft"),
        wanted(v1::Speculation::Required)
    );
    assert_eq!(
        speculation(
            "tandem run x --draft-method lookup,model --draft-method self --history editor"
        ),
        wanted(v1::Speculation::On)
            .draft_method(v1::DraftMethod::Lookup)
            .draft_method(v1::DraftMethod::Model)
            .draft_method(v1::DraftMethod::Self_)
            .history("editor")
    );
    assert_eq!(
        speculation("tandem run x --history="),
        wanted(v1::Speculation::On).history("")
    );
}

#[test]
fn contradictions_and_impossible_values_are_usage_errors() {
    for line in [
        "tandem run x --no-draft --require-draft",
        "tandem run x --no-draft --draft-length 3",
        "tandem run x --no-draft --draft-method lookup",
        "tandem run x --raw --system y",
        "tandem tokenize x --json --pieces",
        "tandem cache clear x --all",
    ] {
        assert_eq!(
            parse(line).err(),
            Some(ErrorKind::ArgumentConflict),
            "{line}"
        );
    }
    for line in [
        "tandem run x --draft-length 64",
        "tandem run x --logit-bias 5",
        "tandem run x --logit-bias a=1",
        "tandem run x --timeout soon",
        "tandem run x --timeout 0",
        "tandem run x --max-tokens 0",
    ] {
        assert_eq!(
            parse(line).err(),
            Some(ErrorKind::ValueValidation),
            "{line}"
        );
    }
}

#[test]
fn an_unknown_draft_method_names_those_there_are() {
    let line = ["tandem", "run", "x", "--draft-method", "guess"];
    let error = Cli::try_parse_from(line).expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::InvalidValue);
    assert!(
        error
            .to_string()
            .contains("[possible values: model, self, lookup]"),
        "{error}"
    );
}

#[test]
fn durations_have_units() {
    for (text, milliseconds) in [
        ("90", 90_000),
        ("1.5s", 1500),
        ("250ms", 250),
        ("2m", 120_000),
        ("1h", 3_600_000),
    ] {
        assert_eq!(
            duration(text),
            Ok(Duration::from_millis(milliseconds)),
            "{text}"
        );
    }
    for text in ["", "ms", "-1", "1d", "1e400", "0s"] {
        assert!(duration(text).is_err(), "{text}");
    }
}

#[test]
fn clearing_the_cache_needs_a_name_or_the_word_for_all() {
    assert_eq!(
        parse("tandem cache clear").err(),
        Some(ErrorKind::MissingRequiredArgument)
    );
    for line in [
        "tandem cache list --json",
        "tandem cache clear a b --json",
        "tandem cache clear --all",
    ] {
        assert!(matches!(parse(line), Ok(Command::Cache(_))), "{line}");
    }
}

#[test]
fn how_long_a_pair_stays() {
    for (given, expected) in [
        ("5m", Duration::from_secs(300)),
        ("forever", Duration::MAX),
        ("never", Duration::ZERO),
        ("0", Duration::ZERO),
    ] {
        let args = run_args(&format!("tandem run x --keep-alive {given}"));
        let request = args.generation.apply(GenerateRequest::text(""));
        let wanted = GenerateRequest::text("")
            .sampling(v1::SamplingParams::default())
            .speculation(v1::Speculation::On)
            .keep_alive(expected);
        assert_eq!(request, wanted, "{given}");
    }
    assert_eq!(
        parse("tandem run x --keep-alive always").err(),
        Some(ErrorKind::ValueValidation)
    );
}
