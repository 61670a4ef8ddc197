//! Reads garbd's configuration file: lines of `option=value`, comments after `#`.

use super::args::ArbitratorArgs;

/// Fills in the options that are not on the command line, which has precedence. Err: the number of the bad line, and
/// its fault.
pub(super) fn complete(args: &mut ArbitratorArgs, text: &str) -> Result<(), (usize, String)> {
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let pair = line
            .split_once('=')
            .ok_or("expected option=value".to_owned());
        let (key, value) = pair.map_err(|reason| (number, reason))?;
        set(args, key.trim(), unquoted(value)).map_err(|reason| (number, reason))?;
    }
    Ok(())
}

/// Returns the text between quotes, or without quotes everything up to a comment.
fn unquoted(value: &str) -> &str {
    let value = value.trim();
    let quoted = value
        .strip_prefix('"')
        .and_then(|rest| rest.split_once('"'));
    match quoted {
        Some((inside, _)) => inside,
        None => value.split('#').next().unwrap_or_default().trim_end(),
    }
}

fn set(args: &mut ArbitratorArgs, key: &str, value: &str) -> Result<(), String> {
    let text = || Some(value.to_owned());
    match key {
        "address" => args.address = args.address.take().or_else(text),
        "group" => args.group = args.group.take().or_else(text),
        "options" => args.options = args.options.take().or_else(text),
        "name" => args.name = args.name.take().or_else(text),
        "dir" | "workdir" => args.dir = args.dir.take().or_else(|| Some(value.into())),
        "log" => args.log = args.log.take().or_else(|| Some(value.into())),
        "sst" => args.sst = args.sst.take().or_else(text),
        "donor" => args.donor = args.donor.take().or_else(text),
        "daemon" => match value {
            "1" | "yes" | "true" | "on" => args.daemon = true,
            "0" | "no" | "false" | "off" => {}
            _ => return Err(format!("daemon is 1 or 0, not '{value}'")),
        },
        _ => return Err(format!("there is no option '{key}'")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# garbd config file\n\ndaemon=1\naddress=\"gcomm://192.168.90.3:4567\"\n\
        group = my_cluster # ours\noptions=\"gmcast.segment=4; # no comment\"\nlog=\"/tmp/garb.log\"\n";

    #[test]
    fn the_file_of_the_manual_is_read() {
        let mut args = ArbitratorArgs {
            log: Some("/here".into()),
            ..ArbitratorArgs::default()
        };
        complete(&mut args, FILE).unwrap();
        let expected = ArbitratorArgs {
            address: Some("gcomm://192.168.90.3:4567".into()),
            group: Some("my_cluster".into()),
            options: Some("gmcast.segment=4; # no comment".into()),
            log: Some("/here".into()),
            daemon: true,
            ..ArbitratorArgs::default()
        };
        assert_eq!(args, expected);
    }

    #[test]
    fn lines_without_a_meaning_are_named() {
        for (text, line) in [("group=a\nx=1", 2), ("\ngroup", 2), ("daemon=maybe", 1)] {
            let refused = complete(&mut ArbitratorArgs::default(), text);
            assert_eq!(refused.unwrap_err().0, line, "{text}");
        }
    }
}
