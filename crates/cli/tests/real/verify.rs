//! What the tests themselves rely on.

use trireme_testbed::process;
use trireme_testbed::verify::verify_identical;

use super::trial::Trial;

#[test]
fn different_rows_are_found_and_no_server_outlives_its_cluster() {
    let Some(mut trial) = Trial::start(2, "") else {
        return;
    };
    trial.exec(0, "INSERT INTO d.t VALUES (1, 0)");
    trial.assert_equal();
    let again = trial.try_exec(0, "INSERT INTO d.t VALUES (1, 0)");
    assert_eq!(again.expect_err("a duplicate").code(), Some(1062));

    let mut sql = trial.client(1);
    for statement in ["SET SESSION wsrep_on = OFF", "UPDATE d.t SET v = 7"] {
        sql.exec(statement).expect("it concerns this node only");
    }
    let error = verify_identical(&mut trial, &["d"]).expect_err("the rows differ");
    let error = error.to_string();
    assert!(error.contains("`d`.`t` DIFFERS"), "{error}");

    let pids = [0, 1].map(|i| trial.node(i).pid().expect("it runs"));
    drop(trial);
    assert!(pids.iter().all(|pid| process::has_ended(*pid)));
}
