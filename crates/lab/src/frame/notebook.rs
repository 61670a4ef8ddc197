//! The directory of results. It has the run's choices, one line of raw data per cell as soon as the cell is measured,
//! and at the end all data as CSV and JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use trireme_testbed::output::line;

use super::error::LabError;
use super::facts::Part;
use super::record::{Cell, Record};

/// The file of the run's choices.
const PLAN: &str = "plan.json";

/// The file of the records, one per line, in order of time.
const RECORDS: &str = "records.jsonl";

/// The file of the systems' versions and configurations.
const SETTINGS: &str = "settings.json";

/// The file of the facts about machine and programs, for each part of the run.
const FACTS: &str = "facts.json";

/// The results of a run, in memory and in their directory.
pub struct Notebook {
    dir: PathBuf,
    records: Vec<Record>,
    settings: BTreeMap<String, String>,
    parts: Vec<Part>,
    /// The part of this start of the program; None before its first measurement.
    part: Option<usize>,
    /// The setups that this start of the program has had.
    noted: BTreeSet<String>,
}

impl Notebook {
    /// Makes a new directory with the run's choices.
    pub fn create(dir: &Path, experiment: &str, plan: &impl Serialize) -> Result<Self, LabError> {
        if dir.join(PLAN).exists() {
            return Err(LabError::Exists(dir.to_path_buf()));
        }
        fs::create_dir_all(dir).map_err(LabError::io(dir))?;
        let notebook = Self {
            dir: dir.to_path_buf(),
            records: Vec::new(),
            settings: BTreeMap::new(),
            parts: Vec::new(),
            part: None,
            noted: BTreeSet::new(),
        };
        notebook.write_json(PLAN, &(experiment, plan))?;
        Ok(notebook)
    }

    /// Reads the choices of the run in `dir`.
    pub fn plan<P: DeserializeOwned>(dir: &Path, experiment: &str) -> Result<P, LabError> {
        let no_run = |reason: String| LabError::NoRun {
            dir: dir.to_path_buf(),
            reason,
        };
        let text = fs::read_to_string(dir.join(PLAN)).map_err(|e| no_run(e.to_string()))?;
        match serde_json::from_str(&text) {
            Ok((name, plan)) if experiment == <String as AsRef<str>>::as_ref(&name) => Ok(plan),
            Ok((name, _)) => Err(no_run(format!("it is one of {name}"))),
            Err(error) => Err(no_run(error.to_string())),
        }
    }

    /// Opens the run in `dir`, to continue it.
    pub fn open(dir: &Path) -> Result<Self, LabError> {
        let path = dir.join(RECORDS);
        let text = read_if_there(&path)?.unwrap_or_default();
        let mut records = Vec::new();
        for (i, text) in text.lines().enumerate() {
            match serde_json::from_str(text) {
                Ok(record) => records.push(record),
                // It was cut off while it was written, or is of another version.
                Err(error) => line(&format!(
                    "{}, line {}: {error}; its cell is measured again",
                    path.display(),
                    i + 1
                )),
            }
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            records,
            settings: read_json(&dir.join(SETTINGS))?,
            parts: read_json(&dir.join(FACTS))?,
            part: None,
            noted: BTreeSet::new(),
        })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All records.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Whether a cell has a complete record.
    pub fn has(&self, cell: &Cell) -> bool {
        self.records.iter().any(|r| r.complete && r.cell == *cell)
    }

    /// The versions and configurations, by system and setup.
    pub fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// Stores the setup of a system when the current part of the run has it for the first time, beside another text that
    /// an earlier part has under this name. Returns the name of what was stored.
    pub fn note_settings(&mut self, name: &str, text: String) -> Result<Option<String>, LabError> {
        if !self.noted.insert(name.to_string()) {
            return Ok(None);
        }
        let since = |part: usize| format!("{name} (since part {part})");
        let part = self.part.unwrap_or(0);
        let later = (0..part).rev().find_map(|n| self.settings.get(&since(n)));
        let key = match later.or(self.settings.get(name)) {
            Some(earlier) if *earlier == text => return Ok(None),
            Some(_) => since(part),
            None => name.to_string(),
        };
        self.settings.insert(key.clone(), text);
        self.write_json(SETTINGS, &self.settings)?;
        Ok(Some(key))
    }

    /// The facts about machine and programs, for each part of the run.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The part of the run that measured a record. A record of an earlier version belongs to the part of its date.
    pub fn part_of(&self, record: &Record) -> Option<&Part> {
        match record.part {
            Some(part) => self.parts.get(part),
            None => self.parts.iter().rfind(|part| part.since <= record.date),
        }
    }

    /// The part of the run to which the next records belong. The first call begins it, with its facts; `since`: now.
    pub fn part(&mut self, since: String, facts: &[(String, String)]) -> Result<usize, LabError> {
        if let Some(part) = self.part {
            return Ok(part);
        }
        self.parts.push(Part {
            since,
            facts: facts.to_vec(),
        });
        self.write_json(FACTS, &self.parts)?;
        let part = self.parts.len() - 1;
        self.part = Some(part);
        Ok(part)
    }

