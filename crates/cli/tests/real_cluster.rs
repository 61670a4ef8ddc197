//! Clusters of real MariaDB servers under the provider: formed, written to, killed, cut apart, misconfigured.
//!
//! `TRIREME_REAL=1 cargo test --release -p trireme-cli --test real_cluster -- --test-threads=1` runs them (a few minutes);
//! without the variable each says that it is skipped. `TRIREME_PROVIDER` names another library than the `libtrireme.so` of
//! the same build: with Galera's, most of these tests show that they ask for nothing that Galera's users do not have.

mod real {
    mod agent;
    mod apart;
    mod arbitrator;
    mod bad_days;
    mod bad_files;
    mod balancer;
    mod blackout;
    mod crash;
    mod ddl_blackout;
    mod dies_applying;
    mod doctor;
    mod doctor_machine;
    mod encryption;
    mod founding;
    mod full_disk;
    mod hostile;
    mod inspect;
    mod large;
    mod leave;
    mod load;
    mod lone;
    mod migration;
    mod options;
    mod refusal;
    mod tls;
    mod trial;
    mod verify;
    mod waits;
    mod writes;
}
