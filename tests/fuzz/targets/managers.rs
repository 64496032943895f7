//! What service managers print and what their files hold, read back.

use tandem_fuzz::{TIMES, Target, check};
use tandem_launchd::fuzzing::{Read, read};

const AGENT: &str = include_str!("../../../launchd/tests/golden/agent.plist");
const UNIT: &str = include_str!("../../../launchd/tests/golden/tandem.service");

#[test]
fn files_and_output_of_managers() {
    let target = Target {
        name: "managers",
        words: &[
            b"<dict>",
            b"</dict>",
            b"<array>",
            b"<key>ProgramArguments</key>",
            b"<key>Sockets</key>",
            b"<key>ExitTimeOut</key>",
            b"<integer>-1</integer>",
            b"<integer>0xffffffffffffffff</integer>",
            b"<string>",
            b"<date>0000-00-00T99:99:99Z</date>",
            b"<data>",
            b"<!DOCTYPE",
            b"<!ENTITY a \"aaaa\">",
            b"&a;",
            b"&#x0;",
            b"bplist00",
            b"bplist00\xd1\x01\x02",
            b"\tpid = ",
            b"\tlast exit code = ",
            b"MainPID=",
            b"ActiveState=",
            b"ExecStart=",
            b"\\\"%%$$",
            b"4294967296",
        ],
        fixed_bytes: 128 << 10,
        times: TIMES,
        seeds: seeds(),
    };
    check(&target, |input| {
        let (what, bytes) = match input.split_first() {
            Some((first, rest)) => (Read::ALL[usize::from(*first) % Read::ALL.len()], rest),
            None => (Read::Agent, input),
        };
        read(what, bytes)
    });
}

fn seeds() -> Vec<Vec<u8>> {
    let printed = "gui/501/x = {\n\tactive count = 1\n\tendpoints = {\n\t\tpid = 9\n\t}\n\tpid = 42\n\tlast exit code = 78: EX_CONFIG\n}\n";
    let shown = "ActiveState=active\nUnitFileState=enabled\nMainPID=42\nResult=exit-code\nExecMainStatus=78\n";
    let texts = [AGENT, printed, shown, UNIT];
    let mut seeds: Vec<Vec<u8>> = (0u8..)
        .zip(texts)
        .map(|(first, text)| [&[first], text.as_bytes()].concat())
        .collect();
    // The other form that property lists have: a dictionary of one string.
    let mut binary = b"\x00bplist00\xd1\x01\x02WProgramR/p".to_vec();
    let table = binary.len() as u8 - 1;
    binary.extend([8, 11, 19]);
    binary.extend([0; 6]);
    binary.extend([1, 1]);
    for number in [3u64, 0, u64::from(table)] {
        binary.extend(number.to_be_bytes());
    }
    seeds.push(binary);
    // Deeper than any stack.
    seeds.push([b"\x00".as_slice(), &b"<array>".repeat(9000)].concat());
    seeds
}