    /// Stores a record; the record is on disk when this returns.
    pub fn keep(&mut self, mut record: Record) -> Result<(), LabError> {
        // JSON has no other numbers: the record could not be read again.
        record.measured.figures.retain(|name, value| {
            let is_number = value.is_finite();
            if !is_number {
                line(&format!("{}: no {name}: it is {value}", record.cell));
            }
            is_number
        });
        let path = self.dir.join(RECORDS);
        let text = serde_json::to_string(&record).map_err(|e| LabError::io(&path)(e.into()))?;
        let file = File::options().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| {
            // The separator comes first, because an earlier line may have been cut off.
            let separator = if file.metadata()?.len() == 0 {
                ""
            } else {
                "\n"
            };
            write!(file, "{separator}{text}")?;
            file.sync_data()
        });
        written.map_err(LabError::io(&path))?;
        self.records.push(record);
        Ok(())
    }

    /// Writes results.json, results.csv (a line per cell) and seconds.csv (a line per cell and second).
    pub fn write_tables(&self) -> Result<(), LabError> {
        self.write_json("results.json", &self.records)?;
        let factors: BTreeSet<&String> = self
            .records
            .iter()
            .flat_map(|r| r.cell.factors.keys())
            .collect();
        let figures: BTreeSet<&String> = self
            .records
            .iter()
            .flat_map(|r| r.measured.figures.keys())
            .collect();
        let point = |record: &Record| -> Vec<String> {
            let levels = factors.iter().map(|f| record.cell.level(f).to_string());
            let mut row: Vec<String> = vec![record.cell.system.clone()];
            row.extend(levels);
            row.push(record.cell.repetition.to_string());
            row.push(record.complete.to_string());
            row
        };
        let mut head = vec!["system".to_string()];
        head.extend(factors.iter().map(|f| f.to_string()));
        head.extend(["repetition", "complete"].map(String::from));

        let mut results = vec![head.clone()];
        results[0].extend(["date", "commit", "part", "note"].map(String::from));
        results[0].extend(figures.iter().map(|f| f.to_string()));
        let mut seconds = vec![head];
        seconds[0].extend(["second", "commits"].map(String::from));
        for record in &self.records {
            let mut row = point(record);
            let part = record.part.map_or(String::new(), |part| part.to_string());
            row.extend([&record.date, &record.commit, &part, &record.note].map(String::clone));
            let figure = |name: &&String| record.measured.figures.get(*name).map(f64::to_string);
            row.extend(figures.iter().map(|name| figure(name).unwrap_or_default()));
            results.push(row);
            for (second, commits) in record.measured.per_second.iter().enumerate() {
                let mut row = point(record);
                row.extend([second.to_string(), commits.to_string()]);
                seconds.push(row);
            }
        }
        self.write_csv("results.csv", &results)?;
        self.write_csv("seconds.csv", &seconds)
    }

    /// Writes a file of the results. It is never there in part.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, LabError> {
        let path = self.dir.join(name);
        let new = self.dir.join(format!("{name}.new"));
        fs::write(&new, text).map_err(LabError::io(&new))?;
        fs::rename(&new, &path).map_err(LabError::io(&path))?;
        Ok(path)
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), LabError> {
        let path = self.dir.join(name);
        let text =
            serde_json::to_string_pretty(value).map_err(|e| LabError::io(&path)(e.into()))?;
        self.write(name, &text)?;
        Ok(())
    }

    fn write_csv(&self, name: &str, rows: &[Vec<String>]) -> Result<(), LabError> {
        let path = self.dir.join(name);
        let write = || -> Result<(), csv::Error> {
            let mut writer = csv::Writer::from_path(&path)?;
            for row in rows {
                writer.write_record(row)?;
            }
            Ok(writer.flush()?)
        };
        write().map_err(|error| LabError::io(&path)(error.into()))
    }
}

/// None: there is no such file.
fn read_if_there(path: &Path) -> Result<Option<String>, LabError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LabError::io(path)(error)),
    }
}

