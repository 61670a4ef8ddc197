//! Schedules that once found a mistake; they are run again and again.

use clap::Parser;

use crate::digest::{Digest, Digests};
use crate::edit::Edit;
use crate::run;

/// The list, with a note about the finding of each schedule.
pub const LIST: &str = include_str!("../regressions.txt");

/// A line of the list: the arguments of `replay`, then a note.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(flatten)]
    edit: Edit,
}

/// Reads the list. Err: a line that is no schedule.
pub fn parse(list: &str) -> Result<Vec<(Edit, &str)>, String> {
    let lines = list.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse_line = |line| {
        let (arguments, story) = str::split_once(line, '#').unwrap_or((line, ""));
        let line = Line::try_parse_from(arguments.split_whitespace())
            .map_err(|error| format!("'{line}' is no schedule: {error}"))?;
        Ok((line.edit, story.trim()))
    };
    lines.map(parse_line).collect()
}

/// Runs all schedules of the list; true if nothing was violated, except in schedules whose note begins with "open:".
/// The digests go to `digests`. Err: a line that is no schedule.
pub fn run_all(list: &str, digests: Option<&Digests>) -> Result<bool, String> {
    let mut clean = true;
    for (edit, story) in parse(list)? {
        let outcome = run::run_digested(edit.plan()?, digests.map(|_| Digest::default()));
        let arguments = edit.arguments();
        if let (Some(digests), Some(digest)) = (digests, &outcome.watch.digest) {
            digests.take(arguments.clone(), digest);
        }
        if let Some(violation) = outcome.violation {
            clean &= story.starts_with("open:");
            let (what, text) = (violation.what, violation.text);
            println!("{arguments}  # {story}\n  {what}: {text}");
        }
    }
    Ok(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_schedules_and_stories() {
        let list = "# about\n\n7 --profile two --faults 1,2  # it was so\n8";
        let lines = parse(list).expect("all lines are schedules");
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].0.seed, lines[0].1), (7, "it was so"));
        assert_eq!(lines[0].0.faults, Some(vec![1, 2]));
        assert!(parse("seven").is_err());
    }
}
