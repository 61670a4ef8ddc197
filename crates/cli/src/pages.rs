//! Man pages and shell completions, made from the same definitions as the command line. The packages contain them.

use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::{Shell, generate_to};

/// Writes the pages of `program` and of its subcommands into `dir/man`, and completions for bash, fish and zsh into
/// `dir/completions`.
pub fn write(dir: &Path, program: Command) -> io::Result<()> {
    let man = dir.join("man");
    let completions = dir.join("completions");
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    let name = program.get_name().to_owned();
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        generate_to(shell, &mut program.clone(), &name, &completions)?;
    }
    // `help` would give each command a second page.
    clap_mangen::generate_to(program.disable_help_subcommand(true), man)
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    #[test]
    fn every_visible_command_has_a_page_and_is_completed() {
        let program = Command::new("prog")
            .subcommand(
                Command::new("sub")
                    .about("Does it")
                    .arg(Arg::new("far").long("far")),
            )
            .subcommand(Command::new("secret").hide(true));
        let dir = tempfile::tempdir().unwrap();
        super::write(dir.path(), program).unwrap();
        let names = |sub: &str| {
            let entries = std::fs::read_dir(dir.path().join(sub)).unwrap();
            let mut names: Vec<_> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names("man"), ["prog-sub.1", "prog.1"]);
        assert_eq!(names("completions"), ["_prog", "prog.bash", "prog.fish"]);
        let page = std::fs::read_to_string(dir.path().join("man/prog-sub.1")).unwrap();
        assert!(page.contains("Does it") && page.contains("far"), "{page}");
    }
}