/// The default value if there is no such file.
fn read_json<T: DeserializeOwned + Default>(path: &Path) -> Result<T, LabError> {
    let Some(text) = read_if_there(path)? else {
        return Ok(T::default());
    };
    serde_json::from_str(&text).map_err(|error| LabError::io(path)(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::record::Measured;

    fn record(repetition: u32, complete: bool) -> Record {
        Record {
            cell: Cell {
                system: "a".to_string(),
                factors: [("c".to_string(), "8".to_string())].into(),
                repetition,
            },
            complete,
            note: "x, \"y\"".to_string(),
            date: "d".to_string(),
            commit: "k".to_string(),
            part: Some(2),
            measured: Measured {
                figures: [("n".to_string(), 1.5)].into(),
                per_second: vec![3, 4],
            },
        }
    }

    #[test]
    fn a_run_goes_on_where_it_ended() {
        let dir = tempfile::tempdir().unwrap();
        let mut notebook = Notebook::create(dir.path(), "e", &7).unwrap();
        notebook.keep(record(1, true)).unwrap();
        notebook.keep(record(2, false)).unwrap();
        // A crash cuts a line off.
        let path = dir.path().join(RECORDS);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"\n{\"cell\"").unwrap();

        assert_eq!(Notebook::plan::<u8>(dir.path(), "e").unwrap(), 7);
        assert!(Notebook::plan::<u8>(dir.path(), "f").is_err());
        assert!(matches!(
            Notebook::create(dir.path(), "e", &7),
            Err(LabError::Exists(_))
        ));
        let mut again = Notebook::open(dir.path()).unwrap();
        assert!(again.has(&record(1, true).cell));
        assert!(!again.has(&record(2, true).cell));
        again.keep(record(3, true)).unwrap();
        let last = Notebook::open(dir.path()).unwrap();
        assert_eq!(last.records(), again.records());
        assert_eq!(last.records().len(), 3);
    }

    #[test]
    fn a_record_after_a_line_that_was_cut_off_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut notebook = Notebook::create(dir.path(), "e", &7).unwrap();
        fs::write(dir.path().join(RECORDS), "{\"cell\"").unwrap();
        let mut unmeasured = record(1, true);
        unmeasured
            .measured
            .figures
            .insert("ratio".to_string(), f64::NAN);
        notebook.keep(unmeasured).unwrap();
        let read = Notebook::open(dir.path()).unwrap();
        assert_eq!(read.records(), [record(1, true)]);
    }

    #[test]
    fn a_damaged_file_ends_the_run() {
        let dir = tempfile::tempdir().unwrap();
        Notebook::create(dir.path(), "e", &7).unwrap();
        fs::write(dir.path().join(FACTS), "[").unwrap();
        assert!(Notebook::open(dir.path()).is_err());
    }

    #[test]
    fn each_start_that_measures_is_a_part() {
        let dir = tempfile::tempdir().unwrap();
        let mut notebook = Notebook::create(dir.path(), "e", &7).unwrap();
        for (since, part) in [("1", 0), ("2", 0)] {
            assert_eq!(notebook.part(since.to_string(), &[]).unwrap(), part);
        }
        let mut notebook = Notebook::open(dir.path()).unwrap();
        assert_eq!(notebook.part("3".to_string(), &[]).unwrap(), 1);
        let notebook = Notebook::open(dir.path()).unwrap();
        let since = |part: &Part| part.since.clone();
        let parts: Vec<String> = notebook.parts().iter().map(since).collect();
        assert_eq!(parts, ["1", "3"]);
        let mut of_earlier = record(1, true);
        (of_earlier.part, of_earlier.date) = (None, "2".to_string());
        assert_eq!(
            notebook.part_of(&of_earlier).map(since),
            Some("1".to_string())
        );
        of_earlier.part = Some(1);
        assert_eq!(
            notebook.part_of(&of_earlier).map(since),
            Some("3".to_string())
        );
    }

    #[test]
    fn a_setup_that_changes_between_parts_is_kept_twice() {
        let dir = tempfile::tempdir().unwrap();
        let mut notebook = Notebook::create(dir.path(), "e", &7).unwrap();
        let mut noted = Vec::new();
        for texts in [
            &["old", "other port"][..],
            &["old"],
            &["new"],
            &["new"],
            &["old"],
        ] {
            notebook.part(String::new(), &[]).unwrap();
            for text in texts {
                noted.extend(notebook.note_settings("a", text.to_string()).unwrap());
            }
            notebook = Notebook::open(dir.path()).unwrap();
        }
        assert_eq!(noted, ["a", "a (since part 2)", "a (since part 4)"]);
        let texts: Vec<&str> = notebook.settings().values().map(String::as_str).collect();
        assert_eq!(texts, ["old", "new", "old"]);
    }

    #[test]
    fn a_record_of_an_earlier_version_has_no_part() {
        let mut text = serde_json::to_value(record(1, true)).unwrap();
        text.as_object_mut().unwrap().remove("part");
        let read: Record = serde_json::from_value(text).unwrap();
        assert_eq!(read.part, None);
    }

    #[test]
    fn tables_have_a_line_per_cell_and_second() {
        let dir = tempfile::tempdir().unwrap();
        let mut notebook = Notebook::create(dir.path(), "e", &7).unwrap();
        notebook.keep(record(1, true)).unwrap();
        notebook.write_tables().unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(
            read("results.csv"),
            "system,c,repetition,complete,date,commit,part,note,n\na,8,1,true,d,k,2,\"x, \"\"y\"\"\",1.5\n"
        );
        assert_eq!(
            read("seconds.csv"),
            "system,c,repetition,complete,second,commits\na,8,1,true,0,3\na,8,1,true,1,4\n"
        );
    }
}
