//! Lists the mistakes in code that the simulator does not run, for `scripts/mutants.sh`: name, package, target, test.

#![forbid(unsafe_code)]

fn main() {
    for (mutant, _, check) in trireme_mutants::Mutant::OUTSIDE {
        let trireme_mutants::Check {
            package,
            target,
            name,
        } = check;
        println!("{mutant:?} {package} {target} {name}");
    }
}
