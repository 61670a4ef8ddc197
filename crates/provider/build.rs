//! The linker arguments of the library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // libssl, which the server uses as well, keeps pointers to functions of this library (they free the data attached
    // to a session), and threads that hang in a look-up or in the server's allowlist return into it. So the library stays
    // in the process when the server closes it.
    println!("cargo:rustc-link-arg-cdylib=-Wl,-z,nodelete");
    // Some tests have variables that the library looks up in the server.
    println!("cargo:rustc-link-arg-tests=-Wl,--export-dynamic");
}
